"""What several tests on servers have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hive_replication.connect import connect
from resources.embedded.cluster import Cluster, Side
from resources.embedded.policy import policy
from tests.ledger import Ledger, make


@pytest.fixture
def ledger(cluster: Cluster, source4: Side, target4: Side, unique: str) -> Iterator[Ledger]:
    """A database of a metastore 4.2.0 that is replicated to another one."""
    connection = connect(policy(cluster, {unique: unique}, source4.name, target4.name))
    yield make(connection, unique)
    connection.source.metastore.close()
    connection.target.metastore.close()
