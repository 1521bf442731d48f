"""Grants at a planned failover: a REVOKE has no event, so that no window may wait, and the replica has the right still."""

from __future__ import annotations

from importlib import import_module
from typing import Any
from unittest.mock import Mock

import pytest

from hive_replication import failover
from hive_replication.connect import Connection
from hive_replication.errors import MetastoreError, Refused
from hive_replication.load.privileges import replicate
from hive_replication.load.privileges.compare import Changes
from hive_replication.load.privileges.replicate import PrivilegeReport
from hive_replication.load.replica.state import ReplicaState
from hive_replication.policy.privileges import Privileges
from tests.unit.failover.fakes import Side, connected, log, without_locks

LEFT = Changes(roles=("analysts",))


@pytest.fixture
def level(monkeypatch: pytest.MonkeyPatch) -> tuple[Connection, Mock]:
    """A replica to which no window is due, by a policy with grants; what compares them."""
    without_locks(monkeypatch)
    monkeypatch.setattr(import_module("hive_replication.failover.start"), "compare_database", lambda *_, **__: iter(()))
    target = Side(
        {"a": {}}, log(("create", 0, 0, 0)), parameters=ReplicaState("thrift://a:1/db", 1).parameters(), uri="thrift://b:1"
    )
    made: Any = connected(Side({"a": {}}, log(("create", 0, 0, 0))), target)
    made.target.policy = made.target.policy.model_copy(update={"privileges": Privileges(replicate=True, remove=True)})
    monkeypatch.setattr(replicate, "replicate_privileges", compared := Mock(return_value=PrivilegeReport("db", LEFT, Changes())))
    return made, compared


def test_all_grants_are_brought_though_no_window_is_due(level: tuple[Connection, Mock]) -> None:
    connection, compared = level
    assert failover.start(connection, "db").status.phase == "ready"
    (_, _, replica, _), _ = compared.call_args
    assert (replica.source_database, replica.identity, replica.tables) == ("db", "thrift://a:1/db", None)


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [
        (
            PrivilegeReport("db", LEFT, LEFT, ("not an admin",)),
            r"differ from the source's \(create role analysts; not an admin\)",
        ),
        (PrivilegeReport("db", Changes(), Changes(), ("grants wait: the log is gone",)), r"\(grants wait: the log is gone\)"),
        (MetastoreError("no such method"), r"cannot be compared with the source's \(no such method\)"),
    ],
)
def test_what_differs_still_hinders_the_failover(level: tuple[Connection, Mock], answer: Any, refusal: str) -> None:
    connection, compared = level
    compared.side_effect = [answer]
    with pytest.raises(Refused, match=refusal):
        failover.start(connection, "db")
    assert failover.status(connection, "db").phase == "started"
    connection.target.policy = connection.target.policy.model_copy(update={"privileges": Privileges()})  # type: ignore[misc]
    assert failover.start(connection, "db").status.phase == "ready", "without grants in the policy nothing is compared"
