"""What is too large for a reader of dumps holds its table: the dump itself can be read, whatever an event or an object has."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from hive_replication.dump.format import bounds, digests, encoding, packed_parquet_sizes
from hive_replication.dump.format import packed_writer as packed
from hive_replication.dump.format.packed_store import PackedStore
from hive_replication.dump.format.record_types import DumpHeader, EventRecord, FileGroup, PartitionRecord, Scope, TableRecord
from hive_replication.events.decoders_by_event_type import UnreadableMessage, decode
from hive_replication.events.event_records import Notification
from hive_replication.events.files import FileRef
from hive_replication.events.transactions import CommitTransaction, TransactionWrite
from hive_replication.events.unpack import UNREADABLE
from hive_replication.load.plan.lanes import refused, window_event
from hive_replication.metastore.types import Database, Partition, StorageDescriptor, Table
from hive_replication.policy import Root
from hive_replication.storage import Storage

HEADER = DumpHeader("incremental", Scope("db"), "uuid", Database(name="db"), 1, 9, 0, "", 0.0)
MIB = 1 << 20


def store(root: Path, above: int) -> PackedStore:
    return PackedStore(Storage((Root(uri=root.as_uri()),)), root.as_uri(), above)


def event(evid: int, message: str, *files: FileRef) -> EventRecord:
    return EventRecord(Notification(evid, 8, "INSERT", "db", "t", message), (FileGroup("p=1", files),), "00")


def files(number: int, path: str = "hdfs://s/w/t") -> tuple[FileRef, ...]:
    return tuple(FileRef(f"{path}/{n}") for n in range(number))


def written(root: Path, above: int, *records: EventRecord) -> list[EventRecord]:
    dumps = store(root, above)
    writer = dumps.create(Scope("db"))
    for record in records:
        writer.put_event(record)
    return list(dumps.open(writer.finish(HEADER).directory).events())


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """The limits of a dump, a hundred times smaller."""
    monkeypatch.setitem(digests.MOST, "_metadata", 800_000)
    monkeypatch.setitem(digests.MOST, "_files", 640_000)
    monkeypatch.setattr(encoding, "MOST_FILES", 5_000)
    monkeypatch.setattr(bounds, "_MOST_BYTES", 1_120_000)
    monkeypatch.setattr(bounds, "_SMALL", 10_000)
    monkeypatch.setattr(packed, "_FULL", 200)
    monkeypatch.setattr(packed_parquet_sizes, "_MOST_BYTES", 1_280_000)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("above", [0, 50], ids=["packed", "tree"])
@pytest.mark.parametrize(
    "large",
    [
        event(2, '"' * 500_000),  # each is written as two characters
        event(2, "{}", *files(5_001)),
        event(2, "{}", *files(3_000, f"hdfs://s/{'x' * 220}")),
        event(2, '{"a":"' + "x" * 700_000 + '"}', *files(4_000, f"hdfs://s/{'x' * 100}")),
    ],
    ids=["message", "files", "paths", "both"],
)
def test_an_event_that_no_reader_takes_is_dumped_as_unreadable(tmp_path: Path, above: int, large: EventRecord) -> None:
    """The dump could not be read, and each new one had the event again."""
    first, found, last = written(tmp_path, above, event(1, "{}", *files(1)), large, event(3, "{}"))
    assert (first, last) == (event(1, "{}", *files(1)), event(3, "{}"))
    assert (found.groups, found.hash) == ((), "00")
    assert replace(found.notification, message="") == replace(large.notification, message="")
    with pytest.raises(UnreadableMessage, match="or than a dump takes"):
        decode(found.notification)


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("above", [0, 50], ids=["packed", "tree"])
@pytest.mark.parametrize("message", ['{"txnid":7}', '"' * 500_000], ids=["files", "message"])
def test_a_commit_that_no_reader_takes_keeps_the_names_of_its_tables(tmp_path: Path, above: int, message: str) -> None:
    """None was held, and they lacked its rows."""
    groups = (FileGroup("p=1", files(3_000), table="b"), FileGroup("", files(3_000), table="a"), FileGroup("p=2", (), table="b"))
    writes = tuple(TransactionWrite(group.table, group.partition, 1) for group in groups)
    large = EventRecord(Notification(2, 8, "COMMIT_TXN", "db", "", message), groups, "00", writes)
    (found,) = written(tmp_path, above, large)
    assert (found.groups, found.writes) == ((FileGroup("", (), table="a"), FileGroup("", (), table="b")), ())
    event = window_event(found)
    if found.notification.message == message:
        event = refused(event, "why")
        assert isinstance(event.event, CommitTransaction)
        assert (event.event.transaction, event.event.writes, event.error) == (7, (), "why")
    else:
        assert (found.notification.message, event.event) == (UNREADABLE, None)
    assert event.names == ("a", "b")


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("above", [0, 50], ids=["packed", "tree"])
def test_large_events_that_a_reader_takes_come_back(tmp_path: Path, above: int) -> None:
    """In Parquet a large one has a file of its own: with what waited before it was more than is read of a file."""
    more = files(5_000, f"hdfs://s/{'x' * 30}")
    records = [event(n, "x" * 390_000) if n % 2 else event(n, '"' * 380_000, *more) for n in range(1, 5)]
    assert written(tmp_path, above, *records) == records


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("above", [0, 50], ids=["packed", "tree"])
def test_an_object_with_too_many_files_is_dumped_like_one_that_could_not_be_listed(tmp_path: Path, above: int) -> None:
    dumps = store(tmp_path, above)
    writer = dumps.create(Scope("db"))
    sd = StorageDescriptor(location="hdfs://s/w/t", parameters={})
    writer.put_table(TableRecord(Table(tableName="t", dbName="db", sd=sd, parameters={}), files(5_001)))
    part = Partition(values=["1"], sd=StorageDescriptor(location="hdfs://s/w/t/p=1", parameters={}), parameters={})
    writer.put_partition(PartitionRecord("t", "p=1", part, files(5_001)))
    reader = dumps.open(writer.finish(replace(HEADER, kind="bootstrap")).directory)
    assert [one.files for one in reader.tables()] == [(FileRef.unreadable_directory("hdfs://s/w/t"),)]
    assert [one.files for one in reader.partitions("t")] == [(FileRef.unreadable_directory("hdfs://s/w/t/p=1"),)]


def test_a_partition_whose_name_is_no_path_does_not_keep_its_database_from_being_dumped(tmp_path: Path) -> None:
    """Its location may be anywhere, and the metastore takes the name."""
    name = f"p={'я' * 130}"
    record = EventRecord(Notification(2, 8, "ADD_PARTITION", "db", "t", "{}"), (FileGroup(name, files(1)),))
    assert written(tmp_path, 50, event(1, "{}"), record) == [event(1, "{}"), record]
    dumps = store(tmp_path / "objects", 50)
    writer = dumps.create(Scope("db"))
    sd = StorageDescriptor(location="hdfs://s/w/t", parameters={})
    writer.put_table(TableRecord(Table(tableName="t", dbName="db", sd=sd, parameters={})))
    part = Partition(values=["я" * 130], sd=StorageDescriptor(location="hdfs://s/odd", parameters={}), parameters={})
    writer.put_partition(PartitionRecord("t", name, part, files(1)))
    reader = dumps.open(writer.finish(replace(HEADER, kind="bootstrap")).directory)
    assert [one.name for one in reader.partitions("t")] == [name]
