"""Reading a database's objects into a dump: each table with its partitions and files, and when it was read."""

from __future__ import annotations

import logging
from collections import ChainMap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import cast

from hive_replication.dump.format.checkpoints import Checkpoint
from hive_replication.dump.format.interface import DumpWriter
from hive_replication.dump.format.record_types import PartitionRecord, Scope, TableRecord
from hive_replication.dump.listing import Lister
from hive_replication.dump.source import Source, why_skipped
from hive_replication.dump.statistics import with_statistics
from hive_replication.errors import BadRequest
from hive_replication.events.files import FileRef
from hive_replication.logs import about, reason
from hive_replication.metastore.faults import MetastoreError, NotFound
from hive_replication.metastore.marked_external import restored
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.table_kinds import has_files, is_external, is_partitioned, is_transactional, is_view
from hive_replication.metastore.tables import at_once, batches
from hive_replication.metastore.types import Table
from hive_replication.progress import Progress, Silent

_BATCH = 500
_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Read:
    """When an object was read: all events up to ``begin`` are in it, those up to ``end`` may be."""

    begin: int
    end: int


@dataclass
class ObjectReader:
    """Reads tables of one database into a dump.

    ``reads`` tells for each table name that is in the dump when it was read; ``skipped`` which others are of a kind that is left
    out, and why, ``unshown`` which the metastore does not show, with its words; ``children`` which tables have foreign keys that
    point at a table. ``begun`` tells of those that are being read the event id before, and the last partition that is in the
    dump. ``writing`` is held while the writer, ``reads`` and ``begun`` are in use; ``checkpoint`` is noted with them, as long as
    the dump only grows. ``progress`` shows the partitions of each table.
    """

    source: Source
    scope: Scope
    writer: DumpWriter
    lister: Lister
    reads: dict[str, Read] = field(default_factory=dict[str, Read])
    skipped: dict[str, str] = field(default_factory=dict[str, str])
    unshown: dict[str, str] = field(default_factory=dict[str, str])
    children: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    begun: dict[str, tuple[int, str]] = field(default_factory=dict[str, tuple[int, str]])
    writing: Lock = field(default_factory=Lock)
    checkpoint: Checkpoint | None = None
    progress: Progress = field(default_factory=Silent)

    @property
    def absent(self) -> Mapping[str, str]:
        """Tables that are there and not in the dump, as far as it is, each with why."""
        return ChainMap(self.skipped, self.unshown)

    def names(self) -> list[str]:
        """Tables of the scope at this moment.

        Raises:
            BadRequest: the scope is one table and the source does not have it.
        """
        if self.scope.table is not None:
            if self.source.metastore.table(self.scope.database, self.scope.table) is None:
                raise BadRequest(f"the source {self.source.metastore.uri} has no table {self.scope}")
            return [self.scope.table]
        names = self.source.metastore.table_names(self.scope.database)
        return sorted(name for name in names if self.source.policy.includes(name))

    def read_all(self, names: Sequence[str]) -> Iterator[None]:
        """Reads tables, as many at once as ``parallelism.tables`` says; yields whenever one is done."""
        return self.source.threads.unordered(self.read, names)

    def read(self, name: str) -> None:
        """Reads one table, its partitions and files, or the rest of them; a table that is no longer there leaves nothing.

        Nor does one that the metastore does not show, as where it asks HDFS who may read its directory: others are read all the
        same. A dump of this table alone ends.
        """
        try:
            self._read(name)
        except MetastoreError as error:
            if self.scope.table is not None:
                raise
            _LOG.warning("the load holds a table that cannot be read: %s", error, extra=about(self.scope.database, name))
            self._leave_out(name)
            self.unshown[name] = reason(error)

    def put_unshown(self) -> None:
        """Puts the tables that the metastore did not show into the dump, as far as it names them: as what the load holds.

        Only now, when all events are folded: no event tells what is in them.
        """
        for told in (self.skipped, self.unshown):
            for name in told.keys() & self.reads.keys():  # made anew meanwhile
                del told[name]
        names = sorted(self.unshown)
        with suppress(MetastoreError):  # the dump's header names the others, such as views, which have no location
            for table in map(restored, self.source.metastore.tables(self.scope.database, names)):
                left_out = why_skipped(table, metadata_only=self.source.policy.metadata_only, acid=self.source.acid)
                if left_out:
                    self.skipped[table.tableName.lower()] = left_out
                    del self.unshown[table.tableName.lower()]
                elif table.sd.location:
                    self.writer.put_table(TableRecord(table, (FileRef.unshown_table(table.sd.location),)))

    def _read(self, name: str) -> None:
        begin, last = self.begun.get(name) or (self.source.metastore.current_event_id(), "")
        self.skipped.pop(name, None)
        self.unshown.pop(name, None)
        found = self.source.metastore.table(self.scope.database, name)
        table = restored(found) if found else None
        metadata_only = self.source.policy.metadata_only
        if table and (reason := why_skipped(table, metadata_only=metadata_only, acid=self.source.acid)):
            self.skipped[name], table = reason, None
        if table is None:
            if name in self.begun:  # else the dump has nothing of it
                self._leave_out(name)
            return
        listed = has_files(table) and not is_transactional(table)  # those of transactional tables are listed last (snapshot)
        files = self.lister.files(table.sd.location, kept=not is_external(table)) if listed else ()
        try:
            record = self._with_attached(TableRecord(table, files))
            with self.writing:
                self.writer.put_table(record)
            wanted = self._wanted(table, last) if is_partitioned(table) and not metadata_only else []
            read = self._partitions(table, wanted)
            if len(wanted) > _BATCH:  # a terminal would draw a bar for each of many small tables
                read = self.progress.count(read, f"partitions of {name} read", len(wanted), number=lambda one: len(one[1]))
            for until, parts in read:
                with self.writing:
                    for part in parts:
                        self.writer.put_partition(part)
                    self.begun[name] = begin, until
                    self._keep()
        except NotFound:  # dropped or renamed meanwhile: the fold of that event does the rest
            self._leave_out(name)
            return
        end = self.source.metastore.current_event_id()
        with self.writing:
            self.begun.pop(name, None)
            self.reads[name] = Read(begin, end)
            self._keep()

    def _leave_out(self, name: str) -> None:
        with self.writing:
            self.begun.pop(name, None)
            self.writer.drop_table(name)

    def _keep(self) -> None:
        """Notes how far the dump is, where it is time to."""
        if self.checkpoint is not None and self.writer.due():
            reads = {name: (read.begin, read.end) for name, read in self.reads.items()}
            self.writer.keep(replace(self.checkpoint, reads=reads, begun=dict(self.begun)))

    def _with_attached(self, record: TableRecord) -> TableRecord:
        """A table with its constraints and column statistics, if it can have any."""
        if is_view(record.table):
            return record
        metastore, columns = self.source.metastore, [column.name for column in record.table.sd.cols]
        data = not self.source.policy.metadata_only
        found = metastore.table_statistics(self.scope.database, record.name, columns) if data else ()
        constraints = metastore.constraints(self.scope.database, record.name)
        made = TableRecord(with_statistics(record.table, found), record.files, constraints)
        self._note_parents(made)
        return made

    def resume(self, done: Checkpoint) -> None:
        """Goes on where an interrupted dump was, with its tables that are there still."""
        self.reads |= {name: Read(*read) for name, read in done.reads.items()}
        for record in filter(None, map(self.writer.table, self.reads)):
            self._note_parents(record)
        self.begun |= done.begun
        for name in self.begun.keys() - set(self.names()):
            self._leave_out(name)

    def _note_parents(self, record: TableRecord) -> None:
        for parent in filter(None, (one.parent for one in record.constraints)):
            self.children.setdefault(parent[1], set()).add(record.name)

    def _wanted(self, table: Table, last: str) -> list[str]:
        """Names of the partitions after one, in order."""
        wanted = self.scope.partitions
        if wanted is None:
            wanted = self.source.metastore.partition_names(self.scope.database, table.tableName.lower())
        return sorted(one for one in wanted if one > last)

    def _partitions(self, table: Table, wanted: Sequence[str]) -> Iterator[tuple[str, list[PartitionRecord]]]:
        """Partitions, a batch at a time, each with the name up to which it goes."""
        name, metastore = table.tableName.lower(), self.source.metastore
        columns, kept = [column.name for column in table.sd.cols], not is_external(table)
        for batch in batches(wanted, at_once(table.sd.cols, _BATCH)):
            found = by_name(table, metastore.partitions(self.scope.database, name, batch))
            names = sorted(found)
            statistics = metastore.partition_statistics(self.scope.database, name, columns, names)
            listed = self.lister.many((None if is_transactional(table) else found[one].sd.location for one in names), kept=kept)
            attached = (with_statistics(found[one], statistics.get(one, ())) for one in names)
            yield batch[-1], [PartitionRecord(name, *one) for one in zip(names, attached, listed, strict=True)]

    def relist(self, objects: Iterable[tuple[str, str]]) -> None:
        """Lists files again, for events that named none; from then on the tables count as read now.

        Args:
            objects: tables, and partitions ("" for the table itself).
        """
        found = {(table, part): self.writer.table(table) for table, part in sorted(objects)}
        there = {one: record for one, record in found.items() if record is not None}
        for kept in (True, False):
            self._relist({one: record for one, record in there.items() if is_external(record.table) != kept}, kept=kept)
        end = self.source.metastore.current_event_id() if there else 0
        self.reads |= {table: Read(self.reads[table].begin, end) for table, _ in there}

    def _relist(self, objects: Mapping[tuple[str, str], TableRecord], *, kept: bool) -> None:
        records: list[TableRecord | PartitionRecord] = []
        for (table, partition), record in objects.items():
            one = self.writer.partition(table, partition) if partition else record
            records += [one] if one else []
        things = [one.table if isinstance(one, TableRecord) else one.partition for one in records]
        listed = self.lister.many([thing.sd.location for thing in things], kept=kept)
        for one, files in zip(records, listed, strict=True):
            if isinstance(one, TableRecord):
                self.writer.put_table(replace(one, files=files))
            else:
                self.writer.put_partition(replace(one, files=files))


def why_not_shown(source: Source, database: str, name: str) -> str:
    """Why the metastore does not show all that a dump reads of a table; "" where it does, or has no such table.

    It is read as for a dump, but no directory is listed.

    Args:
        source: the source side.
        database: of the source.
        name: its table.
    """
    reader = ObjectReader(source, Scope(database), cast("DumpWriter", _Nothing()), Lister(source.storage, nothing=True))
    reader.read(name)
    return reader.unshown.get(name, "")


class _Nothing:
    """Takes what a reader writes, and keeps nothing."""

    def put_table(self, record: TableRecord) -> None:
        pass

    def put_partition(self, record: PartitionRecord) -> None:
        pass

    def drop_table(self, name: str) -> None:
        pass
