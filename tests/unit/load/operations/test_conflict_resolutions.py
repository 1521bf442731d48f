"""What becomes of the directories of foreign objects: those that others use stay. A metastore in memory, and local files."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from hive_replication.errors import Refused, ReplicationError, Unreachable
from hive_replication.load.apply.database import TargetDatabase
from hive_replication.load.journal.journal import Journal, finished_loads
from hive_replication.load.journal.lane_record import LaneRecord
from hive_replication.load.operations.conflict_resolutions import DropForeignTable, KeepPartitionsAside, adopted_at
from hive_replication.load.plan.conflicts import Conflicts
from hive_replication.load.replica.state import LAST_ID, SOURCE, ReplicaState
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.types import Database, FieldSchema, Function, Partition, ResourceUri, StorageDescriptor, Table
from hive_replication.policy import Root
from hive_replication.storage import Denied, Storage
from hive_replication.storage.access import Access
from tests.guarded_files import ROOT, WIDE, GuardedFiles

OURS = {SOURCE: "uuid/sales"}


class Metastore:
    """Databases, and the tables and partitions of ``sales``."""

    features = SimpleNamespace(major=3)

    def __init__(self, **databases: str) -> None:
        self.located = databases
        self.held: dict[str, Table] = {}
        self.views: dict[str, list[str]] = {}
        self.parts: dict[str, dict[str, Partition]] = {}
        self.made: dict[str, Function] = {}
        self.code: list[str] = []
        self.parameters: dict[str, str] = {}

    def put(self, name: str, location: str, *days: str, parameters: dict[str, str] | None = None) -> None:
        """A table; partitioned with the directories of its days."""
        keys = [FieldSchema("ds", "string", "")] if days else []
        sd = StorageDescriptor(location=location)
        self.held[name] = Table(name, "sales", sd=sd, parameters=parameters or {}, partitionKeys=keys, tableType="MANAGED_TABLE")
        parts = enumerate(days, 1)
        self.parts[name] = {f"ds={n}": Partition([str(n)], sd=StorageDescriptor(location=day), parameters={}) for n, day in parts}

    def databases(self) -> list[str]:
        return sorted(self.located)

    def database(self, name: str) -> Database | None:
        return Database(name=name, locationUri=self.located[name], parameters=self.parameters) if name in self.located else None

    def alter_database(self, _: str, image: Database, __: Database) -> None:
        self.parameters = image.parameters

    def table_names(self, _: str) -> list[str]:
        return sorted(self.held)

    def tables(self, _: str, names: Iterable[str]) -> Iterator[Table]:
        return (self.held[name] for name in sorted(names, reverse=True))  # in no certain order

    def table(self, _: str, name: str) -> Table | None:
        return self.held.get(name)

    def create_table(self, table: Table) -> None:
        self.held[table.tableName], self.parts[table.tableName] = table, {}

    def drop_table(self, _: str, name: str, *, delete_data: bool) -> None:
        assert not delete_data
        if self.views.get(name):
            raise MetastoreError(f"Cannot drop table as it is used in the following materialized views {self.views[name]}")
        del self.held[name]
        self.views = {one: views for one, left in self.views.items() if (views := [v for v in left if v != f"sales.{name}"])}

    def partitions(self, _: str, table: str, names: Iterable[str] | None = None) -> Iterator[Partition]:
        found = self.parts.get(table, {})
        return iter([found[name] for name in (found if names is None else names) if name in found])

    def add_partitions(self, _: str, table: str, parts: list[Partition]) -> None:
        self.parts[table] |= {f"ds={part.values[0]}": part for part in parts}

    def drop_partitions(self, _: str, table: str, names: list[str], *, delete_data: bool) -> None:
        assert not delete_data
        for name in names:
            del self.parts[table][name]

    def functions(self, _: str) -> list[Function]:
        return [self.made[name] for name in sorted(self.made)]

    def drop_function(self, _: str, name: str) -> None:
        del self.made[name]

    def procedures(self, _: str) -> list[str]:
        return self.code

    def materialized_views_over(self, _: str) -> dict[str, list[str]]:
        return self.views

    def drop_database(self, name: str, *, delete_data: bool, cascade: bool) -> None:
        assert (delete_data, cascade) == (False, True)
        del self.located[name]


class Side:
    """A target side with the database ``sales``, or one of another name."""

    def __init__(self, path: Path, name: str = "sales", **others: str) -> None:
        self.root, self.name = path.as_uri(), name
        self.base = f"{self.root}/w/sales.db"
        located = {other: f"{self.root}/w/{place}" for other, place in others.items()}
        self.metastore = Metastore(**{name: self.base}, **located)
        self.storage = Storage((Root(uri=self.root),))
        policy = SimpleNamespace(read_only=False, owners={}, locations={}, functions_root=None, conflicts="refuse")
        self.target: Any = SimpleNamespace(metastore=self.metastore, storage=self.storage, policy=policy)

    def files(self, below: str = "") -> list[str]:
        found = self.storage.files(f"{self.root}/w{below}", hidden=True)
        return sorted(file.uri.removeprefix(f"{self.root}/w/") for file in found)

    def drop(self, setting: Any = "refuse") -> bool:
        self.database = TargetDatabase(self.target, self.name, lambda: None, dry=False)
        return self.database.drop(170, Conflicts(setting, OURS[SOURCE], self.name))


@pytest.mark.parametrize("others", [{}, {"reports": "sales.db/reports"}], ids=["alone", "another database in it"])
def test_a_replica_that_a_materialized_view_of_the_target_reads_stays_and_is_named(
    tmp_path: Path, others: dict[str, str]
) -> None:
    """All tables before it were dropped, and the load failed each time."""
    side = Side(tmp_path, **others)
    for name in ("items", "orders", "places"):
        side.storage.write(f"{side.base}/{name}/f", b"1")
        side.metastore.put(name, f"{side.base}/{name}", parameters=OURS)
    side.metastore.views = {"orders": ["reports.mv"], "elsewhere": ["reports.mv"]}
    assert not side.drop()
    assert (list(side.metastore.held), "sales" in side.metastore.located) == (["orders"], True)
    assert [why.partition(";")[0] for why in side.database.left] == [
        "sales.orders stays, and sales with it: the materialized view reports.mv reads it"
    ]
    assert [file for file in side.files() if "retired" not in file] == ["sales.db/orders/f"]
    side.metastore.views = {}
    assert side.drop()


def test_materialized_views_go_before_the_tables_that_they_read(tmp_path: Path) -> None:
    side = Side(tmp_path)
    side.metastore.put("a", f"{side.base}/a", parameters=OURS)
    side.metastore.put("mv", f"{side.base}/mv")
    side.metastore.views = {"a": ["sales.mv"]}
    assert side.drop("replace")
    assert side.metastore.held == {}


def test_materialized_views_go_first_too_where_the_database_stays(tmp_path: Path) -> None:
    side = Side(tmp_path)
    for name in ("m1", "t1", "t2"):
        side.storage.write(f"{side.base}/{name}/f", b"1")
        side.metastore.put(name, f"{side.base}/{name}", parameters=OURS)
    side.metastore.views = {"t1": ["sales.m1"], "t2": ["reports.mv"]}
    assert not side.drop("replace")
    assert list(side.metastore.held) == ["t2"]
    assert [file for file in side.files() if "retired" not in file] == ["sales.db/t2/f"]


@pytest.mark.parametrize("read_only", [True, False])
def test_a_database_that_is_no_replica_any_more_takes_writers_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, read_only: bool
) -> None:
    """Else HiveServer2 refuses to drop the table that stays; a mark that the policy did not set is somebody else's."""
    monkeypatch.setattr(import_module("hive_replication.load.apply.database"), "parameter_lock", lambda *_: nullcontext())
    side = Side(tmp_path)
    side.target.policy.read_only = read_only
    side.metastore.parameters = {**ReplicaState(OURS[SOURCE], 160).parameters(), "readonly": "true", "comment": "x"}
    side.metastore.put("t", f"{side.base}/t", parameters=OURS)
    side.metastore.views = {"t": ["reports.mv"]}
    assert not side.drop()
    assert side.metastore.parameters == {"comment": "x"} | ({} if read_only else {"readonly": "true"})


def test_the_data_of_a_table_whose_drop_is_refused_is_back_in_its_place(tmp_path: Path) -> None:
    """As where a view is made meanwhile: it had no data any more."""
    side = Side(tmp_path, "default")
    side.storage.write(f"{side.base}/t/f", b"1")
    side.metastore.put("t", f"{side.base}/t", parameters=OURS)
    side.metastore.views = {"t": ["reports.mv"]}
    side.metastore.materialized_views_over = lambda _: {}  # type: ignore[method-assign]
    with pytest.raises(MetastoreError, match="is used in the following materialized views"):
        side.drop()
    assert side.files() == ["sales.db/t/f"]
    side.metastore.views = {}
    assert not side.drop()
    assert [file.partition("-")[0] for file in side.files()] == ["sales.db/.repl/retired/170/t"]


@pytest.mark.parametrize("store", ["file://", "", "hdfs://NN1:8020"])
@pytest.mark.parametrize("place", ["orders", "orders/below", ""])
def test_the_directory_of_a_foreign_table_stays_where_a_replica_uses_it(tmp_path: Path, place: str, store: str) -> None:
    side = Side(tmp_path)
    side.storage.write(f"{side.base}/orders/below/f", b"1")
    side.metastore.put("orders", f"{store}{tmp_path}/w/sales.db/orders", parameters=OURS)
    side.metastore.put("foo", f"{side.base}/{place}".rstrip("/"))
    DropForeignTable(170, "foo").carry_out(side.target, "sales")
    assert sorted(side.metastore.held) == ["orders"]
    assert side.files() == ["sales.db/orders/below/f"]


@pytest.mark.parametrize("spelled", ["foo/", "/foo", "x/../foo", "../sales.db//./foo"])
def test_the_directory_of_a_foreign_table_is_retired_where_nobody_uses_it(tmp_path: Path, spelled: str) -> None:
    side = Side(tmp_path)
    side.storage.write(f"{side.base}/foo/f", b"1")
    side.metastore.put("orders", f"{side.base}/orders", parameters=OURS)
    side.metastore.put("foo", f"{side.base}/{spelled}")
    DropForeignTable(170, "foo").carry_out(side.target, "sales")
    assert [file.partition("-")[0] for file in side.files()] == ["sales.db/.repl/retired/170/foo"]


@pytest.mark.parametrize("spelled", [".repl/journal", "/.repl//journal", "x/../.repl/journal"])
def test_the_journal_is_no_directory_of_a_foreign_table(tmp_path: Path, spelled: str) -> None:
    side = Side(tmp_path)
    side.storage.write(f"{side.base}/.repl/journal/f", b"1")
    side.metastore.put("foo", f"{side.base}/{spelled}")
    DropForeignTable(170, "foo").carry_out(side.target, "sales")
    assert side.files() == ["sales.db/.repl/journal/f"]


def test_directories_of_foreign_partitions_are_moved_where_they_are_theirs_alone(tmp_path: Path) -> None:
    """One is its own, four share two, one is a replica's, and below one lies another table."""
    side = Side(tmp_path)
    places = [f"{side.base}/{name}" for name in ("t/ds=1", "t/two", "t/two", "orders", "t/above", "t/three")]
    for place in (*places, f"{side.base}/t/above/other"):
        side.storage.write(f"{place}/f", b"1", overwrite=True)
    places.append(f"{tmp_path}/w/sales.db/t/three")  # as Hive keeps SET LOCATION without a store
    side.metastore.put("t", f"{side.base}/t", *places, parameters=OURS)
    side.metastore.put("orders", f"{side.base}/orders", parameters=OURS)
    side.metastore.put("other", f"{side.base}/t/above/other")
    names = tuple(side.metastore.parts["t"])
    for _ in "12":  # a load that was killed does it again
        KeepPartitionsAside(170, "t", names, "t_kept_170").carry_out(side.target, "sales")
    assert not side.metastore.parts["t"]
    kept = {name: part.sd.location for name, part in side.metastore.parts["t_kept_170"].items()}
    assert kept == {
        "ds=1": f"{side.base}/t_kept_170/ds=1",
        **{f"ds={number}": place for number, place in enumerate(places[1:], 2)},
    }
    assert all(side.storage.exists(f"{place}/f") for place in kept.values() if place.startswith("file:"))


def test_foreign_partitions_stay_as_private_as_their_table() -> None:
    """The table that keeps them was open to all."""
    base, private = f"{ROOT}/w/sales.db", Access.of_mode("etl", "finance", 0o750)
    files = GuardedFiles({"w/sales.db/t": private, "w/sales.db/t/ds=1": WIDE, "w/sales.db/t_kept_170": WIDE})
    metastore = Metastore(sales=base)
    metastore.put("t", f"{base}/t", f"{base}/t/ds=1", parameters=OURS)
    target: Any = SimpleNamespace(metastore=metastore, storage=files)
    KeepPartitionsAside(170, "t", ("ds=1",), "t_kept_170").carry_out(target, "sales")
    assert metastore.parts["t_kept_170"]["ds=1"].sd.location == f"{base}/t_kept_170/ds=1"
    assert files.allows(f"{base}/t_kept_170/ds=1") == replace(private, owner="repl")


@pytest.mark.parametrize("inner", ["sales.db/hr.db", "sales.db/deep/hr.db"])
def test_a_database_within_a_dropped_one_stays(tmp_path: Path, inner: str) -> None:
    side = Side(tmp_path, hr=inner, beside="sales.db2")
    for file in (f"{inner}/salaries/f", "sales.db/t/f", "sales.db/.repl/journal/j"):
        side.storage.write(f"{side.root}/w/{file}", b"1")
    side.metastore.put("t", f"{side.base}/t", parameters=OURS)
    assert side.drop()
    assert sorted(side.metastore.located) == ["beside", "hr"]
    inside, *retired = side.files("/sales.db") + side.files("/.repl")
    assert inside == f"{inner}/salaries/f"
    assert [file.partition("sales.db-170-")[0] for file in retired] == [".repl/retired/"] * 2
    assert not side.storage.exists(f"{side.base}/t")


def test_the_directory_of_a_dropped_database_goes_as_a_whole_where_no_other_is_in_it(tmp_path: Path) -> None:
    side = Side(tmp_path, beside="sales.db2")
    side.storage.write(f"{side.base}/stray", b"1")
    assert side.drop()
    (retired,) = side.files()
    assert retired.startswith(".repl/retired/sales.db-170-")


@pytest.mark.parametrize(
    "why", [ReplicationError("it cannot be deleted since it is snapshottable"), Denied("the account lacks w on /data")]
)
@pytest.mark.parametrize("others", [{}, {"hr": "sales.db/hr.db"}], ids=["alone", "with another in it"])
def test_a_database_whose_directory_cannot_be_moved_is_dropped_and_leaves_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: ReplicationError, others: dict[str, str]
) -> None:
    """Every load failed at it for ever, with all tables dropped."""
    side = Side(tmp_path, **others)
    for file in ("t/f", ".repl/journal/j"):
        side.storage.write(f"{side.base}/{file}", b"1")
    side.metastore.put("t", f"{side.base}/t", parameters=OURS)
    monkeypatch.setattr(Storage, "rename", Mock(side_effect=why))
    assert side.drop()
    assert "sales" not in side.metastore.located
    assert side.files() == ["sales.db/.repl/journal/j", "sales.db/t/f"]
    assert all(str(why) in one for one in side.database.left)
    assert f"the directory {side.base} of what is dropped cannot be moved" in side.database.left[-1]


def test_a_journal_that_cannot_be_ended_for_want_of_a_right_fails_the_load(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An undo of the next database of the name went back to before the drop, once the right or the key was there again."""
    side = Side(tmp_path)
    side.database = TargetDatabase(side.target, "sales", lambda: None, dry=False)
    writer = side.database.journal.begin(80, 100)
    writer.lane(LaneRecord(("t",), ()))
    writer.done(100)
    with monkeypatch.context() as patch:
        patch.setattr(Storage, "rename", Mock(side_effect=Denied("the key has changed")))
        with pytest.raises(Denied, match="the key has changed"):
            side.drop()
    assert "sales" in side.metastore.located, "the next load drops it"
    assert side.drop()
    assert finished_loads(side.storage, side.base) == []


@pytest.mark.parametrize("name", ["sales", "default"])
def test_no_undo_goes_back_to_before_a_drop_that_left_the_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    """It dropped the tables of the next database of the name, and then failed for ever at the first one from before."""
    side = Side(tmp_path, name)
    side.metastore.put("t", f"{side.base}/t", parameters=OURS)
    side.database = TargetDatabase(side.target, name, lambda: None, dry=False)
    for evid in (100, 120):
        writer = side.database.journal.begin(evid - 20, evid)
        writer.lane(LaneRecord(("t",), ()))
        writer.done(evid)
    rename = Storage.rename

    def moved(storage: Storage, source: str, target: str) -> None:
        if source == side.base:
            raise ReplicationError("it cannot be deleted since it is snapshottable")
        rename(storage, source, target)

    monkeypatch.setattr(Storage, "rename", moved)
    assert side.drop() == (name == "sales")
    journal = Journal(side.storage, side.base)
    assert [(entry.to_evid, entry.status) for entry in journal.entries()] == [(100, "former"), (120, "former")]
    assert finished_loads(side.storage, side.base) == []


@pytest.mark.parametrize(
    "why", [Unreachable("down"), ReplicationError("the delegation token is not known there"), ReplicationError("SlowDown")]
)
def test_a_database_is_not_dropped_while_its_directory_cannot_be_moved_for_a_moment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: ReplicationError
) -> None:
    """Its files were left for good where the next load would have moved them."""
    side = Side(tmp_path)
    side.storage.write(f"{side.base}/t/f", b"1")
    with monkeypatch.context() as patched:
        patched.setattr(Storage, "rename", Mock(side_effect=why))
        with pytest.raises(ReplicationError, match=str(why)):
            side.drop()
    assert "sales" in side.metastore.located
    assert side.drop()
    assert side.database.left == []


def test_the_default_database_stays_without_replicas(tmp_path: Path) -> None:
    side = Side(tmp_path, "default", hr="sales.db/hr.db")
    for file in ("hr.db/salaries/f", "t/f"):
        side.storage.write(f"{side.base}/{file}", b"1")
    side.metastore.put("t", f"{side.base}/t", parameters=OURS)
    assert not side.drop()
    assert sorted(side.metastore.located) == ["default", "hr"]
    assert not side.metastore.held
    assert [file.partition("-")[0] for file in side.files()] == ["sales.db/.repl/retired/170/t", "sales.db/hr.db/salaries/f"]


def test_a_replica_in_a_foreign_tables_directory_is_not_retired_with_its_database(tmp_path: Path) -> None:
    side = Side(tmp_path)
    side.storage.write(f"{side.base}/t/f", b"1")
    side.metastore.put("t", f"{side.base}/t", parameters=OURS)
    side.metastore.put("theirs", f"{side.base}/t")
    assert not side.drop("keep-aside")
    assert sorted(side.metastore.held) == ["theirs"]
    assert side.files() == ["sales.db/t/f"]


@pytest.mark.parametrize(("value", "expected"), [("170", 170), ("x", 0), ("", 0), ("²", 0), ("-1", 0), ("9" * 5_000, 0)])
def test_an_edited_event_of_an_adoption_is_none(value: str, expected: int) -> None:
    """Anybody who may alter the table can write it, and it is read before any lane: a traceback ended all of the window."""
    assert adopted_at(Table(parameters={LAST_ID: "0", "hive_replication.adopted": value})) == expected


@pytest.mark.parametrize("what", ["function", "procedure"])
@pytest.mark.parametrize("setting", ["refuse", "keep-aside", "adopt", "replace"])
def test_functions_and_procedures_that_are_no_replicas_are_not_dropped_with_their_database(
    tmp_path: Path, setting: str, what: str
) -> None:
    """Hive's cascade took them all, and nobody told: those that operators make by hand, as the source's have no files."""
    side = Side(tmp_path)
    ours = [ResourceUri(uri=f"{side.base}/.repl/functions/sales/ours/7/0/f.jar")]
    side.metastore.put("t", f"{side.base}/t", parameters=OURS)
    side.metastore.made["ours"] = Function(functionName="ours", dbName="sales", resourceUris=ours)
    if what == "function":
        side.metastore.made["theirs"] = Function(functionName="theirs", dbName="sales")
    else:
        side.metastore.code = ["theirs"]
    if setting == "refuse":
        with pytest.raises(Refused, match="'theirs', a function, stored procedure or package, is not our replica"):
            side.drop(setting)
        assert (sorted(side.metastore.held), "ours" in side.metastore.made) == (["t"], True)
    else:
        assert side.drop(setting) == (setting == "replace")
    assert ("sales" in side.metastore.located) == (setting != "replace")
    if setting in ("adopt", "keep-aside"):
        assert sorted(side.metastore.made) == (["theirs"] if what == "function" else [])
        assert not side.metastore.held


def test_no_replica_of_a_function_is_left_where_its_database_stays(tmp_path: Path) -> None:
    """Nobody dropped it any more: it was there for ever, and called files that go with their retention."""
    side = Side(tmp_path, "default")
    ours = [ResourceUri(uri=f"{side.base}/.repl/functions/default/f/7/0/f.jar")]
    side.metastore.made["f"] = Function(functionName="f", dbName="default", resourceUris=ours)
    assert not side.drop()
    assert not side.metastore.made
