"""An incremental dump: the events of a window that belong to the policy, each with its files."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial

from hive_replication.dump.anew import DumpTable, TablesAnew
from hive_replication.dump.attempts import Checkpoint
from hive_replication.dump.event_files import EventFiles
from hive_replication.dump.records import DumpHeader, DumpResult, EventRecord, Scope
from hive_replication.dump.source import Source, message_hash
from hive_replication.dump.store import DumpWriter
from hive_replication.dump.transactions import TransactionReader
from hive_replication.errors import BadRequest
from hive_replication.events.decode import notification
from hive_replication.events.log import of_policy
from hive_replication.events.records import Notification
from hive_replication.events.transactions import TYPES
from hive_replication.metastore.tables import batches
from hive_replication.metastore.types import Database, NotificationEvent
from hive_replication.progress import Progress

_BATCH = 200  # events whose files are looked for at once
_THREADS = 4  # transactions asked for at once


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
    files = EventFiles(source, scope.database, from_evid)
    anew = TablesAnew(source, scope.database, from_evid, dump_table)
    transactions = TransactionReader(source, scope.database, partial(_includes, source, scope))
    last: NotificationEvent | None = None
    start = writer.done.evid if writer.done else from_evid
    events = progress.count(source.metastore.events(start, end), "events read", end - start)
    for event, row, record in _records(source, scope, events, files, transactions):
        last = event
        if record is not None:
            told = record if row.type in TYPES else replace(record, notification=anew.told(row))
            writer.put_event(replace(told, hash=message_hash(event.message)))
            if writer.number_of_events == batch:
                end = row.evid
                break
        if writer.due():
            writer.keep(Checkpoint(row.evid, message_hash(event.message)))
    to_time, to_hash = (last.eventTime, message_hash(last.message)) if last else source.reach(end)
    header = DumpHeader("incremental", scope, source.identity, database, from_evid, end, to_time, to_hash, time.time())
    header = replace(header, from_hash=from_hash, metadata_only=source.policy.metadata_only, acid=source.acid)
    return writer.finish(header)


def _records(
    source: Source, scope: Scope, events: Iterable[NotificationEvent], files: EventFiles, transactions: TransactionReader
) -> Iterator[tuple[NotificationEvent, Notification, EventRecord | None]]:
    """Events and what they say, with their records where they are of the dump: what the source is asked for, for many at once."""
    includes = partial(_includes, source, scope)
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="transaction") as pool:
        for batch in batches(events, _BATCH):
            rows = [notification(event) for event in batch]
            ended = pool.map(transactions.record, rows)
            taken = [row for row in rows if source.policy.takes(row.type) and of_policy(row, scope.database, includes)]
            grouped = {row.evid: EventRecord(row, groups) for row, groups in zip(taken, files.groups(taken), strict=True)}
            yield from ((event, row, grouped.get(row.evid, end)) for event, row, end in zip(batch, rows, ended, strict=True))


def _database(source: Source, scope: Scope) -> Database:
    """The source database, marked; where it was dropped meanwhile, its name alone, so that the drop can be dumped."""
    if source.metastore.database(scope.database) is None:
        return Database(name=scope.database, parameters={})
    return source.mark(scope.database)


def _includes(source: Source, scope: Scope, table: str) -> bool:
    return source.policy.includes(table) if scope.table is None else table == scope.table
