"""Writes of transactions that nobody noted in the metastore, so that their commits look like those of no rows.

Hive's clients tell the metastore which files they write. Others need not (Trino does not), nor does a HiveServer2 without
``hive.metastore.dml.events``: that they wrote is seen from the directory alone that is named after the write id. Changes of
tables get write ids, too, and leave no file. What a compaction has replaced, and its cleaner deleted, cannot be told from these.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial

from hive_replication.acid.directories import AcidDirectory
from hive_replication.dump.beginnings import Allocated
from hive_replication.dump.format.record_types import FileGroup
from hive_replication.dump.incremental.present_location import PresentLocations
from hive_replication.dump.source import Source, why_skipped
from hive_replication.dump.source_boundary import SourceBoundary
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.events import event_records as r
from hive_replication.events.decoders_by_event_type import UnreadableMessage, decode, notification
from hive_replication.events.files import FileRef
from hive_replication.events.transactions import CommitTransaction
from hive_replication.logs import about
from hive_replication.metastore.faults import NotFound
from hive_replication.metastore.table_kinds import has_files, is_partitioned, is_transactional
from hive_replication.metastore.types import NotificationEvent, Partition, Table
from hive_replication.storage import Storage, paths

_LOG = logging.getLogger(__name__)
_OF_PARTITIONS = frozenset({"ADD_PARTITION", "ALTER_PARTITION", "ALTER_PARTITIONS"})


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a transaction may have written.

    Args:
        directories: of the table or partitions.
        whole: name of the table if they are those of all its partitions.
    """

    directories: tuple[str, ...] = ()
    whole: str = ""


@dataclass(frozen=True)
class UnnotedWrites:
    """Looks for what transactions wrote without a note, in the directories of the tables of their write ids.

    Args:
        source: the source side.
        locations: present locations of the database's objects.
        boundary: what may be read of it; what lies outside holds its table anyway.
    """

    source: Source
    locations: PresentLocations
    boundary: SourceBoundary
    _listed: dict[str, frozenset[int]] = field(default_factory=dict[str, frozenset[int]])

    def groups(self, commit: CommitTransaction, allocated: Iterable[Allocated]) -> Iterator[FileGroup]:
        """What stands for such a write, for each table that has one: the load holds it.

        Args:
            commit: of the transaction.
            allocated: write ids that it got, of tables without a note.
        """
        for one in allocated:
            try:
                if found := self._written(commit, one):
                    yield FileGroup("", (FileRef.unnoted_directory(found),), table=one.table)
            except Unreachable:
                raise
            except ReplicationError as error:
                extra = about(one.database, one.table, commit.evid)
                _LOG.warning("whether the transaction wrote cannot be read: the load holds the table: %s", error, extra=extra)
                yield FileGroup("", (), table=one.table)

    def _written(self, commit: CommitTransaction, allocated: Allocated) -> str:
        """The directory of a write; "" where there is none, or the table is gone."""
        # Hive renames in a transaction with a write id: another table may have the name by the time of the commit.
        name = self.locations.name_after(commit.evid - 1, allocated.table, allocated.evid)
        if not name:
            return ""
        storage, now = self.source.storage, self._places(commit, allocated, name)
        while now.directories:
            found = list(storage.many.map(partial(writes_in, storage), now.directories))
            made = (one[allocated.write_id] for one in found if allocated.write_id in one)
            if directory := next(filter(storage.files, made), ""):
                return directory
            before, now = now, self._places(commit, allocated, name)
            if now == before:
                if now.whole:
                    self._listed[now.whole] = frozenset(write_id for one in found for write_id in one)
                break
            extra = about(allocated.database, allocated.table, commit.evid)
            _LOG.debug("the table changed while it was listed; it is listed again", extra=extra)
        return ""

    def _places(self, commit: CommitTransaction, allocated: Allocated, name: str) -> _Places:
        """Where the transaction may have written: the present directory of the table that it left so named, or of partitions."""
        metastore, database = self.source.metastore, allocated.database
        table = metastore.table(database, name)
        # One that is older than the commit is the same: the rest of a long log need not be read for it.
        seen = table if table is not None and (table.createTime or 0) <= commit.time else None
        present = self.locations.find_table(name, commit.evid, seen).table
        if present != name:
            table = metastore.table(database, present) if present else None
        if table is None or not is_transactional(table) or why_skipped(table, acid=True):
            return _Places()
        try:
            if not is_partitioned(table):
                return self._readable(filter(has_files, (table,)))
            if named := self._named(commit, allocated, present):
                return self._readable(named)
            if allocated.write_id not in self._listed.get(present, {allocated.write_id}):
                return _Places()  # it was listed for an earlier commit, after this one
            return self._readable(metastore.partitions(database, present), present)
        except NotFound:
            return _Places()  # gone this moment, by a later event

    def _readable(self, things: Iterable[Table | Partition], whole: str = "") -> _Places:
        found = (one.sd.location for one in things if one.sd.location and not self.boundary.why_outside(one))
        return _Places(tuple(sorted(found)), whole)

    def _named(self, commit: CommitTransaction, allocated: Allocated, table: str) -> list[Partition]:
        """The partitions that events name with the write id; [] where none is named, or one has another name by now."""
        log, database = self.source.metastore, allocated.database
        names = {
            name
            for event in log.events_left(allocated.evid, commit.evid - 1)
            if event.eventType in _OF_PARTITIONS and (event.dbName or "").lower() == database
            for name in named_with(event, allocated)
        }
        found = list(log.partitions(database, table, sorted(names))) if names else []
        return found if len(found) == len(names) else []


def named_with(event: NotificationEvent, allocated: Allocated) -> Iterator[str]:
    """Names of the partitions that an event adds or alters with a write id (pure)."""
    try:
        said = decode(notification(event))
    except UnreadableMessage:
        return
    if said.table != allocated.table:
        return
    if isinstance(said, r.AddPartition):
        yield from (one.name for one in said.partitions if one.partition.writeId == allocated.write_id)
    elif isinstance(said, r.AlterPartition):
        for one in said.changes:
            if allocated.write_id in (said.write_id, one.after.writeId):
                yield one.after_name


def writes_in(storage: Storage, location: str) -> dict[int, str]:
    """The directories that writers made in that of a table or partition, by write id."""
    found = dict[int, str]()
    for status in storage.ls(location):
        one = AcidDirectory.parsed(paths.name(status.uri.rstrip("/"))) if status.is_dir else None
        if one is not None and not one.visibility and (one.kind == "base" or one.first == one.last):
            found[one.last] = status.uri
    return found
