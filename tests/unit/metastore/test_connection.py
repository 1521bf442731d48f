"""Connecting to one of several addresses of a metastore."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from hive_replication.errors import Unreachable
from hive_replication.metastore.connection import Connections
from hive_replication.policy.addresses import Address


def test_a_name_that_python_does_not_look_up_leaves_the_other_addresses_to_be_tried(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was a traceback, and high availability was lost."""
    monkeypatch.setattr("tenacity.nap.time.sleep", Mock())
    connections = Connections("thrift://127.0.0.1:1", retries=2)
    wrong, other = Address("thrift", "a..b", 9083), Address("thrift", "127.0.0.1", 1)
    for addresses, message in (((wrong, other), "Could not connect"), ((other, wrong), "names no host that can be looked up")):
        connections._addresses = addresses
        with pytest.raises(Unreachable, match=message):
            connections.call("get_all_databases", lambda client: client.get_all_databases())
