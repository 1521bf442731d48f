"""Alarms and status by what is recorded below the dump root, and without it."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from hive_replication.connect import Reachable, reachable_servers
from hive_replication.connect.connection import connected
from hive_replication.errors import Unreachable
from hive_replication.health import open_alarms
from hive_replication.load.layout.directories import new_token
from hive_replication.load.records import Record, RecordStore
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Database
from hive_replication.policy.model import Warehouse
from hive_replication.storage import Storage
from tests.lags import POLICY

history_module = import_module("hive_replication.health.history")

LEVEL = ReplicaState("s/sales", 100).parameters()


class Metastores(Metastore):
    """Both metastores: the source has the databases of the policy, the target those of some."""

    def __init__(self, replicas: dict[str, dict[str, str]], *, source: bool) -> None:
        super().__init__("thrift://127.0.0.1:1")
        self.replicas, self.source = replicas, source

    def uuid(self) -> str:
        return "s" if self.source else "t"

    def databases(self) -> list[str]:
        return [f"s{number}" for number in range(40)]

    def database(self, name: str) -> Database | None:
        there = self.source or name in self.replicas
        return Database(name=name, parameters={} if self.source else self.replicas[name]) if there else None

    def current_event_id(self) -> int:
        return 100

    def config_value(self, name: str, default: str) -> str:
        return default


@pytest.fixture
def replicas(monkeypatch: pytest.MonkeyPatch) -> dict[str, dict[str, str]]:
    """Parameters of the target's databases, whose metastore answers as the source's does."""
    made: dict[str, dict[str, str]] = {}
    monkeypatch.setattr(reachable_servers, "reach", lambda _: Reachable())
    monkeypatch.setattr("hive_replication.lag.reader.history_gap", lambda *_: None)

    def of(side: Warehouse, **_: Any) -> Metastores:
        return Metastores(made, source=side is POLICY.source)

    monkeypatch.setattr(Metastore, "of", of)
    return made


@pytest.mark.parametrize(
    ("action", "window", "outcome", "alarms"),
    [
        ("window", "90-100", "failed", ["gap"]),
        ("repair", "repair-100", "done", ["gap"]),
        ("bootstrap", "bootstrap-100", "held", ["gap"]),
        ("bootstrap", "bootstrap-100", "failed", []),
        ("table", "bootstrap-100", "done", []),
        ("pause", "", "done", []),
    ],
)
def test_a_replica_that_is_gone_is_an_alarm_by_its_records(
    action: Any, window: str, outcome: Any, alarms: list[str], replicas: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    """One that is yet to come is none."""
    policy = POLICY.model_copy(update={"dump_root": f"file://{tmp_path}", "databases": {"sales": "dr"}})
    connection = connected(policy, Metastores(replicas, source=True))
    store = connection.store
    record = Record(new_token(), action, "dr", "ann@gate", 50.0, outcome, window)
    RecordStore(store.storage, store.root, "dr").keep(record)
    replicas["dr"] = LEVEL
    assert open_alarms(connection, Reachable()) == ()
    del replicas["dr"]
    found = open_alarms(connection, Reachable())
    assert [one.kind for one in found] == alarms
    for alarm in found:
        assert alarm.title == "sales has no replica any more: none is in dr on the target"


def test_a_dump_root_that_is_down_is_an_alarm_beside_a_side_that_is(
    replicas: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever kind of store it is on."""

    def down(*_: object) -> None:
        raise Unreachable("the storage root cannot be reached")

    monkeypatch.setattr(Storage, "exists", down)
    connection: Any = connected(POLICY.model_copy(update={"dump_root": f"file://{tmp_path}"}), Metastores(replicas, source=True))
    found = open_alarms(connection, Reachable(target="switched off"))
    assert [one.about for one in found] == ["target", "dump root"]
    monkeypatch.setattr("hive_replication.health.alarms.lags_reachable", down)
    assert [one.about for one in open_alarms(connection, Reachable())] == ["source or target", "dump root"]
