"""An incremental dump: the events of a window that belong to the policy, each with its files."""

from __future__ import annotations

import time

from hive_replication.dump.listing import Lister
from hive_replication.dump.records import DumpHeader, DumpResult, EventRecord, FileGroup, Scope
from hive_replication.dump.source import Source, has_files, is_external, message_hash
from hive_replication.dump.store import DumpWriter
from hive_replication.errors import BadRequest
from hive_replication.events import records as r
from hive_replication.events.decode import UnreadableMessage, decode, notification
from hive_replication.events.files import FileRef
from hive_replication.events.log import of_policy
from hive_replication.metastore.types import Database, NotificationEvent, Partition, Table
from hive_replication.progress import Progress


def dump_events(
    source: Source, scope: Scope, from_evid: int, to_evid: int | None, batch: int, writer: DumpWriter, progress: Progress
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

    Raises:
        BadRequest: ``to_evid`` or ``from_evid`` lies beyond the source's log, or the database does not exist.
        MissingEvents: the log no longer holds all of the window.
    """
    current = source.metastore.current_event_id()
    end = current if to_evid is None else to_evid
    if max(from_evid, end) > current:
        raise BadRequest(f"the source's notification log ends at event {current}, before {max(from_evid, end)}")
    database = _database(source, scope)
    lister = Lister(source.storage, source.cm_root())
    last: NotificationEvent | None = None
    written = 0
    for event in progress.count(source.metastore.events(from_evid, end), "events read", end - from_evid):
        last = event
        row = notification(event)
        if of_policy(row, scope.database, lambda name: _includes(source, scope, name)):
            writer.put_event(EventRecord(row, groups_of(row, lister)))
            written += 1
            if written == batch:
                end = row.evid
                break
    to_time, to_hash = (last.eventTime, message_hash(last.message)) if last else source.reach(end)
    return writer.finish(
        DumpHeader("incremental", scope, source.identity, database, from_evid, end, to_time, to_hash, time.time())
    )


def _database(source: Source, scope: Scope) -> Database:
    """The source database, marked; where it was dropped meanwhile, its name alone, so that the drop can be dumped."""
    if source.metastore.database(scope.database) is None:
        return Database(name=scope.database, parameters={})
    return source.mark(scope.database)


def groups_of(row: r.Notification, lister: Lister) -> tuple[FileGroup, ...]:
    """The files of an event: as its message names them, else as its location holds them now.

    A message names none for external tables, for locations that an ALTER brings in, and for INSERTs of other engines.
    """
    try:
        event = decode(row)
    except UnreadableMessage:
        return ()  # kept in the dump as it is; its lane is held at load
    match event:
        case r.CreateTable() if has_files(event.after):
            return (_table_group(event.after, event.files, lister, listed=is_external(event.after)),)
        case r.AlterTable(relocated=True) if has_files(event.after) and not event.truncate:
            return (_table_group(event.after, (), lister, listed=True),)
        case r.AddPartition():
            external = is_external(event.table_object)
            return tuple(
                FileGroup(added.name, added.files)
                if added.files is not None and not external
                else _partition_group(added.name, added.partition, event.table_object, lister)
                for added in event.partitions
            )
        case r.AlterPartition(truncate=False):
            relocated = (change for change in event.changes if change.relocated)
            return tuple(_partition_group(c.after_name, c.after, event.table_object, lister) for c in relocated)
        case r.Insert():
            return (_insert_group(event, lister),)
        case _:
            return ()


def _insert_group(event: r.Insert, lister: Lister) -> FileGroup:
    if event.files:
        return FileGroup(event.partition_name, event.files)
    if event.partition is not None:
        return _partition_group(event.partition_name, event.partition, event.table_object, lister)
    return _table_group(event.table_object, (), lister, listed=True)


def _table_group(table: Table, files: tuple[FileRef, ...], lister: Lister, *, listed: bool) -> FileGroup:
    return FileGroup("", lister.files(table.sd.location, kept=not is_external(table)) if listed else files, listed)


def _partition_group(name: str, partition: Partition, table: Table, lister: Lister) -> FileGroup:
    return FileGroup(name, lister.files(partition.sd.location, kept=not is_external(table)), listed=True)


def _includes(source: Source, scope: Scope, table: str) -> bool:
    return source.policy.includes(table) if scope.table is None else table == scope.table
