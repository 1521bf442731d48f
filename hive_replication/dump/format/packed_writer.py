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

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from itertools import groupby, starmap
from typing import Any, cast

from hive_replication.dump.format import encoding
from hive_replication.dump.format.ack import PART
from hive_replication.dump.format.bounds import is_path, readable, readable_files
from hive_replication.dump.format.checkpoints import Run
from hive_replication.dump.format.digests import DumpFiles, digest_of, most_of
from hive_replication.dump.format.packed_parquet import (
    Key,
    Kind,
    Part,
    Record,
    in_order,
    key_of,
    number_of_files,
    part_of,
    read_part,
    weight,
)
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

#: Weight of one Parquet file at most: its records, with their files, columns and long texts. So much is held in memory.
_FULL = 20_000
_KEPT = 2


@dataclass
class _Live:
    """What of a Parquet file is wanted still: runs by table, and other rows."""

    keys: set[Key] = field(default_factory=set[Key])
    runs: dict[str, Run] = field(default_factory=dict[str, Run])

    def has(self, key: Key) -> bool:
        """Whether a row is wanted."""
        if key.kind != "partition":
            return key in self.keys
        return key.table in self.runs and key.name not in self.runs[key.table].gone


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
        self._where: dict[Key, str] = {}  # Parquet files of all but partitions
        self._rows: dict[str, int] = {}
        self._next = 0
        self._part = lru_cache(_KEPT)(self._read)
        if claim is None:
            storage.mkdirs(directory)
        elif claim.done is not None:
            self._go_on()

    def put_table(self, record: TableRecord) -> None:
        record = replace(record, files=readable_files(record.files, record.table.sd.location))
        self._tables[record.name] = len(record.files)
        self._put(record)

    def put_partition(self, record: PartitionRecord) -> None:
        self._put(replace(record, files=readable_files(record.files, record.partition.sd.location)))

    def put_function(self, record: FunctionRecord) -> None:
        self._functions[record.name] = len(record.files)
        self._put(record)

    def put_event(self, record: EventRecord) -> None:
        record = readable(record)
        self._events[record.notification.evid] = number_of_files(record)
        self._put(record)

    def table(self, name: str) -> TableRecord | None:
        return cast("TableRecord | None", self._get(Key("table", name=name)))

    def partition(self, table: str, name: str) -> PartitionRecord | None:
        key = Key("partition", table, name)
        run = self._run(key)
        found = self._waiting.get(key) if run is None else self._part(run.part).record(key)
        return cast("PartitionRecord | None", found)

    def partitions(self, table: str) -> Iterator[PartitionRecord]:
        # What waits is not written for this: a file for each table that is read back would be as many as the tables.
        waiting = [(key, one) for key, one in self._waiting.items() if key.kind == "partition" and key.table == table]
        waiting.sort(key=lambda one: one[0])
        files = ((Key("partition", table, run.first), partial(self._live, run, table)) for run in self._runs.get(table, ()))
        rows = in_order([(Key("partition", table), lambda: waiting), *files])
        return (cast("PartitionRecord", record) for _, record in rows)

    def drop_table(self, name: str) -> None:
        self._tables.pop(name, None)
        self._drop(Key("table", name=name))
        self._runs.pop(name, None)
        for key in [key for key in self._waiting if key.table == name]:
            del self._waiting[key]

    def drop_partition(self, table: str, name: str) -> None:
        self._drop(Key("partition", table, name))

    def finish(self, header: DumpHeader) -> DumpResult:
        if not self._rows and len(self._waiting) <= self._above and all(map(_has_paths, self._waiting.values())):
            return self._as_tree().finish(header)
        self._close()
        self._flush()
        live: dict[str, _Live] = {name: _Live() for name in sorted(self._rows)}
        for key, name in self._where.items():
            live[name].keys.add(key)
        for table, runs in self._runs.items():
            for run in runs:
                live[run.part].runs[table] = run
        parts = dict(filter(None, starmap(self._settled, live.items())))
        text = encoding.header_text(header)
        self._digests = {"_dumpmetadata": digest_of(text)} | {name: self._digests[name] for name in parts}
        self._storage.write(f"{self.directory}/_dumpmetadata", text)
        return self._acknowledge(header, parts=parts)

    def _as_tree(self) -> TreeWriter:
        """The same dump in the ``tree`` layout."""
        for written in (self._tables, self._events, self._digests):
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
        try:
            return read_part(DumpFiles(self._storage, self.directory, self._digests).read(name))
        except ValueError as error:
            raise BadRequest(f"{self.directory}: {error}; dump again") from error

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
        more = weight(record)
        if self._weight + more > _FULL:
            self._flush()  # together they would be more than is read of a file
        self._waiting[key] = record
        self._weight += more
        if self._weight >= _FULL:
            self._flush()

    def _get(self, key: Key) -> Record | None:
        if key in self._where:
            return self._part(self._where[key]).record(key)
        return self._waiting.get(key)

    def _drop(self, key: Key) -> None:
        self._waiting.pop(key, None)
        self._where.pop(key, None)
        if (run := self._run(key)) is not None:
            run.gone.add(key.name)
            run.files -= number_of_files(self._part(run.part).record(key))
            if not run.left:
                self._runs[key.table].remove(run)

    def _run(self, key: Key) -> Run | None:
        """The run that a partition is in; None of any other record."""
        for run in self._runs.get(key.table, ()):
            if run.first <= key.name <= run.last and key.name not in run.gone and key in self._part(run.part):
                return run
        return None

    def _live(self, run: Run, table: str) -> Iterator[tuple[Key, Record]]:
        return ((key, record) for key, record in self._part(run.part).stream("partition", table) if key.name not in run.gone)

    def _flush(self) -> None:
        if not self._waiting:
            return
        name = self._write(part_of(self._waiting.values()))
        self._where |= {key: name for key in self._waiting if key.kind != "partition"}
        for table, found in groupby(sorted(key for key in self._waiting if key.kind == "partition"), lambda key: key.table):
            keys = list(found)
            files = sum(number_of_files(self._waiting[key]) for key in keys)
            self._runs.setdefault(table, []).append(Run(name, keys[0].name, keys[-1].name, len(keys), files))
        self._rows[name] = len(self._waiting)
        self._waiting.clear()
        self._weight = 0

    def _settled(self, name: str, live: _Live) -> tuple[str, dict[str, Any]] | None:
        """What the ack file says of a Parquet file, once it has no rows that nobody wants any more; None if none was left."""
        tables = sorted(table for table, run in live.runs.items() if run.left)
        rows = len(live.keys) + sum(run.left for run in live.runs.values())
        if rows < self._rows[name]:
            # The new file comes before the old one goes: a writer that is killed in between leaves no row behind.
            settled = self._write(self._part(name).only(live.has)) if rows else None
            self._storage.delete(f"{self.directory}/{name}")
            if settled is None:
                return None
            name = settled
        kinds = {key.kind for key in live.keys} | ({"partition"} if tables else set[Kind]())
        return name, {"rows": rows, "kinds": sorted(kinds), "tables": tables}

    def _go_on(self) -> None:
        """Restores the index from the files of earlier writers; rows that no checkpoint names count as dropped.

        Files of other names, such as copies, are removed; with a key those, too, that no checkpoint names: nobody knows who wrote
        them.

        Raises:
            BadRequest: a file is not what was written, or lacks what a checkpoint names.
        """
        known = {Key("table", name=name) for name in self._tables}
        known |= {Key("event", evid=evid) for evid in self._events}
        noted, found = dict(self._digests), sorted(paths.name(status.uri) for status in self._storage.ls(self.directory))
        self._digests.clear()
        for name in (name for name in found if name.endswith(".parquet") and not name.startswith(".")):
            if not re.fullmatch(PART, name) or (self._key and name not in noted):
                self._storage.delete(f"{self.directory}/{name}")
                continue
            try:
                data = self._storage.read(f"{self.directory}/{name}", most=most_of(name))
                self._digests[name] = digest_of(data)
                if noted.get(name, self._digests[name]) != self._digests[name]:
                    raise ValueError("its SHA-256 differs")  # noqa: TRY301
                part = read_part(data)
            except ValueError as error:
                raise BadRequest(f"{self.directory}/{name} is not what was written: {error}") from error
            self._rows[name] = len(part)
            self._where |= {key: name for key in part.index if key in known}
            self._adopt(name, part)
            self._next = max(self._next, int(name[len("part-") : -len(".parquet")]) + 1)
        lost = {run.part for runs in self._runs.values() for run in runs} - self._rows.keys()
        if known - self._where.keys() or lost or self._partitions:
            raise BadRequest(f"{self.directory} lacks records that its checkpoints name")

    def _adopt(self, name: str, part: Part) -> None:
        """The runs of a Parquet file by checkpoints of earlier versions, which noted each partition."""
        if not self._partitions:
            return
        for table, found in groupby((key for key in part.index if key.kind == "partition"), lambda key: key.table):
            names = [key.name for key in found]
            noted = {one: self._partitions.pop((table, one)) for one in names if (table, one) in self._partitions}
            if noted:
                run = Run(name, names[0], names[-1], len(names), sum(noted.values()), set(names) - noted.keys())
                self._runs.setdefault(table, []).append(run)


def _has_paths(record: Record) -> bool:
    """Whether the partitions of a record can be directories of the ``tree`` layout."""
    match record:
        case PartitionRecord():
            return is_path(record.name)
        case EventRecord():
            return all(is_path(group.partition) for group in record.groups)
        case _:
            return True
