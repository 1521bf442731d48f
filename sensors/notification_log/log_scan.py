"""Scans source and target: the applied id of each database, and which databases the log's new events belong to."""

from __future__ import annotations

import logging
import math
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import replace
from functools import partial

from hive_replication.connect import Connection
from hive_replication.dump.ended_transactions import ended_in
from hive_replication.dump.source import Source, local_database
from hive_replication.errors import OF_ONE_DATABASE, BadRequest, MetastoreError, MissingEvents, ReplicationError, Unreachable
from hive_replication.events.event_records import Notification
from hive_replication.events.events_of_policy import LogEvent, notifications, of_policy
from hive_replication.events.renames_between_databases import rows_of
from hive_replication.events.transactions import ENDS
from hive_replication.load.replica.held_retries import CATCH_UP_DELAY, NO_HISTORY, wait_left
from hive_replication.load.replica.interrupted import is_interrupted
from hive_replication.load.replica.policy_scope import changed
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.load.source_history import is_purged
from hive_replication.logs import about
from hive_replication.recover import find_gap, history_gap
from sensors.notification_log.cursor import Cursor, Reading
from sensors.notification_log.decision import MANY_EVENTS, Replica, is_counted, needs_log
from sensors.notification_log.run_history import RunHistory
from sensors.notification_log.runs import PastRun

_LOG = logging.getLogger(__name__)
_READING = 5.0  # seconds of a tick, which Dagster ends after 60 s
_LONGEST = 30.0  # seconds after which a part is left unfinished: Hive 4.0 may be asked for each of its commits


def states(connection: Connection) -> dict[str, ReplicaState]:
    """States of the databases that exist at the source or have a replica; read in threads, since there may be hundreds.

    Raises:
        MetastoreError: a metastore shows none of them.
    """
    databases = connection.source.policy.databases
    found: dict[str, ReplicaState] = {}
    refused: MetastoreError | None = None
    for database, state in zip(databases, connection.source.threads.map(partial(_state, connection), databases), strict=True):
        if isinstance(state, ReplicationError):  # of this database only
            refused = state if isinstance(state, MetastoreError) else refused
            _LOG.warning("no run starts for the database: %s", state, extra=about(database))
        elif state is not None:
            found[database] = state
    if refused is not None and not found:
        raise refused
    return found


def _state(connection: Connection, database: str) -> ReplicaState | ReplicationError | None:
    try:
        state = replica_state(connection.target.metastore.database(connection.source.policy.databases[database]))
        # A replica goes on where the source's is a remote one by now: the drop of that before is to be loaded.
        there = state.applied is not None or local_database(connection.source.metastore, database) is not None
        return state if there else None
    except (*OF_ONE_DATABASE, BadRequest) as error:
        return error


def killed_loads(connection: Connection, found: Mapping[str, ReplicaState], busy: Collection[str]) -> frozenset[str]:
    """Databases of which a load of objects was killed, also one that was started by hand; not those of runs (``busy``)."""
    marked = [name for name, state in found.items() if state.checkpoint and state.applied is not None and name not in busy]
    return frozenset(name for name in marked if _is_killed(connection, name))


def _is_killed(connection: Connection, name: str) -> bool:
    try:
        return is_interrupted(connection.target.metastore, connection.source.policy.target_of(name))
    except OF_ONE_DATABASE:  # its next load says why
        return False


def replicas(
    source: Source, found: Mapping[str, ReplicaState], history: RunHistory, cursor: Cursor, killed: Collection[str] = ()
) -> list[Replica]:
    """The databases as input of the decision, with what earlier ticks have read in the log, and whose loads were killed."""
    found_now = (
        Replica(
            database,
            state.applied,
            held=_held(state),
            next_attempt=min((state.quarantines.get(name, NO_HISTORY).next_attempt for name in state.tried), default=0),
            busy=history.busy.get(database) or history.repaired.get(database, ""),
            last=history.last.get(database),
            last_catch_up=history.last_catch_up.get(database),
            priority=source.policy.priority(database),
            at_once=bool(state.due_names()),
            changed=changed(state, source, database) or database in killed,
            loading=history.loading.get(database),
            alone=database in history.to_be_repaired,
        )
        for database, state in found.items()
    )
    return [with_reading(one, cursor.reading(one.database, one.stands) or Reading(one.stands, one.stands)) for one in found_now]


def _held(state: ReplicaState) -> int | None:
    """Where catch-ups begin: a lost name, which stands nowhere, comes with those of others, which have attempts of their own."""
    found = {state.position(name) for name in state.tried}
    return min(found - {0} or found, default=None)


def with_reading(replica: Replica, reading: Reading) -> Replica:
    """A replica with what was read of it."""
    first = reading.first[0] if reading.first else None
    return replace(replica, scanned=reading.scanned, first_event=first, events=reading.events)


def with_gaps(
    connection: Connection, found: Sequence[Replica], states: Mapping[str, ReplicaState], cursor: Cursor, current: int
) -> list[Replica]:
    """Gives work to replicas that follow another history than the source's log: the run finds the gap and recovers from it.

    Otherwise a replica without events in the new history would count as idle; so would one that changes without events.
    One of which the cursor has a reading of this log was looked at before that.
    """
    asked: dict[tuple[int | None, int, str], ReplicaState] = {}
    for replica in found:
        if not (replica.busy or cursor.reading(replica.database, replica.stands)) and needs_log(replica, current):
            asked[_event_of(states[replica.database])] = states[replica.database]
    # Replicas of hundreds of databases may stand at events of their own: one call after another would take the whole tick.
    gaps = connection.source.threads.map(lambda state: history_gap(connection.source, state, current), [*asked.values()])
    other = {event for event, gap in zip(asked, gaps, strict=True) if gap is not None}
    result: list[Replica] = []
    for replica in found:
        state = states[replica.database]
        has_gap = _event_of(state) in other or (replica.changed and not replica.busy and not replica.lost(current))
        result.append(replace(replica, first_event=min((state.applied or 0) + 1, current)) if has_gap else replica)
    return result


def to_be_approved(
    connection: Connection,
    found: Sequence[Replica],
    states: Mapping[str, ReplicaState],
    plans: Mapping[str, PastRun],
    current: int,
    now: float,
) -> list[Replica]:
    """Marks replicas whose catch-up is due and may bring what nobody has approved.

    So do recoveries, whose dumps are of now, and the drop of replicas that were to be kept when they left the policy. Whether
    there is something to recover from is asked as the run asks.

    Args:
        connection: both sides.
        found: the replicas.
        states: of their databases.
        plans: the last run that planned a window, by database.
        current: the source's newest event id.
        now: seconds since the epoch.
    """
    waiting = (one for one in found if one.held is not None and not (one.busy or one.changed or one.lost(current)))
    due = [one for one in waiting if one.at_once or not wait_left(one.next_attempt, CATCH_UP_DELAY, now)]
    answers = connection.source.threads.map(lambda one: _brings_more(connection, one, states[one.database]), due)
    marked = {one.database for one, more in zip(due, answers, strict=True) if more}
    return [
        replace(one, to_approve=True, last_catch_up=plans.get(one.database)) if one.database in marked else one for one in found
    ]


def _brings_more(connection: Connection, replica: Replica, state: ReplicaState) -> bool:
    source, target = connection.source, connection.target
    if state.left and target.policy.excluded == "drop":
        return True
    try:
        purged = bool(replica.held) and is_purged(source.metastore, state, replica.held or 0)
        return purged or find_gap(source, target, replica.database, read_log=False) is not None
    except Unreachable:
        raise
    except ReplicationError:
        return True  # the run that plans it says why


def _event_of(state: ReplicaState) -> tuple[int | None, int, str]:
    return state.applied, state.applied_time, state.applied_hash


def with_log(
    connection: Connection, found: Sequence[Replica], cursor: Cursor, current: int, now: float, *, seconds: float = _READING
) -> tuple[list[Replica], dict[str, Reading]]:
    """Adds what the log has of the databases; reads it as far as the decision depends on it and no tick has read it.

    Args:
        connection: both sides.
        found: the policy's databases.
        cursor: what earlier ticks have read.
        current: the source's newest event id.
        now: seconds since the epoch.
        seconds: after which no further part is read; the next tick continues.

    Returns:
        The databases, and all that is known of the log.
    """
    source, policy = connection.source, connection.source.policy
    until, longest = (time.monotonic() + some for some in (seconds, _LONGEST))
    seen = {one.database: one for one in found}
    readings = {one.database: known for one in found if (known := cursor.reading(one.database, one.stands))}
    while unread := {
        name: readings.get(name) or Reading(one.stands, one.stands)
        for name, one in seen.items()
        if needs_log(one, current) or is_counted(one, current, policy.max_events)
    }:
        for after, end, names in parts({name: one.scanned for name, one in unread.items()}, current, policy.max_events):
            rows = partial(notifications, source.metastore, after, end, policy.max_message_bytes)
            read = read_part(rows, source, {name: unread[name] for name in names}, end, longest)
            readings |= read
            seen |= {name: with_reading(seen[name], one) for name, one in read.items()}
        if time.monotonic() >= until:
            break
    return with_since([*seen.values()], cursor, readings, now), readings


def parts(positions: Mapping[str, int], current: int, most: int) -> Iterator[tuple[int, int, list[str]]]:
    """The parts of the log to read in one tick, as ``(after, until, databases)`` (pure).

    One for the databases near its end, so that these wait for no others, and one for those that are furthest behind.

    Args:
        positions: by database, the event id up to which the log was read.
        current: the source's newest event id.
        most: events of a part.
    """
    near = [name for name, position in positions.items() if position >= current - most]
    if near:
        yield min(positions[name] for name in near), current, near
    behind = [name for name in positions if name not in near]
    if behind:
        after = min(positions[name] for name in behind)
        yield after, after + most, [name for name in behind if positions[name] < after + most]


def read_part(
    rows: Callable[[], Iterable[Notification]],
    source: Source,
    unread: Mapping[str, Reading],
    until: int,
    longest: float = math.inf,
) -> dict[str, Reading]:
    """Reads a part of the log for some databases, on from what was read of them, as long as it may still tell something.

    A log that no longer reaches back counts as an event: the run finds the gap and recovers from it.

    Args:
        rows: the log after the lowest event id up to which it was read.
        source: the source side.
        unread: what was read of the databases.
        until: last event id of the part.
        longest: when it is left unfinished, by the monotonic clock.
    """
    policy = source.policy
    first = {name: one.first for name, one in unread.items() if one.first}
    events = Counter({name: one.events for name, one in unread.items()})
    asked = set(unread)
    try:
        for one in rows():
            if ended := _ended_in(source, one, unread, first):
                first |= dict.fromkeys(ended, (one.evid, one.time))
                events.update(ended)
            for row in rows_of(one, unread):
                name = row.database
                if row.evid <= unread[name].scanned or not policy.takes(row.type):
                    continue
                event = LogEvent(row, policy.partition_filter)
                if name not in first and of_policy(event, name, policy.includes, shared=not policy.metadata_only):
                    first[name] = (row.evid, row.time)
                events[name] += name in first
                if events[name] > MANY_EVENTS:
                    asked.discard(name)
            if not asked or time.monotonic() >= longest:  # the log may go on for long
                until = one.evid
                break
    except MissingEvents:
        first = {name: (one.scanned + 1, int(time.time())) for name, one in unread.items()} | first
    return {name: Reading(one.after, max(until, one.scanned), first.get(name), events[name]) for name, one in unread.items()}


def _ended_in(source: Source, row: Notification, unread: Mapping[str, Reading], first: Mapping[str, tuple[int, int]]) -> Set[str]:
    """The databases of which an event is the first one, since it ends a transaction that wrote to them."""
    if row.type not in ENDS:
        return frozenset()
    return ended_in(source, row, {name for name, one in unread.items() if name not in first and one.scanned < row.evid})


def with_since(found: Sequence[Replica], cursor: Cursor, readings: Mapping[str, Reading], now: float) -> list[Replica]:
    """Adds since when replicas have had work: the commit time of the first event, else when a tick first saw the work.

    Work that came while the sensor rested came before the end of that rest.
    """
    noticed = min(now, (cursor.rests_until or math.inf) - 1)
    times = {database: one.first[1] for database, one in readings.items() if one.first}
    return [replace(one, since=min(times.get(one.database, noticed), cursor.waits_since(one.database, noticed))) for one in found]
