"""What one database, root or setting cannot be examined for keeps nothing else from being examined."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.connect import Reachable
from hive_replication.connect.databases import PatternMatches
from hive_replication.doctor.examine import examine
from hive_replication.doctor.finding import Finding, ok
from hive_replication.doctor.settings import LISTENER
from hive_replication.dump.source import Source
from hive_replication.errors import MetastoreError
from hive_replication.load.replica.state import PREFIX, ReplicaState
from hive_replication.load.replica.target import Target
from hive_replication.metastore.dialect import Features
from hive_replication.metastore.types import Database, StorageDescriptor, Table
from hive_replication.policy import Policy, Root
from hive_replication.policy.model import Warehouse
from hive_replication.storage import Storage
from tests.lags import NOWHERE

NAMES = ("finance", "hr", "sales")


@dataclass
class Metastore:
    """One side's; of ``hidden`` databases it shows nothing, of those in ``closed`` no tables."""

    warehouse: str
    parameters: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    hidden: tuple[str, ...] = ()
    closed: tuple[str, ...] = ()
    refused: tuple[str, ...] = ()
    location: Callable[[str], str] | None = None
    features: Features = field(default_factory=lambda: Features("4.2.0", "uuid"))
    uri: str = NOWHERE

    def version(self) -> str:
        return self.features.version

    def uuid(self) -> str:
        return self.features.uuid

    def current_event_id(self) -> int:
        return 0

    def unfinished_transactions(self) -> list[object]:
        return []

    def config_value(self, name: str, default: str) -> str:
        if name in self.refused:
            raise MetastoreError(f"get_config_value: {name} is refused")
        given = {"hive.metastore.warehouse.dir": self.warehouse, "hive.metastore.transactional.event.listeners": LISTENER}
        return given.get(name, default)

    def database(self, name: str) -> Database:
        if name in self.hidden:
            raise MetastoreError(f"get_database {name}: Permission denied: user=repl, access=READ")
        location = self.location(name) if self.location else f"{self.warehouse}/{name}.db"
        return Database(name, locationUri=location, parameters=self.parameters.get(name, {}))

    def table_names(self, name: str) -> list[str]:
        if name in self.closed:
            raise MetastoreError(f"get_all_tables {name}: Permission denied")
        return ["t"]

    def tables(self, name: str, names: Iterable[str]) -> list[Table]:
        place = StorageDescriptor(location=f"{self.warehouse}/{name}.db/t")
        return [Table(tableName=one, dbName=name, tableType="MANAGED_TABLE", sd=place, parameters={}) for one in names]


@pytest.fixture(autouse=True)
def locks(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("hive_replication.doctor.examine")
    monkeypatch.setattr(module, "_lock", lambda _: ok("target", "locks", "granted"))
    monkeypatch.setattr(module, "_lags", lambda _: (0.0, []))


def findings(
    tmp_path: Path, source: dict[str, Any], target: dict[str, Any], /, **settings: Any
) -> dict[tuple[str, str], Finding]:
    """By side and check: all that the doctor finds of these sides."""
    for name in NAMES:
        (tmp_path / f"s/{name}.db").mkdir(parents=True, exist_ok=True)
    sides = {
        side: Warehouse(metastore=NOWHERE, roots=(Root(uri=f"{tmp_path.as_uri()}/{side[0]}/"),)) for side in ("source", "target")
    }
    given: dict[str, Any] = {**sides, "dump_root": f"{tmp_path.as_uri()}/t/dumps", "databases": {name: name for name in NAMES}}
    policy = Policy(**(given | settings))
    stores = [Storage(side.roots) for side in (policy.source, policy.target)]
    metastores: list[Any] = [Metastore(f"{tmp_path.as_uri()}/{side}", **those) for side, those in (("s", source), ("t", target))]
    connection: Any = SimpleNamespace(
        source=Source(metastores[0], stores[0], policy),
        target=Target(metastores[1], stores[1], policy, stores[0], metastores[0]),
        store=SimpleNamespace(storage=Storage((Root(uri=f"{tmp_path.as_uri()}/"),)), root=policy.dump_root),
        patterns=PatternMatches(),
    )
    return {(one.side, one.check): one for one in examine(connection, Reachable())}


def test_a_database_that_a_side_hides_is_a_problem_of_that_database_alone(tmp_path: Path) -> None:
    """It ended its side: writing to the target and its space were not looked at, nor any later database."""
    found = findings(tmp_path, {"hidden": ("hr",)}, {"hidden": ("hr",)})
    for side in ("source", "target"):
        hidden = found[side, "database hr"]
        assert (hidden.verdict, hidden.found) == ("error", "get_database hr: Permission denied: user=repl, access=READ")
        assert hidden.advice.startswith(f"let this account see the database on the {side}, ")
    wrong = {name for name, one in found.items() if one.verdict == "error"}
    assert wrong == {("source", "database hr"), ("target", "database hr")}
    assert {("source", f"read {name}") for name in ("finance", "sales")} <= found.keys()
    assert {("target", "write to the warehouse"), ("target", "free space")} <= found.keys()
    assert ("source", "patterns in tables") in found


@pytest.mark.parametrize(
    ("source", "target", "wrong"),
    [
        ({"closed": ("hr",)}, {}, ("source", "tables of hr")),
        ({"refused": ("hive.repl.cm.enabled",)}, {}, ("source", "cmroot access")),
        ({"refused": ("hive.metastore.dml.events",)}, {}, ("source", "settings")),
        ({}, {"closed": ("hr",)}, ("target", "places of hr")),
        ({}, {"refused": ("metastore.housekeeping.threads.on",)}, ("target", "settings")),
        ({}, {"refused": ("hive.metastore.warehouse.dir",)}, ("target", "write")),
        (
            {},
            {"parameters": {"hr": {**ReplicaState("u/hr", 1).parameters(), f"{PREFIX}applied.id": "abc"}}},
            ("target", "places of hr"),
        ),
        ({"location": lambda name: f"file:///elsewhere/../{name}"}, {}, ("source", "database hr")),
    ],
    ids=["tables", "cmroot", "events", "replicas", "lock timeout", "warehouse", "edited mark", "odd location"],
)
def test_what_cannot_be_examined_hides_nothing_else(
    source: dict[str, Any], target: dict[str, Any], wrong: tuple[str, str], tmp_path: Path
) -> None:
    found = findings(tmp_path, source, target, exclude=("x*",))
    assert found[wrong].verdict == "error"
    assert "stopped" not in {check for _, check in found}
    assert {("source", "database sales"), ("source", "read the log"), ("source", "pattern in exclude")} <= found.keys()
    assert {("target", "locks"), ("target", "transactional tables")} <= found.keys()


def test_a_pattern_may_match_what_a_hidden_database_has(tmp_path: Path) -> None:
    found = findings(tmp_path, {"hidden": ("hr",), "closed": ("sales",)}, {}, tables=("t", "u"))
    assert found["source", "pattern in tables"].found == "'u' matches no table, but maybe one of hr, sales"


def test_a_root_that_does_not_answer_keeps_no_other_from_being_examined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of its side nothing was written to, and no database's directory looked at."""
    roots = import_module("hive_replication.doctor.roots")
    monkeypatch.setattr(roots, "_PATIENCE", 1.0)
    gone = f"{tmp_path.as_uri()}/gone/"
    status = Storage.status

    def answering(storage: Storage, uri: str) -> Any:
        if uri.startswith(gone):
            raise OSError("connection refused")
        return status(storage, uri)

    monkeypatch.setattr(Storage, "status", answering)
    target = Warehouse(metastore=NOWHERE, roots=(Root(uri=f"{tmp_path.as_uri()}/t/"), Root(uri=gone)))
    found = findings(tmp_path, {}, {}, target=target, external_root=f"{gone}external", functions_root=f"{tmp_path.as_uri()}/t/f")
    wrong = {name for name, one in found.items() if one.verdict == "error"}
    assert wrong == {("target", f"storage {gone}")}
    assert found["target", "write to the warehouse"].verdict == found["target", "write to functions_root"].verdict == "ok"
    assert ("target", "write to external_root") not in found
    assert ("target", "free space") in found


def test_a_warehouse_in_which_nothing_is_created_need_be_no_root(tmp_path: Path) -> None:
    """Its free space was asked for, which was refused: an error, and nothing was said of the databases' directories."""
    root = f"{tmp_path.as_uri()}/lake/"
    target = Warehouse(metastore=NOWHERE, roots=(Root(uri=root),))
    locations = {name: f"{root}{name}" for name in NAMES}
    there = {"location": lambda name: f"{root}{name}"}
    found = findings(tmp_path, {}, there, target=target, locations=locations, dump_root=f"{root}dumps")
    assert not [one for one in found.values() if one.verdict == "error"]
    assert found["target", "free space"].found.endswith("GiB free")


def test_owners_and_space_are_looked_at_where_databases_lie(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not in a store of functions' files alone, which was taken where all databases have a directory and are there."""
    tried: list[str] = []
    module = import_module("hive_replication.doctor.examine")
    monkeypatch.setattr(module, "preserved", lambda _storage, _policy, home: (tried.append(home), iter(()))[1])
    monkeypatch.setattr(module, "_space", lambda _storage, home: (tried.append(home), iter(()))[1])
    root = f"{tmp_path.as_uri()}/t/"
    target = Warehouse(metastore=NOWHERE, roots=(Root(uri=root), Root(uri=f"{tmp_path.as_uri()}/jars/")))
    locations = {name: f"{root}{name}" for name in NAMES}
    there = {"location": lambda name: f"{root}{name}"}
    findings(tmp_path, {}, there, target=target, locations=locations, functions_root=f"{tmp_path.as_uri()}/jars/f")
    assert tried == [locations["finance"], locations["finance"]]


def test_stores_are_examined_where_the_metastore_does_not_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def silent(_: object) -> str:
        raise MetastoreError("it is down")

    monkeypatch.setattr(Metastore, "version", silent)
    webhdfs = Root(uri="hdfs://127.0.0.1:1/", webhdfs="http://127.0.0.1:1")
    monkeypatch.setattr(import_module("hive_replication.doctor.examine"), "roots", lambda *_: [])
    target = Warehouse(metastore=NOWHERE, roots=(webhdfs, Root(uri=f"{tmp_path.as_uri()}/t/")))
    found = findings(tmp_path, {}, {}, target=target)
    assert {("target", "metastore"), ("target", "WebHDFS")} <= found.keys()
