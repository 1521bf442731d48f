"""An incremental dump: the events of a window that belong to the policy, each with its files."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial

from hive_replication.dump.anew import DumpTable, TablesAnew
from hive_replication.dump.attached import function_record
from hive_replication.dump.attempts import Checkpoint
from hive_replication.dump.moves import Moves
from hive_replication.dump.records import DumpHeader, DumpResult, EventRecord, FileGroup, Scope
from hive_replication.dump.source import Source, has_files, is_external, is_transactional, message_hash
from hive_replication.dump.store import DumpWriter
from hive_replication.dump.transactions import TransactionReader
from hive_replication.errors import BadRequest
from hive_replication.events import records as r
from hive_replication.events.decode import UnreadableMessage, decode, notification
from hive_replication.events.log import of_policy
from hive_replication.events.transactions import TYPES
from hive_replication.metastore.faults import NotFound
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.types import Database, NotificationEvent, Partition, Table, columns_of
from hive_replication.progress import Progress


def dump_events(
    source: Source,
    scope: Scope,
    from_evid: int,
    to_evid: int | None,
    batch: int,
    writer: DumpWriter,
    progress: Progress,
    dump_table: DumpTable | None = None,
) -> DumpResult:
    """Writes the events of ``(from_evid, to_evid]`` that belong to the scope; data stays where it is.

    Args:
        source: the source side.
        scope: database, or one table.
        from_evid: events after this one.
        to_evid: up to and with this one; None for all there are.
        batch: stop after so many events *of the scope*; 0 for no limit. The header's ``to_evid`` then names the last one.
        writer: where to.
        progress: who is told.
        dump_table: dumps a table that the load has to make anew; where None, its lane is held.

    Raises:
        BadRequest: ``to_evid`` or ``from_evid`` lies beyond the source's log, or the database does not exist.
        MissingEvents: the log no longer holds all of the window.
    """
    current = source.metastore.current_event_id()
    end = current if to_evid is None else to_evid
    if max(from_evid, end) > current:
        raise BadRequest(
            f"the source's notification log ends at event {current}, before {max(from_evid, end)}; if its metastore was restored "
            f"from an older state: hive-repl recover {scope.database}"
        )
    database = _database(source, scope)
    _, from_hash = source.reach(from_evid)
    grouper = _Grouper(source, scope, from_evid)
    anew = TablesAnew(source, scope.database, from_evid, dump_table)
    transactions = TransactionReader(source, scope.database, partial(_includes, source, scope))
    last: NotificationEvent | None = None
    start = writer.done.evid if writer.done else from_evid
    for event in progress.count(source.metastore.events(start, end), "events read", end - start):
        last = event
        row = notification(event)
        record = transactions.record(row) if row.type in TYPES else None
        if source.policy.takes(row.type) and of_policy(row, scope.database, partial(_includes, source, scope)):
            record = EventRecord(anew.told(row), grouper.groups(row))
        if record is not None:
            writer.put_event(replace(record, hash=message_hash(event.message)))
            if writer.number_of_events == batch:
                end = row.evid
                break
        if writer.due():
            writer.keep(Checkpoint(row.evid, message_hash(event.message)))
    to_time, to_hash = (last.eventTime, message_hash(last.message)) if last else source.reach(end)
    header = DumpHeader("incremental", scope, source.identity, database, from_evid, end, to_time, to_hash, time.time())
    header = replace(header, from_hash=from_hash, metadata_only=source.policy.metadata_only, acid=source.acid)
    return writer.finish(header)


def _database(source: Source, scope: Scope) -> Database:
    """The source database, marked; where it was dropped meanwhile, its name alone, so that the drop can be dumped."""
    if source.metastore.database(scope.database) is None:
        return Database(name=scope.database, parameters={})
    return source.mark(scope.database)


class _Grouper:
    """The files of events: as a message names them, else as the object's directory holds them now.

    A message names none for external tables, for locations that an ALTER brings in, for INSERTs of other engines, for functions.
    """

    def __init__(self, source: Source, scope: Scope, after: int) -> None:
        self._lister, self._metadata_only = source.lister(), source.policy.metadata_only
        self._source, self._cm_root = source, source.cm_root()
        self._moves = Moves(source.metastore, scope.database, after)

    def groups(self, row: r.Notification) -> tuple[FileGroup, ...]:
        """The files of one event, object by object."""
        if self._metadata_only:
            return ()
        try:
            event = decode(row)
        except UnreadableMessage:
            return ()  # kept in the dump as it is; its lane is held at load
        table = getattr(event, "after", None) or getattr(event, "table_object", None)
        without_files = isinstance(table, Table) and is_transactional(table)  # those are what transactions wrote
        if without_files and not (isinstance(event, r.AlterTable) and event.may_cascade):
            return ()
        return self._of(event)

    def _of(self, event: r.Event) -> tuple[FileGroup, ...]:
        match event:
            case r.CreateTable() if has_files(event.after):
                if is_external(event.after):
                    return (self._listed(event, event.after),)
                return (FileGroup("", event.files),)
            case r.AlterTable(relocated=True) if has_files(event.after) and not event.truncate:
                return (self._listed(event, event.after),)
            case r.AlterTable(may_cascade=True):
                return tuple(FileGroup(name, ()) for name in self._cascaded(event))
            case r.AddPartition():
                return tuple(self._added(event, added) for added in event.partitions)
            case r.AlterPartition(truncate=False):
                relocated = (change for change in event.changes if change.may_be_relocated(event.table_object))
                return tuple(self._listed(event, event.table_object, c.after_name, c.after) for c in relocated)
            case r.Insert() if event.files:
                return (FileGroup(event.partition_name, event.files),)
            case r.CreateFunction():
                return (FileGroup("", function_record(self._source, event.after, self._cm_root).files),)
            case r.Insert():
                return (self._listed(event, event.table_object, event.partition_name, event.partition),)
            case _:
                return ()

    def _cascaded(self, event: r.AlterTable) -> list[str]:
        """Partitions that have the columns now that an event gave to their table; none where the table is gone by now."""
        table = self._moves.place("", event.names[-1], "", event.evid).table
        try:
            found = self._source.metastore.partitions(event.database, table) if table else ()
            having = [partition for partition in found if columns_of(partition) == columns_of(event.after)]
        except NotFound:
            return []  # gone this moment, by a later event
        return sorted(by_name(event.after, having))

    def _added(self, event: r.AddPartition, added: r.AddedPartition) -> FileGroup:
        if added.files is None or is_external(event.table_object):
            return self._listed(event, event.table_object, added.name, added.partition)
        return FileGroup(added.name, added.files)

    def _listed(self, event: r.Event, table: Table, name: str = "", partition: Partition | None = None) -> FileGroup:
        """The directory's present content. Of an object that is gone by now, none: a later event drops it on the target, too."""
        recorded = (partition or table).sd.location
        place = self._moves.place(recorded, event.table, name, event.evid)
        while place.location is not None:
            files = self._lister.files(place.location, kept=not is_external(table))
            before, place = place, self._moves.place(recorded, event.table, name, event.evid)
            if before == place:
                return FileGroup(name, files, listed=True)
        return FileGroup(name, ())


def _includes(source: Source, scope: Scope, table: str) -> bool:
    return source.policy.includes(table) if scope.table is None else table == scope.table
