# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportAttributeAccessIssue=false, reportUnknownParameterType=false, reportArgumentType=false
# (pyarrow and thrift's protocols have no types)
"""How much a Parquet file becomes in memory, from the headers of its pages, before any of them is decompressed.

The footer is no proof of it: 7 KB can become gigabytes, by compression, by a dictionary whose one long value is in every row, or
by run lengths. So every page header is read, and every string is weighed by the dictionary that it may come from.
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from io import BytesIO
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TException, TType
from thrift.transport.TTransport import TMemoryBuffer

MIB = 1 << 20
_MOST_ROWS, _MOST_VALUES, _MOST_BYTES, _MOST_GROUPS = 100_000, 2_000_000, 128 * MIB, 100
_HEADER = 65_536  # bytes of a page header: the least and the greatest value may be in it
_IN_FILES = (f"files.list.element.{name}" for name in ("uri", "checksum", "cm_root", "subdir"))
_STRINGS = ("kind", "table", "name", "record", *_IN_FILES)


@contextmanager
def damaged() -> Generator[None]:
    """Turns what Arrow raises for a damaged file, also OSError and NotImplementedError, into a ValueError."""
    try:
        yield
    except (pa.ArrowException, OSError) as error:
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
    total = 0
    for group in range(meta.num_row_groups):
        row_group = meta.row_group(group)
        for column in range(row_group.num_columns):
            total += _chunk_bytes(data, row_group.column(column))
    if total > _MOST_BYTES:
        raise ValueError(f"it has {total:,} bytes, more than the {_MOST_BYTES:,} that are read")
    _require_few_bytes(data)


def _chunk_bytes(data: bytes, chunk: Any) -> int:
    """Bytes of a column's pages when they are decompressed."""
    offsets = (chunk.dictionary_page_offset, chunk.data_page_offset)
    place = min(offset for offset in offsets if offset is not None)
    end, total, values = place + chunk.total_compressed_size, 0, 0
    if not 0 <= place <= end <= len(data):
        raise ValueError("a column lies outside of the file")
    while place < end:
        length, uncompressed, compressed, number = _page(data[place : place + _HEADER])
        if min(uncompressed, compressed, number) < 0:
            raise ValueError("a page has no size")
        total, values = total + uncompressed, values + number
        place += length + compressed
        if total > _MOST_BYTES or values > _MOST_VALUES:
            raise ValueError(f"a column has more than the {_MOST_BYTES:,} bytes or {_MOST_VALUES:,} values that are read")
    if place != end:
        raise ValueError("a page reaches beyond its column")
    return total


def _page(data: bytes) -> tuple[int, int, int, int]:
    """Length of a page header, and what it says: bytes before and after compression, and number of values."""
    transport = TMemoryBuffer(data)
    protocol = TCompactProtocol(transport, string_length_limit=_HEADER, container_length_limit=_HEADER)
    sizes, values = {2: -1, 3: -1}, 0
    try:
        protocol.readStructBegin()
        while True:
            _, kind, field = protocol.readFieldBegin()
            if kind == TType.STOP:
                break
            if field in sizes and kind == TType.I32:
                sizes[field] = protocol.readI32()
            elif field in (5, 7, 8) and kind == TType.STRUCT:  # of data pages, and of dictionaries
                values = _values(protocol)
            else:
                _skip(protocol, kind)
            protocol.readFieldEnd()
    except (TException, EOFError, IndexError, KeyError, TypeError, UnicodeDecodeError, RecursionError, OverflowError) as error:
        raise ValueError(f"a page header is unreadable: {error!r}") from error
    return transport.cstringio_buf.tell(), sizes[2], sizes[3], values


def _values(protocol: Any) -> int:
    found = 0
    protocol.readStructBegin()
    while True:
        _, kind, field = protocol.readFieldBegin()
        if kind == TType.STOP:
            break
        if field == 1 and kind == TType.I32:
            found = protocol.readI32()
        else:
            _skip(protocol, kind)
        protocol.readFieldEnd()
    protocol.readStructEnd()
    return found


def _skip(protocol: Any, kind: int, depth: int = 0) -> None:
    """Passes over a field: numbers, texts that need not be UTF-8, and structs of them."""
    if kind == TType.STRING:
        protocol.readBinary()
    elif kind != TType.STRUCT:
        protocol.skip(kind)
    elif depth > 5:
        raise ValueError("a page header nests too deep")
    else:
        protocol.readStructBegin()
        while (field := protocol.readFieldBegin())[1] != TType.STOP:
            _skip(protocol, field[1], depth + 1)
            protocol.readFieldEnd()
        protocol.readStructEnd()


def _require_few_bytes(data: bytes) -> None:
    """Reads strings as numbers of their dictionaries, which cannot grow, and adds up what they stand for."""
    total = 0
    found = pq.ParquetFile(BytesIO(data), read_dictionary=list(_STRINGS))
    for group in range(found.metadata.num_row_groups):
        for column in found.read_row_group(group).columns:
            total += sum(map(_bytes_of, column.chunks))
        if total > _MOST_BYTES:
            raise ValueError(f"its values have {total:,} bytes, more than the {_MOST_BYTES:,} that are read")


def _bytes_of(values: pa.Array) -> int:
    if pa.types.is_dictionary(values.type):
        lengths = pc.take(pc.binary_length(values.dictionary), values.indices)
        return len(values) * 4 + int(pc.sum(lengths).as_py() or 0)
    if pa.types.is_list(values.type):
        return len(values) * 4 + _bytes_of(values.flatten())
    if pa.types.is_struct(values.type):
        return sum(map(_bytes_of, values.flatten()))
    return int(values.nbytes)
