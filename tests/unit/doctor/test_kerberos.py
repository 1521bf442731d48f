"""What the doctor says of tickets."""

from __future__ import annotations

import pytest

from hive_replication.doctor.kerberos import kerberos
from hive_replication.kerberos import tickets
from hive_replication.policy.warehouse import Warehouse

SIDE = {
    "metastore": "thrift://h:1",
    "roots": [{"uri": "file:///"}],
    "kerberos": {"metastore_principal": "hive/_HOST@A", "principal": "repl@A", "keytab": "/k"},
}


def test_the_end_of_a_ticket_is_told_to_the_second(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tickets, "ticket", lambda _: ("repl@A", 1e9))
    (found,) = kerberos("source", Warehouse.model_validate(SIDE))
    assert found.found == "repl@A by /k, until 2001-09-09 01:46:40 UTC, and then another one"
