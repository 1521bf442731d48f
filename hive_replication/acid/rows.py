# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false
# (pyarrow has no types)
"""The rows that a reader sees in the files of a transactional table, as one number: compaction leaves it as it is.

The number is the sum of a hash of each row, so that neither the order of rows nor how they are spread over files counts. For a
full ACID table a row's id goes into the hash, too (``OrcRawRecordMerger``: a row's id is the transaction that wrote it first,
its bucket and its number there; files of before the conversion, and of LOAD DATA, have none: their rows are numbered within their
bucket, and those of LOAD DATA have the write id of their directory).
"""

from __future__ import annotations

import hashlib
import io
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pyarrow import orc, parquet

from hive_replication.acid.directories import AcidDirectory
from hive_replication.acid.write_ids import WriteIds

Kind = Literal["acid", "orc", "parquet", "text"]
RowId = tuple[int, int, int]
#: Path of a file below the directory of its table or partition, and what reads it.
File = tuple[str, Callable[[], bytes]]

_BUCKET_VERSION = 1 << 29  # BucketCodec.V1, for files that have no ids of their own
_WITHOUT_IDS = re.compile(r"(?:.*/)?0*(\d+)_\d+(?:_copy_(\d+))?")
_ROWS = 2**128


@dataclass(frozen=True, slots=True)
class Rows:
    """What the rows of a table or partition add up to.

    Args:
        number: how many there are.
        digest: sum of their hashes.
    """

    number: int = 0
    digest: int = 0


def kind_of(input_format: str, *, insert_only: bool) -> Kind | None:
    """How rows of a format are read; None where they cannot be.

    Args:
        input_format: class that Hive reads the table with.
        insert_only: whether the table is an insert-only one.
    """
    name = input_format.rpartition(".")[2]
    known: dict[str, Kind] = {
        "OrcInputFormat": "orc",
        "MapredParquetInputFormat": "parquet",
        "TextInputFormat": "text",
    }
    return known.get(name) if insert_only else "acid"


def rows_of(files: Sequence[File], kind: Kind, write_ids: WriteIds) -> Rows:
    """Adds up the rows of the files that a reader needs.

    Args:
        files: of one table or partition.
        kind: how they are read.
        write_ids: what the reader sees.

    Raises:
        ValueError: a file is not of its format.
    """
    if kind == "acid":
        return _sum(_acid(files, write_ids))
    readers: dict[str, Callable[[bytes], Iterator[object]]] = {"orc": _orc, "parquet": _parquet, "text": _text}
    return _sum(row for _, read in files for row in readers[kind](read()))


def _sum(rows: Iterable[object]) -> Rows:
    number = digest = 0
    for row in rows:
        number += 1
        digest += int.from_bytes(hashlib.blake2b(repr(_values(row)).encode(), digest_size=16).digest())
    return Rows(number, digest % _ROWS)


def _values(value: object) -> object:
    """A row without names of columns and without NULLs at its end: a file has the columns of the time when it was written."""
    match value:
        case dict():
            values = [_values(one) for one in value.values()]
            while values and values[-1] is None:
                values.pop()
            return tuple(values)
        case list():
            return list(map(_values, value))
        case tuple():
            return tuple(map(_values, value))
        case _:
            return value


def _acid(files: Sequence[File], write_ids: WriteIds) -> Iterator[object]:
    deleted = {row_id for path, read in files if _kind(path) == "delete_delta" for row_id, _ in _events(read(), write_ids)}
    numbers: dict[tuple[int, int], int] = {}
    for path, read in sorted(files, key=lambda file: _order(file[0])):
        if _kind(path) == "delete_delta":
            continue
        data = read()
        if _has_ids(path, data):
            yield from (event for event in _events(data, write_ids) if event[0] not in deleted)
            continue
        made = _made_by(path)
        for row in _orc(data):
            row_id = (*made, numbers.setdefault(made, 0))
            numbers[made] += 1
            if row_id not in deleted:
                yield row_id, row


def _has_ids(path: str, data: bytes) -> bool:
    """Whether a file has its rows' ids: not one of before the conversion, nor one that LOAD DATA brought."""
    if not data or (_kind(path) is None and _place(path) is not None):
        return not data
    file: Any = orc.ORCFile(io.BytesIO(data))
    return "currentTransaction" in file.schema.names


def _made_by(path: str) -> tuple[int, int]:
    """What the ids of all rows of a file without ids begin with: the write id, and the bucket with the statement.

    Raises:
        ValueError: its name tells no bucket.
    """
    place, found = _place(path), _directory(path)
    if place is None:
        raise ValueError(f"{path} has no row ids, and is of no bucket")
    bucket = _BUCKET_VERSION | place[0] << 16
    return (found.last, bucket | max(0, found.statement)) if found else (0, bucket)


def _events(data: bytes, write_ids: WriteIds) -> Iterator[tuple[RowId, object]]:
    """Rows of a file with ids whose writes are committed; 0 stands for files of before the conversion."""
    for one in _orc_rows(data):
        if not one["currentTransaction"] or write_ids.sees(one["currentTransaction"]):
            yield (one["originalTransaction"], one["bucket"], one["rowId"]), one["row"]


def _directory(path: str) -> AcidDirectory | None:
    return AcidDirectory.parsed(path.partition("/")[0])


def _kind(path: str) -> str | None:
    found = _directory(path)
    return found.kind if found else None


def _order(path: str) -> tuple[str, tuple[int, int]]:
    """In which the rows of files without row ids are numbered."""
    found = _directory(path)
    return found.name if found else "", _place(path) or (-1, -1)


def _place(path: str) -> tuple[int, int] | None:
    """Bucket of a file without row ids, and number of the copy."""
    found = _WITHOUT_IDS.fullmatch(path)
    return (int(found[1]), int(found[2] or 0)) if found else None


def _orc_rows(data: bytes) -> Iterator[dict[str, Any]]:
    if not data:
        return
    file: Any = orc.ORCFile(io.BytesIO(data))
    for stripe in range(file.nstripes):
        yield from file.read_stripe(stripe).to_pylist()


def _orc(data: bytes) -> Iterator[object]:
    return iter(_orc_rows(data))


def _parquet(data: bytes) -> Iterator[object]:
    table: Any = parquet.read_table(io.BytesIO(data))
    return iter(table.to_pylist())


def _text(data: bytes) -> Iterator[object]:
    return iter(data.split(b"\n")[:-1] if data.endswith(b"\n") else data.split(b"\n"))
