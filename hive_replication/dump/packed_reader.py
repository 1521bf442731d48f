# ruff: noqa: D102 - the methods are described once, in the protocols of dump.store
"""Reading a packed dump; see :mod:`hive_replication.dump.packed`."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

from thrift.Thrift import TException

from hive_replication.dump import encoding
from hive_replication.dump.packed_parts import Kind, Part, Record, read_part
from hive_replication.dump.records import DumpHeader, EventRecord, FunctionRecord, PartitionRecord, TableRecord
from hive_replication.errors import BadRequest
from hive_replication.storage import Storage

_KEPT = 4  # decoded files: a dump's tables are read one after the other, and lie together


class PackedReader:
    """A complete packed dump; see :class:`hive_replication.dump.store.DumpReader`.

    Args:
        storage: where it lies.
        directory: its directory.
        parts: of the ack file: each Parquet file's name, number of rows, and the tables whose partitions it has.
    """

    def __init__(self, storage: Storage, directory: str, parts: Mapping[str, Mapping[str, Any]]) -> None:
        self._storage, self.directory, self._parts = storage, directory, parts
        self.header: DumpHeader = self._header()
        self._part = lru_cache(_KEPT)(self._read)

    def tables(self) -> Iterator[TableRecord]:
        return cast("Iterator[TableRecord]", self._stream("table"))

    def partitions(self, table: str) -> Iterator[PartitionRecord]:
        return cast("Iterator[PartitionRecord]", self._stream("partition", table))

    def functions(self) -> Iterator[FunctionRecord]:
        return cast("Iterator[FunctionRecord]", self._stream("function"))

    def events(self) -> Iterator[EventRecord]:
        return cast("Iterator[EventRecord]", self._stream("event"))

    def _stream(self, kind: Kind, table: str = "") -> Iterator[Record]:
        having = [name for name, part in self._parts.items() if kind in part["kinds"] and (not table or table in part["tables"])]
        streams = [self._part(name).stream(kind, table) for name in having]
        try:
            for _, record in heapq.merge(*streams, key=lambda one: one[0]):
                yield record
        except (ValueError, KeyError, TypeError, AttributeError, EOFError, TException) as error:
            raise self._unreadable(error) from error

    def _read(self, name: str) -> Part:
        try:
            part = read_part(self._storage.read(f"{self.directory}/{name}"))
        except FileNotFoundError as error:
            raise BadRequest(f"the dump {self.directory} is incomplete: {error}; dump again") from error
        except ValueError as error:
            raise self._unreadable(error) from error
        if len(part) != self._parts[name]["rows"]:
            raise BadRequest(f"the dump {self.directory} is incomplete: {name} lacks rows; dump again")
        return part

    def _header(self) -> DumpHeader:
        try:
            return encoding.header_of(self._storage.read(f"{self.directory}/_dumpmetadata"))
        except FileNotFoundError as error:
            raise BadRequest(f"the dump {self.directory} is incomplete: {error}; dump again") from error
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> BadRequest:
        return BadRequest(f"the dump {self.directory} is unreadable: {error!r}; dump again")
