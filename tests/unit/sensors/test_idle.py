"""Idle databases: whose applied id is raised without a run, and who gets a run that reads the log."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from hive_replication.connect import Connection
from hive_replication.load.replica import advance_idle as advance_module
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.types import Database, Table
from sensors.notification_log import idle
from sensors.notification_log.decision import Replica
from sensors.notification_log.idle import advance_idle, long_idle, to_be_read, with_work
from tests.lags import POLICY

NOW = 1_000_000.0


class Target:
    """A metastore with a transactional table in each database; of that of ``writes`` an open transaction has a write id."""

    def __init__(self, writes: str, *opened: int, problem: str = "") -> None:
        self._writes, self._opened, self._problem, self.calls = writes, frozenset(opened), problem, 0

    def open_replayed(self) -> frozenset[int]:
        self.calls += 1
        if self._problem:
            raise MetastoreError(self._problem)
        return self._opened

    def table_names(self, _database: str) -> list[str]:
        self.calls += 1
        return ["plain", "t"]

    def tables(self, _database: str, names: list[str]) -> list[Table]:
        kinds: list[dict[str, str]] = [{}, {"transactional": "true"}]
        return [Table(tableName=name, parameters=kind) for name, kind in zip(names, kinds, strict=True)]

    def write_ids_of(self, transaction: int, database: str, names: list[str]) -> list[tuple[str, int]]:
        assert names == ["t"]
        return [("t", 5)] if (database, transaction) == (self._writes, 2) else []


def connected(target: Target, *, acid: bool = True) -> Connection:
    policy = POLICY.model_copy(update={"databases": {"sales": "copy", "stock": "stock"}, "max_events": 50})
    source = SimpleNamespace(acid=acid, policy=policy, reach=lambda evid: (evid, f"hash of {evid}"))
    return cast("Connection", SimpleNamespace(source=source, target=SimpleNamespace(metastore=target, policy=policy)))


def found(connection: Connection, *seen: Replica, event_ttl: float = 1e9) -> list[Replica]:
    states = {one.database: ReplicaState(applied=one.applied, applied_time=int(NOW - 100)) for one in seen}
    return long_idle(connection, seen, states, NOW, event_ttl)


def test_those_are_idle_for_long_whose_event_is_far_back() -> None:
    connection = connected(Target(""))
    far, near = Replica("sales", 100, scanned=150), Replica("stock", 101, scanned=150)
    assert found(connection, far, near) == [far]
    assert found(connection, near, far, event_ttl=300) == [far, near]
    busy, working = Replica("sales", 1, scanned=150, busy="run"), Replica("stock", 1, scanned=150, first_event=2)
    assert found(connection, busy, working, Replica("new", None, scanned=150)) == []
    assert found(connection, replace(far, held=0, to_approve=True)) == []  # the plan that waits is of where it stands


def test_a_run_reads_the_log_where_a_transaction_is_open_on_the_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its end may stand in the log without a name: nothing reads it again once the applied id is beyond."""
    connection = connected(Target("copy", 1, 2))
    seen = [Replica("sales", 10, scanned=150), Replica("stock", 20, scanned=150), Replica("busy", 20, scanned=150, busy="run")]
    idle_ones = found(connection, *seen)
    looked, unended = to_be_read(connection, idle_ones)
    assert (looked, unended) == (idle_ones, {"sales"})
    assert [one.first_event for one in with_work(seen, unended)] == [11, None, None]
    advanced: list[Any] = []
    monkeypatch.setattr(idle, "advance", lambda _target, *arguments: advanced.append(arguments))
    advance_idle(connection, idle_ones, unended)
    assert advanced == [("stock", 20, 150, 150, "hash of 150")]


@pytest.mark.parametrize(
    ("state", "applied"),
    [
        (ReplicaState("uuid/sales", 10, policy=POLICY.name), [10, 150]),
        (ReplicaState("uuid/sales", 10, policy="b"), [10]),  # it skipped events of tables that only that policy has
        (ReplicaState("uuid/sales", 10, policy=POLICY.name, checkpoint="hdfs://dst/dumps/sales/killed"), [10]),
    ],
    ids=["of the policy", "of another policy", "a load of objects was killed"],
)
def test_only_a_whole_replica_of_the_policy_is_advanced(
    monkeypatch: pytest.MonkeyPatch, state: ReplicaState, applied: list[int]
) -> None:
    for name in ("MetastoreLock", "parameter_lock"):
        monkeypatch.setattr(advance_module, name, lambda *_, **__: nullcontext(Mock()))
    written = [Database("copy", parameters=state.parameters())]

    def alter(_name: str, new: Database, _read: Database) -> None:
        written.append(new)

    target: Any = SimpleNamespace(database=lambda _: written[-1], alter_database=alter)
    connection = connected(target)
    advance_idle(connection, found(connection, Replica("sales", 10, scanned=150)), frozenset())
    assert [replica_state(one).applied for one in written] == applied


@pytest.mark.parametrize(
    ("target", "acid", "calls"),
    [
        pytest.param(Target("copy"), True, 1, id="none is open"),
        pytest.param(Target("copy", 2, problem="get_open_txns: no table TXNS"), True, 1, id="a metastore without them"),
        pytest.param(Target("copy", 2), False, 0, id="no transactional tables"),
    ],
)
def test_one_call_tells_that_no_transaction_is_open(target: Target, calls: int, *, acid: bool) -> None:
    connection = connected(target, acid=acid)
    idle_ones = found(connection, Replica("sales", 10, scanned=150))
    assert to_be_read(connection, idle_ones) == (idle_ones, set())
    assert target.calls == calls


def test_what_a_tick_has_no_time_for_is_left_to_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle, "_LOOKING", 0.0)
    connection = connected(Target("copy", 2))
    assert to_be_read(connection, found(connection, Replica("sales", 10, scanned=150))) == ([], set())


def test_what_the_target_refuses_of_one_database_stops_no_other(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The tick ended before its runs, and each later one: no database was replicated. No answer is not that none is open."""
    target = Target("stock", 2)
    names = target.table_names
    refused = MetastoreError("get_all_tables: refused")
    monkeypatch.setattr(target, "table_names", lambda name: names(name) if name == "stock" else Mock(side_effect=refused)())
    connection = connected(target)
    sales, stock = Replica("sales", 10, scanned=150), Replica("stock", 20, scanned=150)
    assert to_be_read(connection, found(connection, sales, stock)) == ([stock], {"stock"})
    advanced: list[str] = []

    def advance(_target: object, name: str, *_: object) -> None:
        if name == "copy":
            raise MetastoreError("alter_database: refused")
        advanced.append(name)

    monkeypatch.setattr(idle, "advance", advance)
    advance_idle(connection, [sales, stock], frozenset())
    assert advanced == ["stock"]
    assert [one.getMessage().rpartition("raised: ")[2] for one in caplog.records] == [str(refused), "alter_database: refused"]
