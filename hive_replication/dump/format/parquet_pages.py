# pyright: reportMissingTypeStubs=false, reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false, reportUnknownParameterType=false, reportUnknownLambdaType=false
# pyright: reportAttributeAccessIssue=false
# (thrift's protocols have no types)
"""Where the columns of a Parquet file lie, and what their pages say of themselves: its footer and page headers, in plain Thrift.

Arrow reads them too, but a footer with wrong statistics of sizes ends its process: its C++ throws there, where Python asks for a
column of the footer, and nobody catches it. A read of rows checks them by itself, and raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import chain
from mmap import mmap
from typing import Any, NamedTuple

from thrift.protocol.TCompactProtocol import TCompactProtocol
from thrift.Thrift import TException, TType
from thrift.transport.TTransport import TMemoryBuffer

_HEADER = 65_536  # bytes of a page header: the least and the greatest value may be in it
_FOOTER = 4 << 20  # bytes
_STRUCTS = 1_000_000  # row groups and their columns: Arrow makes some 500 bytes of each, which may be one byte of a footer
_TAIL = 8  # bytes of the footer's length and of PAR1
_DEEP = 8
_LISTS = (TType.LIST, TType.SET)

#: A Parquet file in memory, or mapped into it.
Data = bytes | mmap
_Reader = Callable[[Any], Any]
_Wanted = Mapping[int, tuple[int, _Reader]]


class _Protocol(TCompactProtocol):
    """Counts the structs of the lists that it reads."""

    structs = 0


class Column(NamedTuple):
    """A column of a row group: where its pages begin and end in the file, in bytes."""

    start: int
    end: int


class Page(NamedTuple):
    """A page header: its length, the page's bytes after and before compression, and its number of values."""

    length: int
    uncompressed: int
    compressed: int
    values: int


def columns(data: Data) -> list[Column]:
    """All columns of all row groups of a Parquet file; see :func:`row_groups`."""
    return list(chain.from_iterable(row_groups(data)))


def footer_length(data: Data) -> int:
    """Bytes of a footer, as the file says."""
    return int.from_bytes(data[-_TAIL:-4], "little")


def row_groups(data: Data, most: int = _FOOTER) -> list[list[Column]]:
    """The columns of each row group of a Parquet file.

    Args:
        data: the file.
        most: bytes that its footer may have.

    Raises:
        ValueError: the footer is damaged or too large, or a column lies outside of the file.
    """
    length = footer_length(data)
    if not 0 < length <= min(most, len(data) - _TAIL):
        raise ValueError(f"its footer has {length:,} bytes, of the {most:,} that are read and of a file of {len(data):,}")
    groups, _ = _read(data[-_TAIL - length : -_TAIL], _GROUPS)
    found = [[_column(chunk.get(3, {}), len(data)) for chunk in group.get(1, ())] for group in groups.get(4, ())]
    if found and not any(found):
        raise ValueError("a row group has no columns")
    return found


def page(data: Data, place: int) -> Page:
    """The header of the page that begins at a place of the file.

    Raises:
        ValueError: it is damaged.
    """
    found, length = _read(data[place : place + _HEADER], _PAGE)
    values = next((found[field].get(1, 0) for field in (8, 7, 5) if field in found), 0)
    return Page(length, found.get(2, -1), found.get(3, -1), values)


def _column(meta: Mapping[int, int], size: int) -> Column:
    start = min((meta[field] for field in (9, 11) if field in meta), default=-1)
    end = start + meta.get(7, -1)
    if not 0 <= start <= end <= size:
        raise ValueError("a column lies outside of the file")
    return Column(start, end)


def _read(data: bytes, wanted: _Wanted) -> tuple[dict[int, Any], int]:
    """The wanted fields of a struct by their ids, and the struct's length."""
    transport = TMemoryBuffer(data)
    protocol = _Protocol(transport, string_length_limit=len(data), container_length_limit=len(data))
    try:
        found = _struct(protocol, wanted)
    except (TException, EOFError, IndexError, KeyError, TypeError, ValueError, RecursionError, OverflowError) as error:
        raise ValueError(f"a header of it is unreadable: {error!r}") from error
    return found, transport.cstringio_buf.tell()


def _struct(protocol: Any, wanted: _Wanted, depth: int = 0) -> dict[int, Any]:
    found: dict[int, Any] = {}
    if depth > _DEEP:
        raise ValueError("it nests too deep")
    protocol.readStructBegin()
    while True:
        _, kind, field = protocol.readFieldBegin()
        if kind == TType.STOP:
            break
        expected, read = wanted.get(field, (None, None))
        if read is not None and kind == expected:
            found[field] = read(protocol)
        else:
            _skip(protocol, kind, depth + 1)
        protocol.readFieldEnd()
    protocol.readStructEnd()
    return found


def _skip(protocol: Any, kind: int, depth: int) -> None:
    """Passes over a field: numbers, texts that need not be UTF-8, and structs and lists of them."""
    if kind == TType.STRING:
        protocol.readBinary()
    elif kind == TType.STRUCT:
        _struct(protocol, {}, depth)
    elif kind in _LISTS:
        element, number = protocol.readListBegin()
        for _ in range(number):
            _skip(protocol, element, depth + 1)
        protocol.readListEnd()
    else:
        protocol.skip(kind)


def _structs(wanted: _Wanted) -> tuple[int, _Reader]:
    """Reads a list of structs."""

    def read(protocol: Any) -> list[dict[int, Any]]:
        element, number = protocol.readListBegin()
        if element != TType.STRUCT:
            raise ValueError("a list holds no structs")
        protocol.structs += number
        if protocol.structs > _STRUCTS:
            raise ValueError(f"it has more than the {_STRUCTS:,} row groups and columns that are read")
        found = [_struct(protocol, wanted) for _ in range(number)]
        protocol.readListEnd()
        return found

    return TType.LIST, read


def _nested(wanted: _Wanted) -> tuple[int, _Reader]:
    return TType.STRUCT, lambda protocol: _struct(protocol, wanted)


# By the ids of parquet.thrift.
_INT, _LONG = (TType.I32, lambda protocol: protocol.readI32()), (TType.I64, lambda protocol: protocol.readI64())
#: ColumnMetaData: total_compressed_size, data_page_offset, dictionary_page_offset.
_META: _Wanted = {7: _LONG, 9: _LONG, 11: _LONG}
#: FileMetaData.row_groups, of them the columns, of them meta_data.
_GROUPS: _Wanted = {4: _structs({1: _structs({3: _nested(_META)})})}
#: PageHeader: both sizes; of data pages and of dictionaries the number of values.
_PAGE: _Wanted = {2: _INT, 3: _INT, **dict.fromkeys((5, 7, 8), _nested({1: _INT}))}
