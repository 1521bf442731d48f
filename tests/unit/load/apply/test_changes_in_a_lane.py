"""Where the changes of one lane find what those before them leave."""

from __future__ import annotations

from itertools import count
from threading import Barrier

import pytest

from hive_replication.errors import ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.load.apply.change_data import with_data
from hive_replication.load.apply.placement import Placer
from hive_replication.load.layout.directories import staging_name
from hive_replication.load.layout.live_locations import Locations
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target_boundary import TargetBoundary
from hive_replication.load.replica.target_view import KnownObjects
from hive_replication.metastore.types import FieldSchema, Partition, StorageDescriptor, Table
from hive_replication.storage import Storage
from tests.unit.load.apply.fakes import Metastore, content, replica


def parts_of(base: str) -> list[Partition]:
    return [Partition(values=["1"], sd=StorageDescriptor(location=f"{base}/t/ds=1"))]


def carried_out(storage: Storage, base: str, *operations: op.Operation, append: str = "in_place") -> dict[str, str]:
    """The files of t, or of its partition ds=1, and their content after the operations of a lane, one after another."""
    name = next(iter(operations[-1].contents))[0]
    metastore = Metastore({"t": f"{base}/t"}, parts_of(base) if name else ())
    metastore.keys = [FieldSchema("ds", "string", "")] if name else []
    target = replica(metastore, storage, append=append)
    placer = Placer(target, "sales", base, lambda: Locations(()), KnownObjects(metastore, "sales", ReplicaState()))  # type: ignore[arg-type]
    found = placer.place(LanePlan(("t",), 0, operations))
    for _, task in found.tasks:
        storage.write(task.target, task.file.checksum.encode())
    current: Table | Partition = metastore.parts[0] if name else metastore.table("sales", "t")
    boundary = TargetBoundary(target, "sales", base)
    for number, one in enumerate(operations):
        if isinstance(one, op.ReplaceData | op.AppendData):
            key = number, one.partition
            current = with_data(storage, boundary, current, one, "sales.t", found.directories[key], found.modes[key])
    location = str(current.sd.location)
    return {name: storage.read(status.uri).decode() for name, status in storage.named_files(location).items()}


def numbered(number: int, *files: str) -> op.Content:
    return op.Content(
        tuple(FileRef(f"hdfs://src/t/{name}", name) for name in files), staging_name(number, 1, transactional=False)
    )


def replaced(number: int, name: str, *files: str, compare: bool = False, table: str = "t") -> op.ReplaceData:
    return op.ReplaceData(number, table, name, None, numbered(number, *files), compare=compare)  # type: ignore[arg-type]


def appended(number: int, name: str, *files: str, table: str = "t") -> op.AppendData:
    return op.AppendData(number, table, name, None, numbered(number, *files))  # type: ignore[arg-type]


@pytest.mark.parametrize("append", ["in_place", "atomic"])
@pytest.mark.parametrize("name", ["", "ds=1"])
def test_what_comes_again_after_a_truncation_in_the_same_lane_is_there(
    storage: Storage, base: str, name: str, append: str
) -> None:
    live = f"{base}/t/{name}".rstrip("/")
    for file in ("one", "two"):
        storage.write(f"{live}/{file}", file.encode())
    both = {"one": "one", "two": "two"}
    assert carried_out(storage, base, replaced(7, name), appended(8, name, "one", "two"), append=append) == both
    assert carried_out(storage, base, replaced(7, name), replaced(8, name, "one", "two", compare=True)) == both
    overwritten = replaced(7, name, "two"), appended(8, name, "one"), replaced(9, name, "one", "two", compare=True)
    assert carried_out(storage, base, *overwritten, append=append) == both


def test_a_table_renamed_after_its_truncation_is_the_same_one(storage: Storage, base: str) -> None:
    storage.write(f"{base}/t/one", b"one")
    renamed = op.RenameTable(8, "t", Table(tableName="u"))
    assert carried_out(storage, base, replaced(7, ""), renamed, appended(9, "", "one", table="u")) == {"one": "one"}


def test_what_an_append_before_it_brings_is_replaced_by_a_listing_without_it(storage: Storage, base: str) -> None:
    storage.write(f"{base}/t/one", b"one")
    assert carried_out(storage, base, appended(7, "", "two"), replaced(8, "", "one", compare=True)) == {"one": "one"}


def test_a_listing_takes_away_what_the_source_no_longer_has(storage: Storage, base: str) -> None:
    """Of an INSERT without a file list nobody knows whether it was an overwrite."""
    for file in ("one", "two"):
        storage.write(f"{base}/t/{file}", file.encode())
    assert carried_out(storage, base, replaced(7, "", "two", "three", compare=True)) == {"two": "two", "three": "three"}


def test_listings_after_each_other_in_a_lane_copy_only_what_is_new(storage: Storage, base: str) -> None:
    """External tables of which no event names files."""
    metastore = Metastore({"t": f"{base}/t"})
    placer = Placer(
        replica(metastore, storage), "sales", base, lambda: Locations(()), KnownObjects(metastore, "sales", ReplicaState())
    )  # type: ignore[arg-type]
    storage.write(f"{base}/t/one", b"one")
    listings = [
        replaced(number, "", *files, compare=True) for number, files in enumerate([["one", "two"], ["one", "two", "three"]])
    ]
    lane = placer.place(LanePlan(("t",), 0, (*listings, replaced(3, "", "one", "two", "three", compare=True))))
    assert [(key[0], task.file.relative) for key, task in lane.tasks] == [(0, "two"), (1, "three")]
    assert lane.modes == {(0, ""): "append", (1, ""): "append", (2, ""): "same"}


def test_an_append_of_a_file_that_is_nowhere_fails(storage: Storage, base: str) -> None:
    storage.mkdirs(f"{base}/t")
    table = Table(tableName="t", dbName="sales", sd=StorageDescriptor(location=f"{base}/t"))
    boundary = TargetBoundary(replica(Metastore({}), storage), "sales", base)
    with pytest.raises(ReplicationError, match="t/two, which event 7 adds, is neither there nor staged"):
        with_data(
            storage, boundary, table, op.AppendData(7, "t", "", table, content("two")), "sales.t", f"{base}/.repl/7-1", "append"
        )


def test_the_files_of_many_inserts_appear_many_at_once(storage: Storage, base: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Three calls for each, one after another: a window of 10,000 took most of an hour after all were copied."""
    names = [f"f{number}" for number in range(60)]
    for name in names:
        storage.write(f"{base}/.repl/7-1/{name}", name.encode())
    storage.write(f"{base}/t/f0", b"f0")  # of a run that was killed
    storage.delete(f"{base}/.repl/7-1/f0")
    table = Table(tableName="t", dbName="sales", sd=StorageDescriptor(location=f"{base}/t"))
    boundary, together, rename = (
        TargetBoundary(replica(Metastore({}), storage), "sales", base),
        Barrier(4, timeout=20),
        Storage.rename,
    )
    moved = count()

    def slowly(self: Storage, source: str, target: str) -> None:
        if next(moved) < 56:
            together.wait()  # for three others
        rename(self, source, target)

    monkeypatch.setattr(Storage, "rename", slowly)
    appends = op.AppendData(7, "t", "", table, content(*names))
    with_data(storage, boundary, table, appends, "sales.t", f"{base}/.repl/7-1", "append")
    assert sorted(storage.named_files(f"{base}/t")) == sorted(names)
    assert not storage.exists(f"{base}/.repl/7-1")
