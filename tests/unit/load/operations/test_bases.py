"""What readers may see of an INSERT OVERWRITE before its transaction is committed: nothing (``AcidUtils.isValidBase``)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.errors import Refused, ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.load.operations.base import Content
from hive_replication.load.operations.bases import is_staged, leave_base, show_base
from hive_replication.load.operations.transactions import ReplayCommit, Written
from hive_replication.metastore.types import FieldSchema, Partition, StorageDescriptor
from hive_replication.policy import Root
from hive_replication.storage import Storage
from tests.bucket import storage_with_bucket
from tests.unit.load.apply.fakes import Metastore, replica

PLACE, STAGED = "base_0000007", ".repl-base_0000007"


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage((Root(uri=tmp_path.as_uri()),))


@pytest.fixture
def table(tmp_path: Path) -> str:
    return f"{tmp_path.as_uri()}/sales.db/t"


def fill(storage: Storage, directory: str, files: str) -> None:
    for name in files:
        storage.write(f"{directory}/{name}", b"")


def base(names: str) -> tuple[FileRef, ...]:
    return tuple(FileRef(f"hdfs://s/t/{PLACE}/{name}", subdir=PLACE) for name in names)


def files(storage: Storage, table: str) -> list[str]:
    return [one.uri.removeprefix(f"{table}/") for one in storage.files(table, hidden=True)]


class Server(Metastore):
    """Notes what of a base is in its place when its transaction is committed."""

    def __init__(self, storage: Storage, table: str) -> None:
        parts = [Partition([day], sd=StorageDescriptor(location=f"{table}/ds={day}")) for day in "12"]
        super().__init__({"t": table}, parts)
        self.storage, self.place, self.seen = storage, table, list[str]()

    def replay_commit(self, *_: object) -> None:
        self.seen = files(self.storage, self.place)


def commit(storage: Storage, metastore: Server, *partitions: str, truncates: bool = False) -> None:
    def written(partition: str) -> Written:
        return Written("t", "t", partition, 7, Content(base("ab"), "9-0"), truncates, write_id_allocated=True)

    target: Any = SimpleNamespace(**vars(replica(metastore, storage)), feeds=lambda _: False)  # type: ignore[arg-type]
    ReplayCommit(9, "t", "p", 5, tuple(map(written, partitions))).carry_out(target, "sales")


@pytest.mark.parametrize("truncates", [False, True])
def test_a_table_is_shown_whole_before_the_commit(storage: Storage, table: str, *, truncates: bool) -> None:
    """A transaction of several statements may have emptied it first, which has left an empty base."""
    metastore = Server(storage, table)
    if truncates:
        leave_base(replica(metastore, storage), "sales", "t", "", 7)
    assert is_staged(storage, table, 7, base("ab"))
    fill(storage, f"{table}/{STAGED}", "ab")
    for _ in range(2):  # a load that is killed after it does it again
        commit(storage, metastore, "", truncates=truncates)
        assert metastore.seen == [f"{PLACE}/a", f"{PLACE}/b"]


def test_so_are_partitions(storage: Storage, table: str) -> None:
    metastore = Server(storage, table)
    metastore.keys = [FieldSchema("ds", "string", "")]
    for day in "12":
        fill(storage, f"{table}/ds={day}/{STAGED}", "ab")
    commit(storage, metastore, "ds=1", "ds=2")
    assert metastore.seen == [f"ds={day}/{PLACE}/{name}" for day in "12" for name in "ab"]


def test_nothing_is_committed_that_is_not_there(storage: Storage, table: str) -> None:
    metastore = Server(storage, table)
    storage.mkdirs(table)
    with pytest.raises(ReplicationError, match="went away before its transaction was committed"):
        commit(storage, metastore, "")
    assert metastore.seen == []


def test_nothing_is_moved_outside(storage: Storage, tmp_path: Path) -> None:
    place = f"{tmp_path.as_uri()}/hr.db/t"
    fill(storage, f"{place}/{STAGED}", "ab")
    with pytest.raises(Refused, match="lies outside"):
        commit(storage, Server(storage, place), "")
    assert files(storage, place) == [f"{STAGED}/a", f"{STAGED}/b"]


@pytest.mark.parametrize(("place", "staged", "left"), [("ab", "a", ["ab", ""]), ("a", "ab", ["a", "ab"])])
def test_what_is_staged_is_deleted_where_its_place_has_it(
    storage: Storage, table: str, place: str, staged: str, left: Sequence[str]
) -> None:
    fill(storage, f"{table}/{PLACE}", place)
    fill(storage, f"{table}/{STAGED}", staged)
    assert not is_staged(storage, table, 7, base("ab"))
    if left[1]:
        with pytest.raises(ReplicationError, match="was made meanwhile, without b of"):
            show_base(storage, table, 7)
    else:
        show_base(storage, table, 7)
    assert files(storage, table) == [
        f"{name}/{one}" for name, some in zip((STAGED, PLACE), left[::-1], strict=True) for one in some
    ]


def test_object_stores_which_copy_what_they_rename_have_it_in_its_place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    storage = storage_with_bucket(monkeypatch, tmp_path.as_uri())
    assert not is_staged(storage, "memory://bucket/t", 7, base("ab"))
    fill(storage, f"memory://bucket/t/{STAGED}", "a")
    show_base(storage, "memory://bucket/t", 7)
    assert files(storage, "memory://bucket/t") == [f"{STAGED}/a"]
