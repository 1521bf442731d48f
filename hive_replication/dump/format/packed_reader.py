# ruff: noqa: D102 - the methods are described once, in the protocols of dump.format.interface
"""Reading a packed dump; see :mod:`hive_replication.dump.format.packed_writer`."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Iterator
from functools import lru_cache
from typing import cast

from hive_replication.dump.format.ack import Ack
from hive_replication.dump.format.packed_parquet import Key, Kind, Part, Record, read_part, summary
from hive_replication.dump.format.reader_base import ReaderBase
from hive_replication.dump.format.record_types import EventRecord, FunctionRecord, PartitionRecord, TableRecord
from hive_replication.errors import BadRequest
from hive_replication.storage import Storage

_KEPT = 4  # decoded files: a dump's tables are read one after the other, and lie together


class PackedReader(ReaderBase):
    """A complete packed dump; see :class:`hive_replication.dump.format.interface.DumpReader`.

    Args:
        storage: where it lies.
        directory: its directory.
        ack: its ack file.
    """

    def __init__(self, storage: Storage, directory: str, ack: Ack) -> None:
        super().__init__(storage, directory, ack)
        self._parts = ack.parts or {}
        self._part = lru_cache(_KEPT)(self._read)

    def tables(self) -> Iterator[TableRecord]:
        return cast("Iterator[TableRecord]", self._stream("table"))

    def partitions(self, table: str) -> Iterator[PartitionRecord]:
        return cast("Iterator[PartitionRecord]", self._stream("partition", table))

    def functions(self) -> Iterator[FunctionRecord]:
        return cast("Iterator[FunctionRecord]", self._stream("function"))

    def events(self) -> Iterator[EventRecord]:
        return cast("Iterator[EventRecord]", self._stream("event"))

    def _count(self) -> None:
        found = Counter[str]()
        for name, part in self._parts.items():
            kinds, tables = self._guard(lambda name=name: summary(self._files.read(name)))
            if kinds.total() != part.rows:
                raise BadRequest(f"the dump {self.directory} is incomplete: {name} lacks rows; dump again")
            if (sorted(kinds), sorted(tables)) != (sorted(part.kinds), sorted(part.tables)):
                raise self._unreadable(ValueError(f"{name} has other records than the ack file says"))
            found += kinds
        for kind in self._ack.counts:
            self._expect(kind, found[kind])

    def _stream(self, kind: Kind, table: str = "") -> Iterator[Record]:
        having = [name for name, part in self._parts.items() if kind in part.kinds and (not table or table in part.tables)]
        streams = [self._part(name).stream(kind, table) for name in having]
        merged, last = heapq.merge(*streams, key=lambda one: one[0]), Key("event")
        while True:
            found = self._guard(lambda: next(merged, None))
            if found is None:
                return
            if last.kind == kind and found[0] <= last:
                raise self._unreadable(ValueError(f"it has two records of {last}"))
            last = found[0]
            yield found[1]

    def _read(self, name: str) -> Part:
        part = self._guard(lambda: read_part(self._files.read(name)))
        if len(part) != self._parts[name].rows:
            raise BadRequest(f"the dump {self.directory} is incomplete: {name} lacks rows; dump again")
        return part
