# ruff: noqa: D102 - the methods are described once, in the protocols of dump.format.interface
"""Dumps of many records in a few Parquet files, for what would be thousands of small files in the ``tree`` layout.

::

    <root>/<db>/<time>-<token>/
      _dumpmetadata                      the header
      _finished_dump                     the ack file: numbers of records, and of each Parquet file what is in it, and
                                         digests of all files; written last
      _attempt_<n>, _checkpoint_<n>      notes to resume by (dump.format.resume)
      part-<n>.parquet                   records (dump.format.packed_parquet)
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator
from functools import lru_cache
from itertools import starmap
from typing import Any, cast

from hive_replication.dump.format import encoding
from hive_replication.dump.format.digests import digest_of
from hive_replication.dump.format.packed_parquet import Key, Part, Record, key_of, number_of_files, part_of, read_part, weight
from hive_replication.dump.format.record_types import (
    DumpHeader,
    DumpResult,
    EventRecord,
    FunctionRecord,
    PartitionRecord,
    Scope,
    TableRecord,
)
from hive_replication.dump.format.resume import WriterClaim
from hive_replication.dump.format.tree import TreeWriter
from hive_replication.dump.format.writer_base import WriterBase
from hive_replication.errors import BadRequest
from hive_replication.signing import SigningKey
from hive_replication.storage import Storage, paths

#: Weight of one Parquet file at most: its records, with their files, columns and long messages. So much is held in memory.
_FULL = 20_000
_KEPT = 2


class PackedWriter(WriterBase):
    """A packed dump being written; see :class:`hive_replication.dump.format.interface.DumpWriter`.

    Records wait in memory until there are enough for a file. What is replaced or dropped later leaves its row behind until
    :meth:`finish`, which writes such files again under other names.
    """

    def __init__(
        self,
        storage: Storage,
        directory: str,
        scope: Scope,
        claim: WriterClaim | None = None,
        above: int = 0,
        key: SigningKey | None = None,
    ) -> None:
        self._storage, self.directory, self._scope, self._above, self._key = storage, directory, scope, above, key
        self._count(claim)
        self._waiting: dict[Key, Record] = {}
        self._weight = 0
        self._where: dict[Key, str] = {}
        self._having: dict[str, list[str]] = {}  # Parquet files with partitions of a table, some of them perhaps dropped since
        self._rows: dict[str, int] = {}
        self._next = 0
        self._part = lru_cache(_KEPT)(self._read)
        if claim is None:
            storage.mkdirs(directory)
        elif claim.done is not None:
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
        # What waits is not written for this: a file for each table that is read back would be as many as the tables.
        waiting = ((key, record) for key, record in self._waiting.items() if key.kind == "partition" and key.table == table)
        streams = [sorted(waiting, key=lambda one: one[0]), *(self._live(name, table) for name in self._having.get(table, ()))]
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
        live: dict[str, set[Key]] = {name: set() for name in sorted(self._rows)}
        for key, name in self._where.items():
            live[name].add(key)
        parts = dict(filter(None, starmap(self._settled, live.items())))
        text = encoding.header_text(header)
        self._digests = {"_dumpmetadata": digest_of(text)} | {name: self._digests[name] for name in parts}
        self._storage.write(f"{self.directory}/_dumpmetadata", text)
        return self._acknowledge(header, parts=parts)

    def _as_tree(self) -> TreeWriter:
        """The same dump in the ``tree`` layout."""
        for written in (self._tables, self._partitions, self._events, self._digests):
            written.clear()  # the other writer counts again, in the same claim
        tree = TreeWriter(self._storage, self.directory, self._scope, self._claim, self._key)
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

    def _write(self, data: bytes) -> str:
        """Writes the next Parquet file; its name."""
        name = f"part-{self._next:05}.parquet"
        self._storage.write_once(f"{self.directory}/{name}", data)
        self._digests[name] = digest_of(data)
        self._next += 1
        return name

    def _put(self, record: Record) -> None:
        key = key_of(record)
        self._drop(key)
        self._waiting[key] = record
        self._weight += weight(record)
        if self._weight >= _FULL:
            self._flush()

    def _get(self, key: Key) -> Record | None:
        if key in self._where:
            return self._part(self._where[key]).record(key)
        return self._waiting.get(key)

    def _drop(self, key: Key) -> None:
        self._waiting.pop(key, None)
        self._where.pop(key, None)

    def _live(self, name: str, table: str) -> Iterator[tuple[Key, Record]]:
        stream = self._part(name).stream("partition", table)
        return ((found, record) for found, record in stream if self._where.get(found) == name)

    def _flush(self) -> None:
        if not self._waiting:
            return
        name = self._write(part_of(self._waiting.values()))
        self._note(name, self._waiting)
        self._rows[name] = len(self._waiting)
        self._waiting.clear()
        self._weight = 0

    def _note(self, name: str, keys: Collection[Key]) -> None:
        """Notes which Parquet file has some records."""
        self._where |= dict.fromkeys(keys, name)
        for table in {key.table for key in keys if key.kind == "partition"}:
            self._having.setdefault(table, []).append(name)

    def _settled(self, name: str, live: set[Key]) -> tuple[str, dict[str, Any]] | None:
        """What the ack file says of a Parquet file, once it has no rows that nobody wants any more; None if none was left."""
        if len(live) < self._rows[name]:
            # The new file comes before the old one goes: a writer that is killed in between leaves no row behind.
            settled = self._write(self._part(name).only(live)) if live else None
            self._storage.delete(f"{self.directory}/{name}")
            if settled is None:
                return None
            name = settled
        kinds, tables = {key.kind for key in live}, {key.table for key in live if key.kind == "partition"}
        return name, {"rows": len(live), "kinds": sorted(kinds), "tables": sorted(tables)}

    def _go_on(self) -> None:
        """Restores the index from the files of earlier writers; rows that no checkpoint names count as dropped.

        Raises:
            BadRequest: a file is not what was written, or lacks what a checkpoint names.
        """
        known = {Key("table", name=name) for name in self._tables}
        known |= {Key("partition", table, name) for table, name in self._partitions}
        known |= {Key("event", evid=evid) for evid in self._events}
        noted, found = dict(self._digests), sorted(paths.name(status.uri) for status in self._storage.ls(self.directory))
        self._digests.clear()
        for name in (name for name in found if name.endswith(".parquet") and not name.startswith(".")):
            data = self._storage.read(f"{self.directory}/{name}")
            self._digests[name] = digest_of(data)
            try:
                if noted.get(name, self._digests[name]) != self._digests[name]:
                    raise ValueError("its SHA-256 differs")  # noqa: TRY301
                part = read_part(data)
            except ValueError as error:
                raise BadRequest(f"{self.directory}/{name} is not what was written: {error}") from error
            self._rows[name] = len(part)
            self._note(name, [key for key in part.index if key in known])
            self._next = int(name[len("part-") : -len(".parquet")]) + 1
        if known - self._where.keys():
            raise BadRequest(f"{self.directory} lacks records that its checkpoints name")
