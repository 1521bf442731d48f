# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
"""Packed dumps against a plain dictionary, gone on with, read by Spark's columns, and damaged: refused, never loaded in part."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hive_metastore.ttypes import SQLCheckConstraint
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hive_replication.dump.format import packed_parquet, packed_parquet_sizes
from hive_replication.dump.format import packed_writer as packed
from hive_replication.dump.format.checkpoints import Checkpoint
from hive_replication.dump.format.packed_store import PackedStore
from hive_replication.dump.format.record_types import DumpHeader, EventRecord, FileGroup, PartitionRecord, Scope, TableRecord
from hive_replication.errors import BadRequest
from hive_replication.events.event_records import Notification
from hive_replication.events.files import FileRef
from hive_replication.metastore.constraints import Constraint
from hive_replication.metastore.types import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table
from hive_replication.policy import Root
from hive_replication.storage import Storage

FILES = (FileRef("hdfs://s/w/f#1%", "00ff", "hdfs://s/cm"), FileRef("hdfs://s/w/g"))
HEADER = DumpHeader("bootstrap", Scope("db"), "uuid", Database(name="db"), 1, 9, 0, "", 0.0)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> PackedStore:
    monkeypatch.setattr(packed, "_FULL", 7)
    return PackedStore(Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri())


def table(name: str, *files: FileRef) -> TableRecord:
    return TableRecord(Table(tableName=name, dbName="db", sd=StorageDescriptor(parameters={}), parameters={}), files)


def partition(owner: str, number: int, *files: FileRef) -> PartitionRecord:
    return PartitionRecord(owner, f"p={number}", Partition(values=[str(number)], sd=StorageDescriptor(location="l")), files)


def event(evid: int, *files: FileRef) -> EventRecord:
    return EventRecord(Notification(evid, 8, "INSERT", "db", "t", "{}"), (FileGroup("p=1", files),))


CHANGES = st.tuples(
    st.sampled_from(["table", "part", "drop", "drop part"]), st.sampled_from("ab"), st.integers(0, 5), st.integers(0, 2)
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)
@given(changes=st.lists(CHANGES, max_size=40))
def test_what_was_put_last_is_there(store: PackedStore, changes: list[tuple[str, str, int, int]]) -> None:
    writer = store.create(Scope("db"))
    tables, parts = dict[str, TableRecord](), dict[tuple[str, str], PartitionRecord]()
    for kind, name, number, files in changes:
        match kind:
            case "table":
                tables[name] = table(name, *FILES[:files])
                writer.put_table(tables[name])
            case "part":
                record = partition(name, number, *FILES[:files])
                parts[name, record.name] = record
                writer.put_partition(record)
            case "drop":
                tables.pop(name, None)
                parts = {key: record for key, record in parts.items() if key[0] != name}
                writer.drop_table(name)
            case _:
                parts.pop((name, f"p={number}"), None)
                writer.drop_partition(name, f"p={number}")
        assert writer.table(name) == tables.get(name)
        assert writer.partition(name, f"p={number}") == parts.get((name, f"p={number}"))
    for name in "ab":
        assert list(writer.partitions(name)) == [parts[key] for key in sorted(parts) if key[0] == name]
    result = writer.finish(HEADER)
    assert (result.tables, result.partitions) == (len(tables), len(parts))
    assert result.files == sum(len(record.files) for record in (*tables.values(), *parts.values()))
    reader = store.open(result.directory)
    assert list(reader.tables()) == [tables[name] for name in sorted(tables)]
    for name in "ab":
        assert list(reader.partitions(name)) == [parts[key] for key in sorted(parts) if key[0] == name]


def test_an_interrupted_dump_is_gone_on_with(store: PackedStore) -> None:
    first = store.create(Scope("db"), "the request")
    for evid in range(1, 10):
        first.put_event(event(evid, *FILES))
    first.keep(Checkpoint(9, "hash"))
    for evid in range(10, 14):
        first.put_event(event(evid, *FILES))
    first.suspend()
    second = store.create(Scope("db"), "the request")
    assert (second.directory, second.number_of_events) == (first.directory, 9)
    assert second.done is not None
    assert second.done.evid == 9
    for evid in range(10, 12):
        second.put_event(event(evid))
    result = second.finish(HEADER)
    assert (result.events, result.files) == (11, 18)
    found = list(store.open(result.directory).events())
    assert found == [event(evid, *(FILES if evid < 10 else ())) for evid in range(1, 12)]


def dump(store: PackedStore) -> Path:
    writer = store.create(Scope("db"))
    writer.put_table(table("t"))
    for number in range(20):
        writer.put_partition(partition("t", number, *FILES))
    return Path(writer.finish(HEADER).directory.removeprefix("file://"))


def test_the_files_to_copy_are_columns(store: PackedStore) -> None:
    rows = [row for part in dump(store).glob("*.parquet") for row in pq.read_table(part).to_pylist()]
    assert {row["name"] for row in rows if row["kind"] == "partition"} == {f"p={number}" for number in range(20)}
    files = [(file["uri"], file["checksum"]) for row in rows for file in row["files"]]
    assert sorted(files) == sorted((file.uri, file.checksum) for file in FILES * 20)


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-10])


def other_rows(path: Path) -> None:
    pq.write_table(pq.read_table(path).slice(1), path)


def other_columns(path: Path) -> None:
    pq.write_table(pq.read_table(path).drop(["evid"]), path)


@pytest.mark.parametrize("damage", [Path.unlink, cut, other_rows, other_columns])
@pytest.mark.parametrize("name", ["_dumpmetadata", "_finished_dump", "part-00000.parquet", "part-00003.parquet"])
def test_a_damaged_dump(store: PackedStore, damage: Callable[[Path], None], name: str) -> None:
    directory = dump(store)
    if damage in (other_rows, other_columns) and not name.startswith("part"):
        return
    damage(directory / name)
    with pytest.raises(BadRequest, match=r"incomplete|unreadable") as error:
        list(store.open(directory.as_uri()).partitions("t"))
    assert directory.as_uri() in str(error.value)
    assert "dump again" in str(error.value)
    assert "\n" not in str(error.value)


def long_partition(number: int) -> PartitionRecord:
    columns = [FieldSchema(name="c", type=f"struct<{'a:int,' * 2_400}z:int>")]
    return PartitionRecord("t", f"p={number}", Partition(values=[str(number)], sd=StorageDescriptor(cols=columns)))


def partition_with_schema(number: int) -> PartitionRecord:
    serde = SerDeInfo(parameters={"avro.schema.literal": f"{number}{'x' * 14_000}"})
    return PartitionRecord("t", f"p={number}", Partition(values=[str(number)], sd=StorageDescriptor(serdeInfo=serde)))


def spark_table(number: int) -> TableRecord:
    found = table(f"t{number}")
    found.table.parameters = {"spark.sql.sources.schema": '{"name":"c"},' * 5_700}
    return found


def table_with_check(number: int) -> TableRecord:
    row = SQLCheckConstraint(table_db="db", table_name=f"t{number}", check_expression="c > 0 and " * 10_000, dc_name="c")
    return replace(table(f"t{number}"), constraints=(Constraint("cks", (row,)),))


def event_of_many_partitions(number: int) -> EventRecord:
    groups = tuple(FileGroup(f"day={one:02000}", ()) for one in range(100))
    return EventRecord(Notification(number + 1, 8, "ALTER_TABLE", "db", "t", "{}"), groups)


@pytest.mark.parametrize(
    ("made", "number"),
    [
        (long_partition, 1_000),
        (partition_with_schema, 1_000),
        (spark_table, 150),
        (table_with_check, 150),
        (event_of_many_partitions, 70),
    ],
)
def test_what_is_long_is_written_to_files_that_can_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made: Callable[[int], Any], number: int
) -> None:
    monkeypatch.setattr(packed, "_FULL", packed._FULL // 10)
    monkeypatch.setattr(packed_parquet_sizes, "_MOST_BYTES", packed_parquet_sizes._MOST_BYTES // 10)
    store = PackedStore(Storage((Root(uri=tmp_path.as_uri()),)), tmp_path.as_uri())
    writer = store.create(Scope("db"))
    puts = {TableRecord: writer.put_table, PartitionRecord: writer.put_partition, EventRecord: writer.put_event}
    for record in map(made, range(number)):
        puts[type(record)](record)
    reader = store.open(writer.finish(HEADER).directory)
    assert sum(1 for found in (reader.tables(), reader.partitions("t"), reader.events()) for _ in found) == number


def test_one_record_is_found_without_decoding_others(store: PackedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_FULL", 50)
    writer = store.create(Scope("db"))
    written = [partition("t", number) for number in range(100)]
    for record in written:
        writer.put_partition(record)
    decoded: list[str] = []
    decode = packed_parquet._record

    def counting(kind: packed_parquet.Kind, row: dict[str, Any]) -> packed_parquet.Record:
        decoded.append(row["name"])
        return decode(kind, row)

    monkeypatch.setattr(packed_parquet, "_record", counting)
    assert [writer.partition("t", record.name) for record in written] == written
    assert len(decoded) == 100


def test_tables_that_are_read_back_one_by_one_share_a_file(store: PackedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """A snapshot of transactional tables reads each back, and puts it again with its files."""
    monkeypatch.setattr(packed, "_FULL", 1_000)
    writer = store.create(Scope("db"))
    names = [f"t{number}" for number in range(10)]
    for name in names:
        writer.put_table(table(name))
        writer.put_partition(partition(name, 2))
        writer.put_partition(partition(name, 1))
    for name in names:
        assert writer.table(name) == table(name)
        writer.put_table(table(name, *FILES))
        for part in writer.partitions(name):
            writer.put_partition(replace(part, files=FILES))
    directory = Path(writer.finish(HEADER).directory.removeprefix("file://"))
    assert [path.name for path in directory.glob("*.parquet")] == ["part-00000.parquet"]
    reader = store.open(directory.as_uri())
    assert list(reader.tables()) == [table(name, *FILES) for name in names]
    assert list(reader.partitions("t3")) == [partition("t3", 1, *FILES), partition("t3", 2, *FILES)]


def test_the_files_of_a_table_are_read_one_after_the_other(store: PackedStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "_FULL", 300)
    most: list[int] = []
    for number in (600, 3_000):
        writer = store.create(Scope("db"))
        written = sorted((partition("t", one, *FILES) for one in range(number)), key=lambda record: record.name)
        for record in written:
            writer.put_partition(record)
        reader, before = store.open(writer.finish(HEADER).directory), pa.total_allocated_bytes()
        with_bytes = [(record.name, pa.total_allocated_bytes() - before) for record in reader.partitions("t")]
        assert [name for name, _ in with_bytes] == [record.name for record in written]
        most.append(max(taken for _, taken in with_bytes))
    assert most[1] < 1.5 * most[0]
