"""What a database's log has that the other side does not: events after those that a replica has applied."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hive_replication.dump.beginnings import Beginnings
from hive_replication.dump.source import Source, is_replica
from hive_replication.errors import MissingEvents
from hive_replication.events import event_records as r
from hive_replication.events.events_of_policy import LogEvent, ends_transaction, notifications, of_policy
from hive_replication.events.renames_between_databases import rows_of
from hive_replication.events.transactions import AllocateWriteIds, CommitTransaction, Compaction
from hive_replication.load.replica.covers import covers
from hive_replication.load.window import visible


@dataclass(frozen=True, slots=True)
class Change:
    """An event that changed a database, by its log.

    Args:
        evid: event id.
        time: commit time, seconds since the epoch.
        type: Hive's event type.
        tables: tables that it changed, functions as ``f()``; none of an event of the database itself.
    """

    evid: int
    time: int
    type: str
    tables: tuple[str, ...]


def changes(
    source: Source, database: str, after: int, behind: Mapping[str, int] | None = None, message_hash: str = ""
) -> Iterator[Change]:
    """The events of the policy that a replica does not have; those that only replication itself made are none.

    Args:
        source: the side whose log is read.
        database: on that side.
        after: event id that the replica stands at.
        behind: tables that stand at an earlier one; of those that are :func:`untold` only what the log still has.
        message_hash: of the event ``after``, "" where it is not known.

    Raises:
        MissingEvents: the log no longer reaches back to it or to the beginning of a transaction, ends before it, or has another
            event of that id.
        Unreachable: the metastore does not answer.
    """
    _require_same(source, after, message_hash)
    positions = dict(behind or {})
    gone = untold(source, after, positions)
    start = min([after, *(at for name, at in positions.items() if at and name not in gone)])
    metastore, most = source.metastore, source.policy.max_message_bytes
    replica = is_replica(metastore.database(database), start)
    for row in notifications(metastore, start, metastore.current_event_id(), most, database):
        for one in rows_of(row, (database,)) if row.database else (row,):
            change = _change(source, database, LogEvent(one, source.policy.partition_filter), replica=replica)
            if change is not None and _is_new(change, after, positions):
                yield change


def untold(source: Source, after: int, behind: Mapping[str, int]) -> tuple[str, ...]:
    """Tables of which the log no longer has all events: undone by request, or held, for longer than it lasts.

    Args:
        source: the side whose log is read.
        after: event id that the replica stands at.
        behind: tables that stand at an earlier one.
    """
    log = source.metastore
    return tuple(sorted(one for one, at in behind.items() if at and not covers(at, after) and log.event(at + 1) is None))


def _require_same(source: Source, evid: int, message_hash: str) -> None:
    restored = "its metastore was restored from an older state"
    if (end := source.metastore.current_event_id()) < evid:
        raise MissingEvents(f"the log of {source.metastore.uri} ends at event {end}, the replica has event {evid}: {restored}")
    found = source.reach(evid)[1] if message_hash else ""
    if found and found != message_hash:
        raise MissingEvents(f"event {evid} of {source.metastore.uri} is another one than the replica has: {restored}")


def _is_new(change: Change, after: int, positions: Mapping[str, int]) -> bool:
    stands = [positions.get(name, after) for name in change.tables] or [after]
    return any(not covers(position, change.evid) for position in stands)


def _change(source: Source, database: str, event: LogEvent, *, replica: bool) -> Change | None:
    row, policy = event.row, source.policy
    if ends_transaction(event, database, replica=replica):
        return _commit(source, event, Beginnings(source.opened_in_log, database, replica))
    if not policy.takes(row.type) or not of_policy(event, database, policy.includes):
        return None
    said = event.event
    if isinstance(said, r.AlterDatabase) and visible(said.before) == visible(said.after):
        return None
    if isinstance(said, AllocateWriteIds):  # nothing is written before the commit
        return None
    if isinstance(said, Compaction) and not said.rebalances:  # which changes no row
        return None
    names = said.names if said is not None else tuple(filter(None, (row.table,)))
    return Change(row.evid, row.time, row.type, tuple(filter(policy.includes, names)) if row.table else names)


def _commit(source: Source, event: LogEvent, beginnings: Beginnings) -> Change | None:
    """A commit that wrote to tables of the database; the log itself does not say to which."""
    said = event.event
    if not isinstance(said, CommitTransaction) or not source.acid:
        return None
    written = {one.table for one in source.metastore.write_events(said.transaction, beginnings.database)}
    beginnings.require(said, some=bool(written))
    tables = tuple(sorted(filter(source.policy.includes, written)))
    return Change(event.evid, event.row.time, event.row.type, tables) if tables else None
