# ruff: noqa: D102 - the methods are described once, in the protocols of dump.store
"""Dumps of many records in a few Parquet files, for what would be thousands of small files in the ``tree`` layout.

::

    <root>/<db>/<time>-<token>/
      _dumpmetadata                      the header
      _finished_dump                     the ack file: numbers of records, and of each Parquet file what is in it; written last
      _attempt_<n>, _checkpoint_<n>      notes to go on by after an interruption (dump.attempts)
      part-<n>.parquet                   records (dump.packed_parts)
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from functools import lru_cache
from typing import Any, cast

from hive_replication.dump import encoding
from hive_replication.dump.attempts import Attempt
from hive_replication.dump.counted import CountedRecords
from hive_replication.dump.packed_parts import Key, Part, Record, key_of, number_of_files, part_of, read_part
from hive_replication.dump.records import (
    DumpHeader,
    DumpResult,
    EventRecord,
    FunctionRecord,
    PartitionRecord,
    Scope,
    TableRecord,
)
from hive_replication.dump.tree import TreeWriter
from hive_replication.storage import Storage, paths

#: Records and files of one Parquet file at most; so many are held in memory.
_FULL = 20_000
_KEPT = 2


class PackedWriter(CountedRecords):
    """A packed dump being written; see :class:`hive_replication.dump.store.DumpWriter`.

    Records wait in memory until there are enough for a file. What is replaced or dropped later leaves its row behind until
    :meth:`finish`, which writes such files again.
    """

    def __init__(self, storage: Storage, directory: str, scope: Scope, attempt: Attempt | None = None, above: int = 0) -> None:
        self._storage, self.directory, self._scope, self._above = storage, directory, scope, above
        self._count(attempt)
        self._waiting: dict[Key, Record] = {}
        self._weight = 0
        self._where: dict[Key, str] = {}
        self._rows: dict[str, int] = {}
        self._next = 0
        self._part = lru_cache(_KEPT)(self._read)
        if attempt is None:
            storage.mkdirs(directory)
        elif attempt.done is not None:
            self._go_on()

    def put_table(self, record: TableRecord) -> None:
        self._tables[record.name] = len(record.files)
        self._put(record)

    def put_partition(self, record: PartitionRecord) -> None:
        self._partitions[record.table, record.name] = len(record.files)
        self._put(record)

    def put_function(self, record: FunctionRecord) -> None:
        self._functions[record.name] = len(record.files)
        self._put(record)

    def put_event(self, record: EventRecord) -> None:
        self._events[record.notification.evid] = number_of_files(record)
        self._put(record)

    def table(self, name: str) -> TableRecord | None:
        return cast("TableRecord | None", self._get(Key("table", name=name)))

    def partition(self, table: str, name: str) -> PartitionRecord | None:
        return cast("PartitionRecord | None", self._get(Key("partition", table, name)))

    def partitions(self, table: str) -> Iterator[PartitionRecord]:
        self._flush()
        names = sorted({name for key, name in self._where.items() if key.table == table})
        streams = [self._live(name, table) for name in names]
        return (cast("PartitionRecord", record) for _, record in heapq.merge(*streams, key=lambda one: one[0]))

    def drop_table(self, name: str) -> None:
        self._tables.pop(name, None)
        self._drop(Key("table", name=name))
        for table, part in [key for key in self._partitions if key[0] == name]:
            self.drop_partition(table, part)

    def drop_partition(self, table: str, name: str) -> None:
        self._partitions.pop((table, name), None)
        self._drop(Key("partition", table, name))

    def finish(self, header: DumpHeader) -> DumpResult:
        if not self._rows and len(self._waiting) <= self._above:
            return self._as_tree().finish(header)
        self._close()
        self._flush()
        parts = dict(filter(None, map(self._settled, sorted(self._rows))))
        self._storage.write(f"{self.directory}/_dumpmetadata", encoding.header_text(header))
        return self._acknowledge(header, parts=parts)

    def _as_tree(self) -> TreeWriter:
        """The same dump in the ``tree`` layout."""
        for written in (self._tables, self._partitions, self._events):
            written.clear()  # the other writer counts anew, in the same notes of the attempt
        tree = TreeWriter(self._storage, self.directory, self._scope, self._attempt)
        for record in self._waiting.values():
            match record:
                case TableRecord():
                    tree.put_table(record)
                case PartitionRecord():
                    tree.put_partition(record)
                case FunctionRecord():
                    tree.put_function(record)
                case EventRecord():
                    tree.put_event(record)
        return tree

    def _read(self, name: str) -> Part:
        return read_part(self._storage.read(f"{self.directory}/{name}"))

    def _put(self, record: Record) -> None:
        key = key_of(record)
        self._drop(key)
        self._waiting[key] = record
        self._weight += 1 + number_of_files(record)
        if self._weight >= _FULL:
            self._flush()

    def _get(self, key: Key) -> Record | None:
        if key in self._where:
            return next(record for found, record in self._live(self._where[key], key.table, key) if found == key)
        return self._waiting.get(key)

    def _drop(self, key: Key) -> None:
        self._waiting.pop(key, None)
        self._where.pop(key, None)

    def _live(self, name: str, table: str, key: Key | None = None) -> Iterator[tuple[Key, Record]]:
        stream = self._part(name).stream(key.kind if key else "partition", table)
        return ((found, record) for found, record in stream if self._where.get(found) == name)

    def _flush(self) -> None:
        if not self._waiting:
            return
        name = f"part-{self._next:05}.parquet"
        self._storage.write_once(f"{self.directory}/{name}", part_of(self._waiting.values()))
        self._where |= dict.fromkeys(self._waiting, name)
        self._rows[name] = len(self._waiting)
        self._waiting.clear()
        self._weight, self._next = 0, self._next + 1

    def _settled(self, name: str) -> tuple[str, dict[str, Any]] | None:
        """What the ack file says of a Parquet file, once it has no rows that nobody wants any more; None if none was left."""
        live = {key for key, place in self._where.items() if place == name}
        if len(live) < self._rows[name]:
            part = self._part(name)
            self._storage.delete(f"{self.directory}/{name}")
            if not live:
                return None
            self._storage.write_once(f"{self.directory}/{name}", part.only(live))
        kinds, tables = {key.kind for key in live}, {key.table for key in live if key.kind == "partition"}
        return name, {"rows": len(live), "kinds": sorted(kinds), "tables": sorted(tables)}

    def _go_on(self) -> None:
        """Takes in the files of the attempts before; rows that no checkpoint knows count as dropped."""
        known = {Key("table", name=name) for name in self._tables}
        known |= {Key("partition", table, name) for table, name in self._partitions}
        known |= {Key("event", evid=evid) for evid in self._events}
        names = sorted(paths.name(status.uri) for status in self._storage.ls(self.directory))
        for name in (name for name in names if name.endswith(".parquet") and not name.startswith(".")):
            part = self._part(name)
            self._rows[name] = len(part)
            self._where |= {key: name for key in part.index() if key in known}
            self._next = int(name[len("part-") : -len(".parquet")]) + 1
