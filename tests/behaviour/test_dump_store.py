"""What every dump store does alike: one suite over the formats, on local files and on a real HDFS."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from hive_replication.dump.format.interface import DumpStore, DumpWriter
from hive_replication.dump.format.packed_store import PackedStore
from hive_replication.dump.format.record_types import DumpHeader, EventRecord, FileGroup, PartitionRecord, Scope, TableRecord
from hive_replication.dump.format.tree import TreeStore
from hive_replication.errors import BadRequest, Refused
from hive_replication.events.event_records import Notification
from hive_replication.events.files import FileRef
from hive_replication.metastore.names import partition_name
from hive_replication.metastore.types import Database, Partition, StorageDescriptor, Table
from hive_replication.policy import Root
from hive_replication.storage import Storage

SPECIAL = ["plain", "a b%c", "ü☃😀", "x/y#z?", "'\"*[]{}^\\:=", "\x01 ", "_hidden", ".hidden", "_metadata", "100%25"]
FORMATS: dict[str, Callable[[Storage, str], DumpStore]] = {
    "tree": TreeStore,
    "packed": PackedStore,
    "either": partial(PackedStore, above=10),
}


@pytest.fixture(params=["file", pytest.param("hdfs", marks=pytest.mark.servers)])
def storage(request: pytest.FixtureRequest, tmp_path: Path, unique: str) -> Iterator[tuple[Storage, str]]:
    if request.param == "file":
        yield Storage((Root(uri=tmp_path.as_uri()),)), f"{tmp_path.as_uri()}/dumps"
        return
    side = request.getfixturevalue("source")
    made = Storage((Root(uri=side.hdfs, webhdfs=side.webhdfs),))
    yield made, f"{side.hdfs}{unique}/dumps"
    made.delete(f"{side.hdfs}{unique}", recursive=True)


@pytest.fixture(params=FORMATS)
def store(request: pytest.FixtureRequest, storage: tuple[Storage, str]) -> DumpStore:
    return FORMATS[request.param](*storage)


def files(*names: str) -> tuple[FileRef, ...]:
    return tuple(FileRef(f"hdfs://s/w/{name}", "00ff", "hdfs://s/cm", "" if n % 2 else "sub/dir") for n, name in enumerate(names))


def table(name: str, *names: str, **parameters: str) -> TableRecord:
    return TableRecord(
        Table(tableName=name, dbName="db", sd=StorageDescriptor(parameters={}), parameters=parameters), files(*names)
    )


def partition(owner: str, value: str, *names: str) -> PartitionRecord:
    part = Partition(
        values=[value, "2"], dbName="db", tableName=owner, sd=StorageDescriptor(parameters={}), parameters={"v": value}
    )
    return PartitionRecord(owner, partition_name(["p", "q"], part.values), part, files(*names))


def event(evid: int, *groups: FileGroup) -> EventRecord:
    return EventRecord(Notification(evid, 8, "INSERT", "db", "t", '{"é": "\\u0001"}'), groups)


def header(kind: str, scope: Scope) -> DumpHeader:
    database = Database(name="db", locationUri="hdfs://s/w", parameters={"é": "ü"})
    return DumpHeader(kind, scope, "uuid", database, 3, 9, 8, "ff", 1.5, {"acid": "not replicated"})  # type: ignore[arg-type]


def finish(writer: DumpWriter, kind: str = "bootstrap", scope: Scope | None = None) -> str:
    scope = scope or Scope("db")
    result = writer.finish(header(kind, scope))
    assert (result.directory, result.last_evid, result.header) == (writer.directory, 9, header(kind, scope))
    return result.directory


def test_objects_come_back_in_order(store: DumpStore) -> None:
    writer = store.create(Scope("db"))
    tables = [table("b", "f#1", "g%20", "h ü"), table("a", note="naïve ☃\x01"), table("c", "x")]
    parts = [partition("a", value, *(["f"] if value != "plain" else [])) for value in SPECIAL]
    for record in tables:
        writer.put_table(record)
    for part in parts:
        writer.put_partition(part)
    reader = store.open(finish(writer))
    assert reader.header == header("bootstrap", Scope("db"))
    assert list(reader.tables()) == sorted(tables, key=lambda record: record.name)
    assert list(reader.partitions("a")) == sorted(parts, key=lambda record: record.name)
    assert list(reader.partitions("b")) == []
    assert list(reader.events()) == []


def test_events_come_back_in_order_of_their_ids(store: DumpStore) -> None:
    writer = store.create(Scope("db", "t"))
    special = [partition_name(["p"], [value]) for value in SPECIAL]
    written = [
        event(10, FileGroup("", files("f#1", "g%20"))),
        event(9),
        event(100, *(FileGroup(name, files(f"f{n}"), listed=n % 2 == 0) for n, name in enumerate(special))),
        event(11, FileGroup("p=1", (), listed=True), FileGroup("p=1/q=2", files("x"))),
    ]
    for record in written:
        writer.put_event(record)
    result = writer.finish(header("incremental", Scope("db", "t")))
    assert (result.events, result.files, result.tables, result.partitions) == (4, 2 + len(special) + 1, 0, 0)
    reader = store.open(result.directory)
    assert list(reader.events()) == sorted(written, key=lambda record: record.notification.evid)
    assert reader.header.scope == Scope("db", "t")


def test_objects_can_be_read_back_replaced_and_dropped_until_the_end(store: DumpStore) -> None:
    writer = store.create(Scope("db"))
    assert (writer.table("a"), writer.partition("a", "p=1/q=2"), list(writer.partitions("a"))) == (None, None, [])
    writer.put_table(table("a", "f", "g"))
    writer.put_partition(partition("a", "1", "f", "g"))
    writer.put_partition(partition("a", "2"))
    assert writer.table("a") == table("a", "f", "g")
    assert writer.partition("a", "p=1/q=2") == partition("a", "1", "f", "g")
    assert list(writer.partitions("a")) == [partition("a", "1", "f", "g"), partition("a", "2")]
    writer.put_table(table("a", note="fewer files"))
    writer.put_partition(partition("a", "1", "h"))
    writer.drop_partition("a", "p=2/q=2")
    writer.drop_partition("a", "p=absent/q=2")
    writer.drop_table("absent")
    writer.put_table(table("b", "f"))
    writer.put_partition(partition("b", "1", "f"))
    writer.drop_table("b")
    assert (writer.table("b"), list(writer.partitions("b"))) == (None, [])
    writer.put_table(table("b"))
    result = writer.finish(header("bootstrap", Scope("db")))
    assert (result.tables, result.partitions, result.files) == (2, 1, 1)
    reader = store.open(result.directory)
    assert list(reader.tables()) == [table("a", note="fewer files"), table("b")]
    assert list(reader.partitions("a")) == [partition("a", "1", "h")]
    assert list(reader.partitions("b")) == []


def test_the_last_of_many_writes_of_an_object_counts(store: DumpStore) -> None:
    writer = store.create(Scope("db"))
    for number in range(40):
        names = [f"f{n}" for n in range(40 - number)]
        writer.put_table(table("a", *names, number=str(number)))
        writer.put_partition(partition("a", "1", *names))
    reader = store.open(finish(writer))
    assert list(reader.tables()) == [table("a", "f0", number="39")]
    assert list(reader.partitions("a")) == [partition("a", "1", "f0")]


def test_many_partitions(store: DumpStore) -> None:
    writer = store.create(Scope("db"))
    writer.put_table(table("a"))
    written = [partition("a", f"{number:04}", "f") for number in range(300)]
    for part in written:
        writer.put_partition(part)
    reader = store.open(finish(writer))
    assert [record.name for record in reader.tables()] == ["a"]
    assert list(reader.partitions("a")) == written


def test_an_empty_dump_and_two_dumps_at_once(store: DumpStore) -> None:
    first, second = store.create(Scope("db")), store.create(Scope("db"))
    second.put_table(table("a"))
    assert list(store.open(finish(first)).tables()) == []
    assert list(store.open(finish(second)).tables()) == [table("a")]


def test_a_dump_that_is_not_finished_is_refused(store: DumpStore) -> None:
    writer = store.create(Scope("db"))
    writer.put_table(table("a"))
    writer.table("a")
    with pytest.raises(BadRequest, match="incomplete"):
        store.open(writer.directory)
    writer.abandon()
    with pytest.raises(BadRequest, match="no dump"):
        store.open(writer.directory)


def test_directories_that_are_no_dump(store: DumpStore, storage: tuple[Storage, str]) -> None:
    with pytest.raises(BadRequest, match="no dump"):
        store.open(f"{storage[1]}/db/absent")
    with pytest.raises(BadRequest, match="is no dump directory"):
        store.open("not a URI")
    for outside in ("hdfs://elsewhere:1/x", f"{storage[1]}/../../x"):
        with pytest.raises(Refused):
            store.open(outside)
