# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false, reportArgumentType=false
# (pyarrow has no types)
"""How much a Parquet file becomes in memory, from the headers of its pages, before any of them is decompressed.

The footer is no proof of it: 7 KB can become gigabytes, by compression, by a dictionary whose one long value is in every row, or
by run lengths. So every page header is read, and every string is weighed by the dictionary that it may come from.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from contextlib import contextmanager
from io import BytesIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from hive_replication.dump.format.parquet_pages import Column, Data, columns, page, row_groups

MIB = 1 << 20
_MOST_ROWS, _MOST_VALUES, _MOST_BYTES, _MOST_GROUPS = 100_000, 2_000_000, 128 * MIB, 100
_IN_FILES = (f"files.list.element.{name}" for name in ("uri", "checksum", "cm_root", "subdir"))
_STRINGS = ("kind", "table", "name", "record", *_IN_FILES)


@contextmanager
def damaged() -> Generator[None]:
    """Turns what Arrow raises for a damaged file, also OSError, NotImplementedError and KeyError, into a ValueError."""
    try:
        yield
    except (pa.ArrowException, OSError, KeyError) as error:
        raise ValueError(str(error)) from error


@damaged()
def require_small(data: bytes, schema: pa.Schema) -> None:
    """Makes sure that a Parquet file of a dump has not more rows, values and bytes than a writer puts into one.

    Args:
        data: the file.
        schema: that it has to have.

    Raises:
        ValueError: it has more, other columns, or is damaged.
    """
    found = pq.ParquetFile(BytesIO(data))
    if found.schema_arrow != schema:
        raise ValueError(f"its columns are {found.schema_arrow.names}")
    meta = found.metadata
    if meta.num_rows > _MOST_ROWS or meta.num_row_groups > _MOST_GROUPS:
        raise ValueError(f"it has {meta.num_rows:,} rows in {meta.num_row_groups:,} groups, more than are read")
    total = sum(_bytes_in(data, column) for column in columns(data))
    if total > _MOST_BYTES:
        raise ValueError(f"it has {total:,} bytes, more than the {_MOST_BYTES:,} that are read")
    _require_few_bytes(data)


def small_row_groups(data: Data, schema: pa.Schema, footer: int) -> Iterator[pa.Table]:
    """Reads a Parquet file of any number of row groups, none of which may be larger in memory than a whole file of a dump.

    Args:
        data: the file, whose row groups are in memory one after the other.
        schema: the columns that are read; those that the file lacks are left out.
        footer: bytes that its footer may have: some 1,000 and, with statistics, 2,400 for each row group of a report.

    Raises:
        ValueError: a row group or the footer is larger, a column has another type, or the file is damaged.
    """
    with damaged():
        groups, file = row_groups(data, footer), pa.BufferReader(pa.py_buffer(data))
        known = [one for one in pq.ParquetFile(file).schema_arrow if one.name in schema.names]
        if wrong := [one.name for one in known if one.type != schema.field(one.name).type]:
            raise ValueError(f"its column {wrong[0]} is of another type")
        strings = [one.name for one in known if pa.types.is_string(one.type)]
        plain = pa.schema([schema.field(one.name) for one in known])
        found = pq.ParquetFile(file, read_dictionary=strings)
        for number, group in enumerate(groups):
            _require_bytes(sum(_bytes_in(data, column) for column in group))
            rows = found.read_row_group(number, columns=plain.names)
            _require_bytes(_bytes_of_all(rows.columns))
            yield rows.select(plain.names).cast(plain)  # values of a dictionary become Python's three times as slowly


def _require_bytes(total: int) -> None:
    if total > _MOST_BYTES:
        raise ValueError(f"its values have {total:,} bytes, more than the {_MOST_BYTES:,} that are read")


def _bytes_of_all(found: Iterable[pa.ChunkedArray]) -> int:
    return sum(_bytes_of(chunk) for column in found for chunk in column.chunks)


def _bytes_in(data: Data, column: Column) -> int:
    """Bytes of a column's pages when they are decompressed."""
    place, total, values = column.start, 0, 0
    while place < column.end:
        found = page(data, place)
        if min(found.uncompressed, found.compressed, found.values) < 0:
            raise ValueError("a page has no size")
        total, values = total + found.uncompressed, values + found.values
        place += found.length + found.compressed
        if total > _MOST_BYTES or values > _MOST_VALUES:
            raise ValueError(f"a column has more than the {_MOST_BYTES:,} bytes or {_MOST_VALUES:,} values that are read")
    if place != column.end:
        raise ValueError("a page reaches beyond its column")
    return total


def _require_few_bytes(data: bytes) -> None:
    """Reads strings as numbers of their dictionaries, which cannot grow, and adds up what they stand for."""
    total = 0
    found = pq.ParquetFile(BytesIO(data), read_dictionary=list(_STRINGS))
    for group in range(found.metadata.num_row_groups):
        total += _bytes_of_all(found.read_row_group(group).columns)
        _require_bytes(total)


def _bytes_of(values: pa.Array) -> int:
    if pa.types.is_dictionary(values.type):
        lengths = pc.take(pc.binary_length(values.dictionary), values.indices)
        return len(values) * 4 + int(pc.sum(lengths).as_py() or 0)
    if pa.types.is_list(values.type):
        return len(values) * 4 + _bytes_of(values.flatten())
    if pa.types.is_struct(values.type):
        return sum(map(_bytes_of, values.flatten()))
    return int(values.nbytes)
