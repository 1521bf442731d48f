"""The layout of ``tree`` dumps, and damaged ones: each is refused with one clear error, never loaded in part."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from threading import Event

import pytest

from hive_replication.dump.format.checkpoints import Checkpoint
from hive_replication.dump.format.record_types import DumpHeader, EventRecord, FileGroup, PartitionRecord, Scope, TableRecord
from hive_replication.dump.format.tree import TreeStore
from hive_replication.errors import BadRequest
from hive_replication.events.event_records import Notification
from hive_replication.events.files import FileRef
from hive_replication.metastore.types import Database, Partition, StorageDescriptor, Table
from hive_replication.policy import Root
from hive_replication.storage import Storage
from tests.bucket import bucket_storage

FILES = (FileRef("hdfs://s/w/f#1%", "00ff", "hdfs://s/cm"), FileRef("hdfs://s/w/g"))


@pytest.fixture
def store(tmp_path: Path) -> TreeStore:
    return TreeStore(Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri())


def dump(store: TreeStore, kind: str) -> Path:
    """A complete dump."""
    writer = store.create(Scope("db"))
    if kind == "bootstrap":
        writer.put_table(TableRecord(Table(tableName="t", dbName="db", sd=StorageDescriptor(parameters={})), FILES))
        part = Partition(values=["1", "2"], sd=StorageDescriptor(parameters={}))
        writer.put_partition(PartitionRecord("t", "p=1/q=2", part, FILES))
        writer.put_partition(PartitionRecord("t", "p=3/q=4", part))
    else:
        writer.put_event(EventRecord(Notification(7, 8, "INSERT", "db", "t", "{}"), (FileGroup("p=1", FILES),)))
        writer.put_event(EventRecord(Notification(8, 8, "INSERT", "db", "t", "{}"), (FileGroup("", FILES),)))
    header = DumpHeader(kind, Scope("db"), "uuid", Database(name="db"), 1, 9, 0, "", 0.0)  # type: ignore[arg-type]
    return Path(writer.finish(header).directory.removeprefix("file://"))


def read(store: TreeStore, directory: Path) -> int:
    reader = store.open(directory.as_uri())
    return len([*reader.tables(), *reader.partitions("t"), *reader.events()])


def test_a_file_is_no_dump(store: TreeStore, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadRequest, match="is a file, and a dump is a directory"):
        store.open((tmp_path / "file").as_uri())


@pytest.mark.parametrize("directory", ["", "sales/1", "/repl/dumps/sales/1"])
def test_a_path_alone_is_no_dump(directory: str, store: TreeStore) -> None:
    """It was refused as if it could lose data."""
    with pytest.raises(BadRequest, match="give it as REPL DUMP printed it"):
        store.open(directory)


def test_layout(store: TreeStore) -> None:
    made = {str(path.relative_to(root)) for root in [dump(store, "bootstrap")] for path in root.rglob("*") if path.is_file()}
    assert made == {
        "_dumpmetadata",
        "_finished_dump",
        "db/_metadata",
        "db/t/_metadata",
        "db/t/_files",
        "db/t/p=1/q=2/_metadata",
        "db/t/p=1/q=2/_files",
        "db/t/p=3/q=4/_metadata",
    }
    root = dump(store, "incremental")
    made = {str(path.relative_to(root)) for path in root.rglob("*") if path.is_file()}
    assert made == {"_dumpmetadata", "_finished_dump", "7/_metadata", "7/p=1/_files", "8/_metadata", "8/_files"}
    assert (root / "8" / "_files").read_text() == "hdfs://s/w/f%231%25#00ff#hdfs://s/cm#\nhdfs://s/w/g###\n"
    assert root.parent.name == "db"


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-3])


def add_line(path: Path) -> None:
    path.write_text(path.read_text() + "hdfs://s/w/extra###\n")


def no_json_object(path: Path) -> None:
    path.write_text("[1]")


def newer(path: Path) -> None:
    path.write_text(json.dumps(json.loads(path.read_text()) | {"version": "99"}))


BOOTSTRAP: list[tuple[Callable[[Path], None], str]] = [
    (Path.unlink, "_finished_dump"),
    (Path.unlink, "_dumpmetadata"),
    (Path.unlink, "db/t/_metadata"),
    (Path.unlink, "db/t/_files"),
    (Path.unlink, "db/t/p=1/q=2/_metadata"),
    (Path.unlink, "db/t/p=1/q=2/_files"),
    (shutil.rmtree, "db/t"),
    (shutil.rmtree, "db/t/p=3"),
    *[(damage, name) for damage in (cut, no_json_object) for name in ("_finished_dump", "_dumpmetadata", "db/t/_metadata")],
    *[(newer, name) for name in ("_dumpmetadata", "db/t/_metadata", "db/t/p=1/q=2/_metadata")],
    (cut, "db/t/p=1/q=2/_metadata"),
    (cut, "db/t/_files"),
    (add_line, "db/t/p=1/q=2/_files"),
]
INCREMENTAL: list[tuple[Callable[[Path], None], str]] = [
    (shutil.rmtree, "7"),
    (Path.unlink, "7/_metadata"),
    (Path.unlink, "7/p=1/_files"),
    (cut, "8/_metadata"),
    (no_json_object, "8/_metadata"),
    (newer, "8/_metadata"),
    (cut, "8/_files"),
    (add_line, "8/_files"),
    (lambda path: path.rename(path.with_name("9")), "8"),
    (lambda path: shutil.copytree(path, path.with_name("10")), "8"),
]


@pytest.mark.parametrize(
    ("kind", "damage", "name"),
    [("bootstrap", *case) for case in BOOTSTRAP] + [("incremental", *case) for case in INCREMENTAL],
)
def test_a_damaged_dump(store: TreeStore, kind: str, damage: Callable[[Path], None], name: str) -> None:
    directory = dump(store, kind)
    assert read(store, directory) == (3 if kind == "bootstrap" else 2)
    damage(directory / name)
    with pytest.raises(BadRequest, match=r"incomplete|unreadable") as error:
        read(store, directory)
    assert directory.as_uri() in str(error.value)
    assert "dump again" in str(error.value)
    assert "\n" not in str(error.value)


def test_a_read_waits_for_its_own_object_only(store: TreeStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Writes of other objects go on meanwhile."""
    write, others = store.storage.write, Event()

    def slow(uri: str, data: bytes) -> None:
        if "/b/" in uri or "p=2" in uri:
            others.wait(10)
        write(uri, data)

    monkeypatch.setattr(store.storage, "write", slow)
    writer = store.create(Scope("db"))
    there = StorageDescriptor(parameters={})
    tables = {name: TableRecord(Table(tableName=name, dbName="db", sd=there, parameters={}), FILES) for name in "ab"}
    parts = [PartitionRecord("a", f"p={n}", Partition(values=[str(n)], sd=there, parameters={}), FILES) for n in (1, 2)]
    for table in tables.values():
        writer.put_table(table)
    for part in parts:
        writer.put_partition(part)
    began = time.monotonic()
    found = writer.table("a"), writer.partition("a", "p=1")
    writer.drop_partition("a", "p=1")
    assert time.monotonic() - began < 5
    others.set()
    assert (*found, writer.table("b"), *writer.partitions("a")) == (tables["a"], parts[0], tables["b"], parts[1])
    writer.drop_table("a")
    assert writer.table("a") is None


@pytest.mark.parametrize("table", [None, "t"])
@pytest.mark.parametrize("database", ["2024", "_removed", "_attempt_1", "_dumpmetadata", "_metadata", "_functions"])
def test_a_database_whose_name_is_something_else_in_a_dump(store: TreeStore, database: str, table: str | None) -> None:
    scope = Scope(database, table)
    writer = store.create(scope, "a request")
    writer.put_table(TableRecord(Table(tableName="t", dbName=database, sd=StorageDescriptor(parameters={})), FILES))
    part = Partition(values=["1", "2"], sd=StorageDescriptor(parameters={}))
    writer.put_partition(PartitionRecord("t", "p=1/q=2", part, FILES))
    header = DumpHeader("bootstrap", scope, "uuid", Database(name=database), 1, 9, 0, "", 0.0)
    directory = writer.finish(header).directory
    reader = store.open(directory)
    assert [one.name for one in reader.tables()] == ["t"]
    assert [one.name for one in reader.partitions("t")] == ["p=1/q=2"]
    assert list(reader.events()) == []
    assert store.remove(directory) > 0
    assert store.dumps(database) == []


def test_an_interrupted_dump_of_a_database_with_the_name_of_a_mark_is_resumed(store: TreeStore) -> None:
    writer = store.create(Scope("_removed"), "a request")
    writer.put_table(TableRecord(Table(tableName="t", dbName="_removed", sd=StorageDescriptor(parameters={})), FILES))
    writer.keep(Checkpoint(5, "hash of 5", {"t": (3, 4)}))
    writer.suspend()
    assert store.create(Scope("_removed"), "a request").done is not None


@pytest.mark.parametrize(("scheme", "calls"), [("hdfs", 2), ("memory", 13)])
def test_a_dump_on_hdfs_is_removed_by_one_call(monkeypatch: pytest.MonkeyPatch, scheme: str, calls: int) -> None:
    """There was one for each event, with the lock held. Other stores delete file by file, and the mark goes last."""
    storage = bucket_storage(monkeypatch, f"{scheme}://bucket")
    store, deleted, real = TreeStore(storage, f"{scheme}://bucket/dumps"), list[str](), Storage.delete
    writer = store.create(Scope("db"))
    for number in range(10):
        writer.put_event(EventRecord(Notification(number, 8, "INSERT", "db", "t", "{}"), ()))
    directory = writer.finish(DumpHeader("incremental", Scope("db"), "uuid", Database(name="db"), 0, 9, 0, "", 0.0)).directory

    def delete(storage: Storage, uri: str, *, recursive: bool = False) -> bool:
        deleted.append(uri)
        return real(storage, uri, recursive=recursive)

    monkeypatch.setattr(Storage, "delete", delete)
    store.remove(directory)
    assert (len(deleted), deleted[0], deleted[-1]) == (calls, f"{directory}/_finished_dump", directory)
    assert storage.files(f"{store.root}/db", hidden=True) == []
