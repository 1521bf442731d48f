# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportAttributeAccessIssue=false
# (pyarrow and thrift.TSerialization have no types)
"""The Parquet files of a packed dump: one row a table, partition, function or event, its files as a list of structs.

Rows are sorted within a file, so that a table's partitions are read as one stream in order of their names. Spark reads the
files as they are: ``explode(files)`` gives the table of what there is to copy.
"""

from __future__ import annotations

import heapq
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from io import BytesIO
from itertools import starmap
from typing import Any, Literal, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAcceleratedFactory
from thrift.TSerialization import deserialize, serialize

from hive_replication.dump.format import encoding
from hive_replication.dump.format.packed_parquet_sizes import damaged, require_small
from hive_replication.dump.format.record_types import EventRecord, FunctionRecord, PartitionRecord, TableRecord
from hive_replication.dump.format.validate_objects import whole_partition
from hive_replication.events.files import FileRef
from hive_replication.metastore.types import Partition

Record = TableRecord | PartitionRecord | FunctionRecord | EventRecord
Kind = Literal["event", "function", "partition", "table"]

# Partitions are many: Thrift's own binary form is written and read in C, unlike the text that messages hold.
_BINARY = TBinaryProtocolAcceleratedFactory(string_length_limit=32 << 20, container_length_limit=1_000_000)
_FILE = pa.struct([("group", pa.int32()), *((name, pa.string()) for name in ("uri", "checksum", "cm_root", "subdir"))])
SCHEMA = pa.schema(
    [
        ("kind", pa.string()),
        ("table", pa.string()),
        ("name", pa.string()),
        ("evid", pa.int64()),
        ("record", pa.binary()),
        ("files", pa.list_(_FILE)),
    ]
)
_ROWS = 1_000


class Key(NamedTuple):
    """What a row is about; rows of a file are in this order.

    Args:
        kind: of the record.
        table: of a partition.
        name: of a table, partition or function.
        evid: of an event.
    """

    kind: Kind
    table: str = ""
    name: str = ""
    evid: int = 0


@dataclass(frozen=True)
class Part:
    """One Parquet file, read."""

    rows: pa.Table

    def __len__(self) -> int:
        return int(self.rows.num_rows)

    @cached_property
    def index(self) -> list[Key]:
        """What the rows are about, in order."""
        columns = (self.rows.column(name).to_pylist() for name in Key._fields)
        return list(map(Key, *columns))

    def __contains__(self, key: Key) -> bool:
        number = bisect_left(self.index, key)
        return self.index[number : number + 1] == [key]

    def record(self, key: Key) -> Record:
        """The record of one row, which there has to be: the only one that is decoded."""
        return _record(key, self.rows.slice(bisect_left(self.index, key), 1).to_pylist()[0])

    def stream(self, kind: Kind, table: str = "") -> Iterator[tuple[Key, Record]]:
        """The records of a kind (and table), in order."""
        found = self.rows.filter(pc.and_(pc.equal(self.rows["kind"], kind), pc.equal(self.rows["table"], table)))
        for batch in found.to_batches(max_chunksize=_ROWS):
            for row in batch.to_pylist():
                key = Key(kind, table, row["name"], row["evid"])
                yield key, _record(key, row)

    def only(self, wanted: Callable[[Key], bool]) -> bytes:
        """The file with some of its rows only."""
        return _text(self.rows.filter(pa.array(map(wanted, self.index), pa.bool_())))


def in_order(files: Iterable[tuple[Key, Callable[[], Iterable[tuple[Key, Record]]]]]) -> Iterator[tuple[Key, Record]]:
    """The rows of several files in order; each file is read only when the next row may be its first.

    Args:
        files: each with a key that is not after its first row, and what reads it.
    """

    def rows(first: Key, read: Callable[[], Iterable[tuple[Key, Record]]]) -> Iterator[tuple[Key, Record | None]]:
        yield first, None
        yield from read()

    merged = heapq.merge(*starmap(rows, files), key=lambda one: one[0])
    return ((key, record) for key, record in merged if record is not None)


def key_of(record: Record) -> Key:
    """What a record is about."""
    match record:
        case EventRecord():
            return Key("event", evid=record.notification.evid)
        case PartitionRecord():
            return Key("partition", record.table, record.name)
        case FunctionRecord():
            return Key("function", name=record.name)
        case TableRecord():
            return Key("table", name=record.name)


def number_of_files(record: Record) -> int:
    """Files that a record names."""
    return sum(len(group.files) for group in record.groups) if isinstance(record, EventRecord) else len(record.files)


def weight(record: Record) -> int:
    """How much of a Parquet file a record takes, in files: long texts and wide tables take as much as many of them."""
    # Partitions are many: what is long in them is added up, which is cheaper than to write each twice.
    length = _about(record.partition) if isinstance(record, PartitionRecord) else len(_data(record))
    return 1 + length // 2_000 + number_of_files(record)


def _about(part: Partition) -> int:
    """About how many bytes a partition takes."""
    sd, columns = part.sd, part.sd.cols or ()
    total = 80 * len(columns) + sum(len(one.name) + len(one.type or "") + len(one.comment or "") for one in columns)
    skewed = sd.skewedInfo.skewedColValueLocationMaps if sd.skewedInfo else None
    for texts in (part.parameters, sd.parameters, sd.serdeInfo.parameters if sd.serdeInfo else None, skewed):
        total += sum(map(len, filter(None, texts.values()))) if texts else 0
    return total + (len(serialize(part.colStats, _BINARY)) if part.colStats else 0)


def part_of(records: Iterable[Record]) -> bytes:
    """Records as a Parquet file."""
    rows = [_row(key, record) for key, record in sorted(((key_of(record), record) for record in records), key=lambda one: one[0])]
    return _text(pa.Table.from_pylist(rows, SCHEMA))


def read_part(data: bytes) -> Part:
    """Reads a Parquet file.

    Raises:
        ValueError: it is damaged, not one of a packed dump, or larger than a writer makes one.
    """
    require_small(data, SCHEMA)
    with damaged():
        rows = pq.read_table(BytesIO(data))
    _require_values(rows, *Key._fields, "record", "files")
    return Part(rows)


def first_rows(data: bytes) -> tuple[Counter[str], list[Key]]:
    """What is in a Parquet file: number of records of each kind, and the first row of each kind and, of partitions, table.

    Raises:
        ValueError: as :func:`read_part`.
    """
    require_small(data, SCHEMA)
    with damaged():
        rows = pq.read_table(BytesIO(data), columns=list(Key._fields))
    _require_values(rows, *Key._fields)
    wanted: list[tuple[str, str]] = [("name", "first"), ("evid", "first"), ("name", "count")]
    runs = rows.group_by(["kind", "table"], use_threads=False).aggregate(wanted).to_pylist()
    kinds = Counter[str]()
    for run in runs:
        kinds[run["kind"]] += run["name_count"]
    if unknown := kinds.keys() - {"event", "function", "partition", "table"}:
        raise ValueError(f"it has records of the kind {min(unknown)!r}")
    return kinds, [Key(run["kind"], run["table"], run["name_first"], run["evid_first"]) for run in runs]


def _require_values(rows: pa.Table, *names: str) -> None:
    if absent := [name for name in names if rows[name].null_count]:
        raise ValueError(f"its column {absent[0]} has rows without a value")


def _text(rows: pa.Table) -> bytes:
    sink = BytesIO()
    pq.write_table(rows, sink, compression="zstd", row_group_size=_ROWS * 10)
    return sink.getvalue()


def _row(key: Key, record: Record) -> dict[str, Any]:
    if isinstance(record, EventRecord):
        files = [_file(n, file) for n, group in enumerate(record.groups) for file in group.files]
    else:
        files = [_file(0, file) for file in record.files]
    return key._asdict() | {"record": _data(record), "files": files}


def _data(record: Record) -> bytes:
    """A record without its files."""
    match record:
        case EventRecord():
            return encoding.event_text(record)
        case PartitionRecord():
            return serialize(record.partition, _BINARY)
        case FunctionRecord():
            return encoding.function_text(record)
        case TableRecord():
            return encoding.table_text(record)


def _file(group: int, file: FileRef) -> dict[str, Any]:
    return {"group": group, "uri": file.uri, "checksum": file.checksum, "cm_root": file.cm_root, "subdir": file.subdir}


def _record(key: Key, row: dict[str, Any]) -> Record:
    record = _decoded(key.kind, row)
    if key_of(record) != key:
        raise ValueError(f"the row of {key} is about {key_of(record)}")
    return record


def _decoded(kind: Kind, row: dict[str, Any]) -> Record:
    if any(file is None or None in file.values() for file in row["files"]):
        raise ValueError("a file has no value in some column")
    files = [(file["group"], FileRef(file["uri"], file["checksum"], file["cm_root"], file["subdir"])) for file in row["files"]]

    def all_files(number: int) -> tuple[FileRef, ...]:
        if number != len(files):
            raise ValueError(f"{row['name']} has {len(files)} files instead of {number}")
        return tuple(file for _, file in files)

    match kind:
        case "event":
            event, numbers = encoding.event_of(row["record"])
            of_group: list[list[FileRef]] = [[] for _ in event.groups]
            for number, file in files:
                of_group[number].append(file)
            if list(map(len, of_group)) != numbers:
                raise ValueError(f"event {event.notification.evid} has other numbers of files than its groups say")
            groups = tuple(replace(group, files=tuple(refs)) for group, refs in zip(event.groups, of_group, strict=True))
            return replace(event, groups=groups)
        case "partition":
            part = deserialize(Partition(), row["record"], _BINARY)
            return PartitionRecord(row["table"], row["name"], whole_partition(part), all_files(len(files)))
        case "function":
            return encoding.function_of(row["record"], all_files)
        case "table":
            return encoding.table_of(row["record"], all_files)
