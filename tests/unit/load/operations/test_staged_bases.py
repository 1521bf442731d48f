"""What readers may see of a base before its transaction is committed: nothing (``AcidUtils.isValidBase``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from shutil import rmtree
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.acid.write_ids import WriteIds
from hive_replication.errors import Refused, ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.load.operations.base import Content
from hive_replication.load.operations.staged_bases import Base
from hive_replication.load.operations.transactions import ReplayAbort, ReplayCommit, TruncateTransactional, Written
from hive_replication.load.replica.target import Target
from hive_replication.metastore.transactions import WriteEvent
from hive_replication.metastore.types import Database, FieldSchema, Partition, StorageDescriptor, Table
from hive_replication.policy import Root
from hive_replication.storage import Storage

OPEN = {5: {"t": 7, "p": 3}, 6: {"u": 2}}


class Server:
    """A metastore with the transactional tables t, u and, partitioned, p, and open transactions with write ids (``OPEN``)."""

    def __init__(self, home: str, root: Path, *, feeds: bool) -> None:
        self.home, self.root, self.feeds = home, root, feeds
        self.tables_there = {"t": [], "u": [], "p": ["1", "2", "3"]}
        self.open = {one: dict(written) for one, written in OPEN.items()}
        self.seen = dict[str, list[str]]()
        self.told = list[WriteEvent]()
        self.dies = ""

    def database(self, name: str) -> Database:
        return Database(name, locationUri=self.home, parameters={"repl.source.for": "next"} if self.feeds else {})

    def config_value(self, _: str, default: str) -> str:
        return default

    def table(self, database: str, name: str) -> Table | None:
        return next(self.tables(database, [name]), None)

    def table_names(self, _: str) -> list[str]:
        return sorted(self.tables_there)

    def tables(self, database: str, names: Iterable[str]) -> Iterator[Table]:
        for name in sorted({*names} & self.tables_there.keys()):
            keys = [FieldSchema("ds", "string", "")] if self.tables_there[name] else []
            place = StorageDescriptor(location=f"{self.home}/{name}")
            yield Table(name, database, sd=place, partitionKeys=keys, parameters={"transactional": "true"})

    def partition_names(self, _: str, table: str) -> list[str]:
        return [f"ds={value}" for value in self.tables_there[table]]

    def partitions(self, database: str, table: str, names: Iterable[str]) -> Iterator[Partition]:
        for value in self.tables_there.get(table, []):
            if f"ds={value}" in names:
                yield Partition([value], database, table, sd=StorageDescriptor(location=f"{self.home}/{table}/ds={value}"))

    def max_write_id(self, _: str, table: str) -> int:
        return 9

    def replay_open(self, _: str, transactions: Sequence[int]) -> dict[int, Any]:
        for one in transactions:
            self.open.setdefault(one, {})
        return {one: SimpleNamespace(id=one, name="p") for one in transactions}

    def write_ids_of(self, transaction: int, _: str, tables: Iterable[str]) -> Iterator[tuple[str, int]]:
        yield from ((name, one) for name, one in self.open.get(transaction, {}).items() if name in set(tables))

    def write_ids(self, _: str, tables: Iterable[str]) -> dict[str, WriteIds]:
        opened = {name: frozenset(one[name] for one in self.open.values() if name in one) for name in tables}
        return {name: WriteIds(9, found) for name, found in opened.items()}

    def open_replayed(self) -> frozenset[int]:
        return frozenset(one for one, written in self.open.items() if written)

    def replay_commit(self, _policy: str, transaction: int, _db: str, written: Sequence[WriteEvent]) -> None:
        self._look("commit")
        self.open.pop(transaction, None)
        self.told += written

    def replay_abort(self, _policy: str, transaction: int) -> None:
        self._look("abort")
        self.open.pop(transaction, None)

    def _look(self, end: str) -> None:
        self.seen[end] = bases(self.root)
        if self.dies == end:
            self.dies = ""
            raise KeyboardInterrupt


def bases(root: Path) -> list[str]:
    """The bases that readers look at, by what the directories hold."""
    return sorted(str(one.relative_to(root / "db")) for one in root.rglob("base_*") if one.is_dir())


def notes(root: Path) -> list[str]:
    return sorted(one.name for one in (root / "db/.repl/truncations").glob("[!.]*"))


@pytest.fixture(params=[False, True], ids=["last", "feeds"])
def target(tmp_path: Path, request: pytest.FixtureRequest) -> Target:
    home, storage = f"{tmp_path.as_uri()}/db", Storage((Root(uri=tmp_path.as_uri()),))
    policy = SimpleNamespace(external_root=None, functions_root=None, target=SimpleNamespace(paths=(), roots=()), locations={})
    return Target(Server(home, tmp_path, feeds=request.param), storage, policy, storage)  # type: ignore[arg-type]


def server(target: Target) -> Server:
    assert isinstance(target.metastore, Server)
    return target.metastore


def truncate(target: Target, evid: int, table: str, names: tuple[str, ...], write_id: int) -> None:
    TruncateTransactional(evid, table, names, write_id).carry_out(target, "db")


def commit(target: Target, transaction: int = 5, written: tuple[Written, ...] = (), *, more: bool = True) -> None:
    ReplayCommit(9, "t", "p", transaction, written, more).carry_out(target, "db")


def test_a_truncation_is_seen_from_its_commit_on(target: Target, tmp_path: Path) -> None:
    """Readers of the replica saw an empty table from the event on, a killed load's until the next one."""
    truncate(target, 3, "t", ("",), 7)
    truncate(target, 4, "p", ("ds=1",), 3)
    truncate(target, 5, "p", ("ds=3", "ds=gone"), 3)
    assert bases(tmp_path) == []
    truncate(target, 6, "u", ("",), 2)  # of another transaction
    commit(target)
    emptied = ["p/ds=1/base_0000003", "p/ds=3/base_0000003", "t/base_0000007"]
    assert server(target).seen["commit"] == bases(tmp_path) == emptied
    assert (tmp_path / "db/t/base_0000007/_metadata_acid").exists()
    assert notes(tmp_path) == ["6-2-u"]
    told = {(one.table, one.partition, one.write_id) for one in server(target).told}
    assert told == ({("t", "", 7), ("p", "ds=1", 3), ("p", "ds=3", 3)} if server(target).feeds else set())
    commit(target, 6)
    assert (bases(tmp_path)[-1], notes(tmp_path)) == ("u/base_0000002", [])


def test_a_commit_that_is_killed_is_repeated(target: Target, tmp_path: Path) -> None:
    truncate(target, 3, "t", ("",), 7)
    server(target).dies = "commit"
    with pytest.raises(KeyboardInterrupt):
        commit(target)
    commit(target)
    assert (bases(tmp_path), notes(tmp_path)) == (["t/base_0000007"], [])
    assert len(server(target).told) == server(target).feeds


def test_notes_of_ended_transactions_are_forgotten(target: Target, tmp_path: Path) -> None:
    """A load that is killed after a commit leaves one: what takes the table's name and write id later is not emptied by it."""
    truncate(target, 3, "t", ("",), 7)
    (note,) = (tmp_path / "db/.repl/truncations").iterdir()
    (note.parent / ".3-7-t.0123456789abcdef.tmp").touch()  # a killed load may leave such
    text = note.read_bytes()
    commit(target)
    note.write_bytes(text)
    rmtree(tmp_path / "db/t")
    server(target).open, server(target).told = {8: {"t": 7}}, []
    commit(target, 8)
    assert (bases(tmp_path), notes(tmp_path), server(target).told) == ([], [], [])
    note.write_bytes(text)
    server(target).open = {6: {"u": 2}}
    commit(target, 9)
    assert notes(tmp_path) == ["3-7-t"], "it may be one of the open transaction, of a table renamed since"
    commit(target, 6)
    assert (bases(tmp_path), notes(tmp_path)) == ([], [])


def test_a_table_may_have_another_name_by_the_commit(target: Target, tmp_path: Path) -> None:
    truncate(target, 3, "t", ("",), 7)
    truncate(target, 4, "p", ("ds=2",), 3)
    there, opened = server(target).tables_there, server(target).open[5]
    there["n"], there["q"] = there.pop("t"), there.pop("p")
    opened["n"], opened["q"] = opened.pop("t"), opened.pop("p")
    for old, new in (("t", "n"), ("p", "q")):
        (tmp_path / "db" / old).rename(tmp_path / "db" / new)
    commit(target)
    assert bases(tmp_path) == ["n/base_0000007", "q/ds=2/base_0000003"]


def test_nothing_is_left_of_an_aborted_truncation(target: Target, tmp_path: Path) -> None:
    truncate(target, 3, "t", ("",), 7)
    truncate(target, 4, "u", ("",), 2)
    ReplayAbort(9, "t", "p", 5).carry_out(target, "db")
    assert [str(one.relative_to(tmp_path / "db")) for one in tmp_path.rglob("*_metadata_acid")] == [
        "u/.repl-base_0000002/_metadata_acid"
    ]
    assert (server(target).open, server(target).told, notes(tmp_path)) == ({6: {"u": 2}}, [], ["4-2-u"])


def test_a_damaged_note_is_told(target: Target, tmp_path: Path) -> None:
    truncate(target, 3, "t", ("",), 7)
    (note,) = (tmp_path / "db/.repl/truncations").iterdir()
    note.write_text("t")
    with pytest.raises(ReplicationError, match=r"3-7-t is damaged.*delete it, and repair t"):
        commit(target)
    assert bases(tmp_path) == []


def test_a_truncation_is_not_written_outside(target: Target, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    elsewhere = Table("t", "db", sd=StorageDescriptor(location=f"{tmp_path.as_uri()}/hr.db/t"), partitionKeys=[])
    monkeypatch.setattr(server(target), "table", lambda *_: elsewhere)
    with pytest.raises(Refused, match="lies outside"):
        truncate(target, 3, "t", ("",), 7)
    assert not (tmp_path / "hr.db").exists()
    assert notes(tmp_path) == []


def test_an_overwritten_table_is_seen_whole(target: Target, tmp_path: Path) -> None:
    files = tuple(FileRef(f"hdfs://s/t/base_0000007/{name}", subdir="base_0000007") for name in "ab")
    written = Written("t", "t", "", 7, Content(files, "9-0"), write_id_allocated=True)
    for name in "ab":
        target.storage.write(f"{server(target).home}/t/.repl-base_0000007/{name}", b"")
    assert bases(tmp_path) == []
    for _ in range(2):  # a load that is killed after the commit repeats it
        commit(target, written=(written,), more=False)
        assert server(target).seen["commit"] == bases(tmp_path) == ["t/base_0000007"]
        assert sorted(one.name for one in (tmp_path / "db/t/base_0000007").iterdir()) == ["a", "b"]


def test_what_is_in_its_place_stays(target: Target, tmp_path: Path) -> None:
    base = Base("t", "", 7, f"{server(target).home}/t")
    target.storage.write(f"{base.place}/a", b"")
    target.storage.write(f"{base.staged}/left", b"")
    base.show(target.storage)
    assert [one.name for one in (tmp_path / "db/t").rglob("*")] == ["base_0000007", "a"]
