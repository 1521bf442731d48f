"""Alarms and status by what is recorded below the dump root, and without it."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from hive_replication.connect import Reachable, connect_reachable, reachable_servers
from hive_replication.connect.connection import connected
from hive_replication.errors import BadRequest, Unreachable
from hive_replication.health import history, kept_records, open_alarms, policy_status
from hive_replication.load.layout.directories import new_token
from hive_replication.load.records import Record, RecordStore
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Database
from hive_replication.observe import reports
from hive_replication.policy import Policy, Root
from hive_replication.policy.model import Warehouse
from hive_replication.storage import Storage
from tests.faults import closed_directory
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
    RecordStore.of(policy, store, "dr").keep(record)
    replicas["dr"] = LEVEL
    assert open_alarms(connection, Reachable()) == ()
    del replicas["dr"]
    found = open_alarms(connection, Reachable())
    assert [one.kind for one in found] == alarms
    assert found == policy_status(connection, Reachable()).alarms
    for alarm in found:
        assert alarm.title == "sales has no replica any more: none is in dr on the target"


def test_a_day_that_this_account_may_not_read_is_an_entry_of_the_history(
    replicas: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    """The command failed, and nothing of any other day was shown."""
    policy = POLICY.model_copy(update={"dump_root": f"file://{tmp_path}", "databases": {"s1": "dr"}})
    connection = connected(policy, Metastores(replicas, source=True))
    replicas["dr"] = LEVEL
    now = time.time()
    for ago in (0, 1, 2):
        token = f"{int((now - ago * 86_400) * 1000):013d}{'0' * 8}"
        RecordStore.of(policy, connection.store, "dr").keep(Record(token, "pause", "dr", "ann@gate", now - ago * 86_400))
    _, closed, _ = sorted((tmp_path / ".reports/.by-day").glob("dr-*/*"))
    with closed_directory(closed.as_uri()):
        found = [one.record for one in history(connection, "dr")]
        with pytest.raises(BadRequest, match=f"1-9 is kept, unless in what this account may not read, such as .*{closed.name}; "):
            reports(connection, "1-9")
    assert [one.action for one in found] == ["pause", "not readable", "pause"]
    assert "permission denied" in found[1].text
    assert closed.name in found[1].text


@pytest.mark.parametrize(("closed", "last"), [(0, None), (1, None), (2, "20-30")])
def test_the_last_load_is_not_known_where_a_newer_day_may_not_be_read(
    closed: int, last: str | None, replicas: dict[str, dict[str, str]], tmp_path: Path
) -> None:
    """An older one was shown for it, which had gone well."""
    policy = POLICY.model_copy(update={"dump_root": f"file://{tmp_path}", "databases": {"s1": "dr"}})
    connection = connected(policy, Metastores(replicas, source=True))
    replicas["dr"] = LEVEL
    now = time.time()
    for ago, (action, window) in enumerate([("pause", ""), ("window", "20-30"), ("window", "10-20")]):
        token = f"{int((now - ago * 86_400) * 1000):013d}{'0' * 8}"
        record = Record(token, action, "dr", "ann@gate", now - ago * 86_400, window=window)  # type: ignore[arg-type]
        RecordStore.of(policy, connection.store, "dr").keep(record)
    days = sorted((tmp_path / ".reports/.by-day").glob("dr-*/*"), reverse=True)
    with closed_directory(days[closed].as_uri()):
        found = kept_records.KeptRecords(connection).last_load("dr")
    assert (found and found.window) == last


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Policy]:
    """A policy with a pattern, the NameNode of whose dump root takes connections and never answers."""
    for module, patience in ((reachable_servers, "_TIMEOUT"), (kept_records, "_PATIENCE"), (history_module, "PATIENCE")):
        monkeypatch.setattr(module, patience, 0.3)
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        root = f"hdfs://127.0.0.1:{server.getsockname()[1]}/dumps"
        target = POLICY.target.model_copy(update={"roots": (Root(uri=root),)})
        yield POLICY.model_copy(update={"target": target, "dump_root": root, "databases": {"s*": "*"}})


def test_reports_do_not_wait_for_a_dump_root_that_hangs(silent: Policy, replicas: dict[str, dict[str, str]]) -> None:
    replicas |= {f"s{number}": LEVEL for number in range(40)}
    began = time.monotonic()
    connection, reach = connect_reachable(silent)
    status, alarms = policy_status(connection, reach), open_alarms(connection, reach)
    assert time.monotonic() - began < 20
    assert [one.last_load for one in status.databases] == [None] * 40
    for told in (status.alarms, alarms):
        assert [(one.kind, one.about) for one in told] == [("unreachable", "dump root")]
    assert "nothing can be replicated: hdfs://127.0.0.1:" in alarms[0].title
    with pytest.raises(Unreachable, match="has not answered"):
        history(connection, "s1")


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
