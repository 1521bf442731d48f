"""An incremental dump: the events of a window that belong to the policy, each with its files."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from hive_replication.dump.format.checkpoints import Checkpoint
from hive_replication.dump.format.interface import DumpWriter
from hive_replication.dump.format.record_types import DumpHeader, DumpResult, EventRecord, MadeWith, Scope
from hive_replication.dump.incremental.commits import TransactionReader
from hive_replication.dump.incremental.event_files import EventFiles
from hive_replication.dump.incremental.newly_included_tables import JoinedTables
from hive_replication.dump.incremental.present_location import PresentLocations
from hive_replication.dump.incremental.shared_directories import SharedDirectories
from hive_replication.dump.incremental.table_redumps import DumpTable, TableRedumps
from hive_replication.dump.outside_filters import OutsideFilters
from hive_replication.dump.source import Source, is_replica, message_hash
from hive_replication.dump.source_mark import mark
from hive_replication.errors import BadRequest, MissingEvents
from hive_replication.events.events_of_policy import LogEvent, of_policy
from hive_replication.events.transactions import ENDS
from hive_replication.events.unpack import unpacked_size
from hive_replication.logs import about
from hive_replication.metastore.types import Database, NotificationEvent
from hive_replication.parallel import settle
from hive_replication.progress import Progress

_BATCH = 200  # events whose files are looked for at once
_BYTES = 8 << 20  # of the messages of such a batch
_LOG = logging.getLogger(__name__)


def dump_events(
    source: Source,
    scope: Scope,
    from_evid: int,
    to_evid: int | None,
    batch: int,
    writer: DumpWriter,
    progress: Progress,
    dump_table: DumpTable | None = None,
    made_with: MadeWith | None = None,
) -> DumpResult:
    """Writes the events of ``(from_evid, to_evid]`` that belong to the scope; data stays where it is.

    Args:
        source: the source side.
        scope: database, or one table.
        from_evid: events after this one.
        to_evid: up to and with this one; None for all there are.
        batch: stop after so many events *of the scope*; 0 for no limit. The header's ``to_evid`` then names the last one.
        writer: where to.
        progress: shows the number of events read.
        dump_table: dumps a table that the load has to rebuild; if None, its lane is held.
        made_with: what the replica was made with, where that is known.

    Raises:
        BadRequest: ``to_evid`` or ``from_evid`` lies beyond the source's log, or the database does not exist.
        MissingEvents: the log no longer holds all of the window that the dump does not have yet.
    """
    current = source.metastore.current_event_id()
    end = current if to_evid is None else to_evid
    if max(from_evid, end) > current:
        raise BadRequest(
            f"the source's notification log ends at event {current}, before {max(from_evid, end)}; if its metastore was restored "
            f"from an older state: hive-repl recover {scope.database}"
        )
    found = source.metastore.database(scope.database)
    # Where it was dropped meanwhile, its name alone, so that the drop can be dumped.
    database = mark(source, found) if found else Database(name=scope.database, parameters={})
    _, from_hash = source.reach(from_evid)
    policy, includes, boundary = source.policy, source.includes(scope), source.boundary(scope.database, database)
    locations = PresentLocations(source.metastore, scope.database, from_evid, policy.max_message_bytes, policy.partition_filter)
    redumps, shared = TableRedumps(source, locations, dump_table), SharedDirectories(source, locations)
    whole = scope.table is None
    joined = JoinedTables(source, locations, made_with or MadeWith(), dump_table if whole else None)
    transactions = TransactionReader(source, locations, includes, boundary, is_replica(found, from_evid))
    outside = OutsideFilters(policy.filters(scope.database), scope.database, includes)
    files = EventFiles(source, locations, boundary)
    last: NotificationEvent | None = None
    start = writer.done.evid if writer.done else from_evid
    for event, decoded in _decoded(source, locations, from_evid, start):  # checkpoints do not say what these know
        transactions.note(event)
        taken = outside.count_event(decoded) or _is_taken(decoded, source, scope.database, includes)
        joined.follow(decoded, shared.beside(decoded) if taken else "")
    events = progress.count(source.metastore.events(start, end), "events read", end - start)
    for event, decoded, record in _records(source, events, locations, transactions, files):
        last = event
        of_outside = outside.count_event(decoded)
        beside = shared.beside(decoded) if of_outside or record is not None else ""
        joined.follow(decoded, beside)
        record = EventRecord(decoded.row) if of_outside and beside else record
        if record is not None:
            record = replace(record, hash=message_hash(event.message), redump=redumps.redump(decoded, beside), shared=beside)
            writer.put_event(record)
            if writer.number_of_events == batch:
                end = event.eventId
                break
        if writer.due():
            writer.keep(Checkpoint(event.eventId, message_hash(event.message)))
    to_time, to_hash = (last.eventTime, message_hash(last.message)) if last else source.reach(end)
    homes = source.with_homes(database)
    header = DumpHeader("incremental", scope, source.identity, homes, from_evid, end, to_time, to_hash, time.time())
    header = replace(header, from_hash=from_hash, metadata_only=policy.metadata_only, acid=source.acid)
    if whole:
        before, taken = made_with.scope if made_with else "", policy.scope(scope.database, acid=source.acid).text
        header = replace(header, taken=taken, before=before, joined=joined.dumped(end))
    header = replace(header, read=policy.source.paths, filters=outside.filters, skipped=outside.left_out())
    return writer.finish(header.made_for(policy))


def _decoded(
    source: Source, locations: PresentLocations, from_evid: int, to_evid: int
) -> Iterator[tuple[NotificationEvent, LogEvent]]:
    """The events that an interrupted dump has already, as far as the log still has them."""
    if to_evid <= from_evid:
        return
    try:
        for batch in _batches(source.metastore.events(from_evid, to_evid)):
            yield from zip(batch, locations.decode_batch(batch), strict=True)
    except MissingEvents as error:
        text = "the dump goes on without looking at what it has already: tables that have to come whole by it are held: %s"
        _LOG.warning(text, error, extra=about(locations.database))


def _is_taken(event: LogEvent, source: Source, database: str, includes: Callable[[str], bool]) -> bool:
    return source.policy.takes(event.row.type) and of_policy(event, database, includes)


def _records(
    source: Source,
    events: Iterable[NotificationEvent],
    locations: PresentLocations,
    transactions: TransactionReader,
    files: EventFiles,
) -> Iterator[tuple[NotificationEvent, LogEvent, EventRecord | None]]:
    """Events and what they say, with their records where they are of the dump: what the source is asked for, for many at once."""
    database, includes = transactions.database, transactions.includes
    for batch in _batches(events):
        found = locations.decode_batch(batch)
        for event in batch:
            transactions.note(event)
        ended = {one.evid: source.threads.begin(transactions.record, one) for one in found if one.row.type in ENDS}
        try:
            taken = [one for one in found if _is_taken(one, source, database, includes)]
            grouped = {one.evid: EventRecord(one.row, groups) for one, groups in zip(taken, files.groups(taken), strict=True)}
            for event, one in zip(batch, found, strict=True):
                yield event, one, ended[one.evid].result() if one.evid in ended else grouped.get(one.evid)
        finally:
            settle(ended.values())


def _batches(events: Iterable[NotificationEvent]) -> Iterator[list[NotificationEvent]]:
    """Events in batches that end at a number of them or of their messages' bytes."""
    batch, size = list[NotificationEvent](), 0
    for event in events:
        batch.append(event)
        size += unpacked_size(event.message or "")
        if len(batch) >= _BATCH or size >= _BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
