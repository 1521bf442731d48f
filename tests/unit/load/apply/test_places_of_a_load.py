"""Where the segments of one load put new tables: what they ask of the tables that are there, and of each other's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.load.apply import taken_places
from hive_replication.load.apply.database import TargetDatabase
from hive_replication.load.apply.executor import Executor
from hive_replication.load.apply.running_sums import Tally
from hive_replication.load.layout.directories import staging_name
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.state import SOURCE, ReplicaState
from hive_replication.load.replica.target_view import KnownObjects
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.types import Database, StorageDescriptor, Table
from hive_replication.parallel import Threads
from hive_replication.progress import Silent
from hive_replication.storage import Storage

OURS = "uuid/sales"


@dataclass
class _Metastore:
    """Makes, renames and drops tables; counts how often all are read."""

    home: str
    there: dict[str, Table] = field(default_factory=dict[str, Table])
    read: Counter[str] = field(default_factory=Counter[str])
    listed: int = 0
    fails: bool = False
    features: Any = field(default_factory=lambda: SimpleNamespace(major=3))

    def database(self, name: str) -> Database:
        return Database(name, locationUri=self.home, parameters={SOURCE: OURS})

    def databases(self) -> list[str]:
        return ["sales"]

    def table_names(self, _: str) -> list[str]:
        if self.fails:
            raise MetastoreError("the metastore's database is restarted")
        return sorted(self.there)

    def tables(self, _: str, names: Iterable[str]) -> Iterator[Table]:
        for name in names:
            if name in self.there:
                self.read[name] += 1
                yield self.there[name]

    def table(self, _: str, name: str) -> Table | None:
        return self.there.get(name)

    def create_table(self, table: Table) -> None:
        self.there[table.tableName] = table

    def alter_table(self, _: str, name: str, image: Table, *__: object) -> None:
        del self.there[name]
        self.there[image.tableName] = image

    def drop_table(self, _: str, name: str, **__: object) -> None:
        del self.there[name]


@dataclass
class Load:
    """Segments of one load; all tables are external, below a directory of their own."""

    storage: Storage
    base: str

    def __post_init__(self) -> None:
        self.root = f"{self.base.removesuffix('sales.db')}ext"
        self.metastore = _Metastore(self.base)
        self.metastore.there = {name: _table(name, f"{self.root}/old/{name}") for name in ("a", "b", "c")}
        self.storage.mkdirs(f"{self.root}/old/a")
        policy = SimpleNamespace(
            parallelism=SimpleNamespace(changes=2), preserve=(), external_root=self.root, functions_root=None,
            target=SimpleNamespace(paths=()), append="in_place", owners={}, conflicts="refuse",
        )  # fmt: skip
        target: Any = SimpleNamespace(
            metastore=self.metastore, storage=self.storage, source_storage=self.storage, policy=policy,
            threads=Threads(2, "lane"), default_locations=lambda *_: (),  # pyright: ignore[reportUnknownLambdaType]
        )  # fmt: skip
        self.replica = TargetDatabase(target, "sales", lambda: None, dry=False)

    def carry_out(self, *operations: op.Operation) -> list[str]:
        """One segment with a lane for each operation; returns the lanes that are held."""
        known = KnownObjects(cast("Any", self.metastore), "sales", ReplicaState(OURS))
        copier: Any = SimpleNamespace(copy=lambda _: iter(()))  # pyright: ignore[reportUnknownLambdaType]
        executor = Executor(self.replica, OURS, copier, Silent(), Tally(), known)
        lanes = [LanePlan((one.table,), one.evid - 1, (one,)) for one in operations]
        return [held.tables[0] for held in executor.run(lanes, lambda _lane, _missing: None).held]

    def new(self, evid: int, name: str, place: str) -> op.CreateTable:
        files = op.Content((), staging_name(evid, 1, transactional=False))
        return op.CreateTable(evid, name, _table(name, ""), files, f"{self.root}/{place}")

    def place(self, name: str) -> str:
        return str(self.metastore.there[name].sd.location)


def _table(name: str, place: str) -> Table:
    return Table(name, "sales", sd=StorageDescriptor(location=place), partitionKeys=[], parameters={SOURCE: OURS})


@pytest.fixture
def load(storage: Storage, base: str) -> Load:
    return Load(storage, base)


def test_the_batches_of_a_load_read_the_tables_that_are_there_once(load: Load) -> None:
    """Each batch read all tables, those of the batches before it, too."""
    for batch in range(3):
        assert not load.carry_out(*(load.new(7, f"t{batch}{number}", f"old/t{batch}{number}") for number in range(4)))
    assert load.metastore.read == {"a": 1, "b": 1, "c": 1}
    assert load.place("t23") == f"{load.root}/old/t23"


def test_what_an_earlier_batch_has_placed_is_taken(load: Load) -> None:
    load.carry_out(load.new(7, "t", "old/t"))
    load.carry_out(load.new(8, "u", "old/t"), load.new(9, "v", "old/t/sub"), load.new(10, "w", "old/a"))
    assert [load.place(name) for name in "tuvw"] == [
        f"{load.root}/old/t",
        *(f"{load.base}/.repl/{evid}-1" for evid in (8, 9, 10)),
    ]


def test_a_table_that_was_renamed_meanwhile_keeps_its_directory(load: Load) -> None:
    """One that then gets its name would get the directory that was claimed for that name, where a store has no empty ones."""
    load.carry_out(load.new(7, "t", "old/t"))
    load.carry_out(op.RenameTable(8, "t", _table("u", "")))
    load.carry_out(load.new(9, "t", "old/t"))
    assert (load.place("u"), load.place("t")) == (f"{load.root}/old/t", f"{load.base}/.repl/9-1")


def test_tables_that_could_not_be_read_are_read_again_in_the_next_batch(load: Load) -> None:
    load.metastore.fails = True
    assert load.carry_out(load.new(7, "t", "old/t")) == ["t"]
    load.metastore.fails = False
    assert load.carry_out(load.new(8, "u", "old/u")) == []


def test_claims_do_not_fill_the_memory(load: Load, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(taken_places, "_MOST_CLAIMED", 5)
    for batch in range(4):
        load.carry_out(*(load.new(7, f"t{batch}{number}", f"old/t{batch}{number}") for number in range(4)))
    assert load.metastore.read["a"] == 2
    load.carry_out(load.new(8, "u", "old/t00"))
    assert load.place("u") == f"{load.base}/.repl/8-1"
