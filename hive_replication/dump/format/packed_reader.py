# ruff: noqa: D102 - the methods are described once, in the protocols of dump.format.interface
"""Reading a packed dump; see :mod:`hive_replication.dump.format.packed_writer`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import lru_cache, partial
from typing import cast

from hive_replication.dump.format.ack import Ack
from hive_replication.dump.format.packed_parquet import Key, Kind, Part, Record, first_rows, in_order, read_part
from hive_replication.dump.format.reader_base import ReaderBase
from hive_replication.dump.format.record_types import EventRecord, FunctionRecord, PartitionRecord, TableRecord
from hive_replication.errors import BadRequest
from hive_replication.storage import Storage

_KEPT = 4  # files: a dump's tables are read one after the other, and lie together


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
        self._first: dict[tuple[str, str], dict[str, Key]] = {}  # row of each Parquet file that has some of a kind and table

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
            kinds, firsts = self._guard(lambda name=name: first_rows(self._files.read(name)))
            if kinds.total() != part.rows:
                raise BadRequest(f"the dump {self.directory} is incomplete: {name} lacks rows; dump again")
            tables = sorted(key.table for key in firsts if key.kind == "partition")
            if (sorted(kinds), tables) != (sorted(part.kinds), sorted(part.tables)):
                raise self._unreadable(ValueError(f"{name} has other records than the ack file says"))
            for key in firsts:
                self._first.setdefault((key.kind, key.table), {})[name] = key
            found += kinds
        for kind in self._ack.counts:
            self._expect(kind, found[kind])

    def _stream(self, kind: Kind, table: str = "") -> Iterator[Record]:
        files = self._first.get((kind, table), {}).items()
        rows = in_order((first, partial(self._rows, name, first)) for name, first in files)
        last = Key("event")
        while True:
            found = self._guard(lambda: next(rows, None))
            if found is None:
                return
            if last.kind == kind and found[0] <= last:
                raise self._unreadable(ValueError(f"it has two records of {last}"))
            last = found[0]
            yield found[1]

    def _rows(self, name: str, first: Key) -> Iterator[tuple[Key, Record]]:
        return self._part(name).stream(first.kind, first.table)

    def _read(self, name: str) -> Part:
        part = self._guard(lambda: read_part(self._files.read(name)))
        if len(part) != self._parts[name].rows:
            raise BadRequest(f"the dump {self.directory} is incomplete: {name} lacks rows; dump again")
        return part
