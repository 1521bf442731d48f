"""Drift as one call: what is found, and what a repair of it leaves, without servers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.drift import Drifted, DriftReport, TableDrift, drift
from hive_replication.drift import command as module
from hive_replication.errors import BadRequest, Refused, ReplicationError, Unreachable
from hive_replication.load.replica.state import ReplicaState, database_with_state
from hive_replication.metastore.types import Database

STATE = ReplicaState("uuid/db", 1600)
FOUND = {
    "plain": TableDrift("plain", 1, (Drifted("", "d", "1 file is new"),)),
    "parts": TableDrift("parts", 2, (Drifted("ds=1", "d", "1 file is gone"),)),
    "same": TableDrift("same", 1),
    "unread": TableDrift("unread", 0, waiting="it cannot be read: its blocks are lost"),
}


class _Drift:
    """A scan that finds what it is told, and repairs that end as they are told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *tables: str, fails: ReplicationError | None = None) -> None:
        self.repaired: list[tuple[str, object]] = []
        self.tables, self.fails, self.finished = tables, fails, 0
        scan = SimpleNamespace(
            names=lambda: list(tables),
            table=FOUND.get,
            finish=self.finish,
            snapshots=SimpleNamespace(created=0, deleted=0),
            told=lambda _: [],
        )
        monkeypatch.setattr(module, "DriftScan", lambda *_: scan)
        monkeypatch.setattr(module, "repair_objects", self.repair)
        metastore = SimpleNamespace(table=lambda _, name: None if name == "absent" else name, uri="thrift://s")
        replica = SimpleNamespace(database=lambda _: database_with_state(Database("copy", parameters={}), STATE))
        target = SimpleNamespace(metastore=replica, policy=SimpleNamespace(target_of=lambda _: "copy"))
        self.connection: Any = SimpleNamespace(source=SimpleNamespace(metastore=metastore), target=target)

    def finish(self) -> None:
        self.finished += 1

    def repair(self, _: object, __: str, table: str, partitions: object, *, stood: ReplicaState, **___: object) -> Any:
        assert stood == STATE
        if table == "plain" and self.fails is not None:
            raise self.fails
        self.repaired.append((table, partitions))
        return SimpleNamespace(load=SimpleNamespace(held=()))

    def look(self, name: str = "sales", *, repair: bool = False) -> DriftReport:
        return drift(self.connection, name, repair=repair)


@pytest.mark.parametrize(
    ("tables", "repair", "exit_code"),
    [
        (["same"], False, 0),
        (["same", "parts"], False, 1),
        (["same", "parts"], True, 0),
        (["same", "unread"], False, 1),
        (["same", "unread"], True, 1),
    ],
)
def test_drift_that_remains_is_told(monkeypatch: pytest.MonkeyPatch, tables: list[str], exit_code: int, *, repair: bool) -> None:
    looked = _Drift(monkeypatch, *tables)
    assert looked.look(repair=repair).exit_code == exit_code
    assert looked.repaired == ([("parts", ("ds=1",))] if repair and "parts" in tables else [])


def test_a_repair_that_is_refused_stops_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = _Drift(monkeypatch, "plain", "parts", fails=Refused("another load of sales runs"))
    report = looked.look(repair=True)
    assert report.not_repaired == ("plain is not repaired: another load of sales runs",)
    assert (report.exit_code, looked.repaired) == (1, [("parts", ("ds=1",))])


def test_servers_that_do_not_answer_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    looked = _Drift(monkeypatch, "plain", "parts", fails=Unreachable("it is down"))
    with pytest.raises(Unreachable):
        looked.look(repair=True)
    assert looked.repaired == []


def test_one_table_ends_no_round_of_all(monkeypatch: pytest.MonkeyPatch) -> None:
    """Snapshots of the tables that were not looked at are still needed."""
    looked = _Drift(monkeypatch, "plain", "parts")
    assert [one.table for one in looked.look("sales.parts").tables] == ["parts"]
    assert looked.finished == 0
    assert [one.table for one in looked.look().tables] == ["plain", "parts"]
    assert looked.finished == 1


@pytest.mark.parametrize(("name", "why"), [("absent", "has no table sales.absent"), ("view", "sales.view has no files")])
def test_a_table_that_cannot_drift_is_an_error(monkeypatch: pytest.MonkeyPatch, name: str, why: str) -> None:
    with pytest.raises(BadRequest, match=why):
        _Drift(monkeypatch).look(f"sales.{name}")
