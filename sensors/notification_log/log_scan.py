"""Scans source and target: the applied id of each database, and which databases the log's new events belong to."""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hive_replication.connect import Connection
from hive_replication.errors import MissingEvents, Refused
from hive_replication.events.events_of_policy import LogEvent, notifications, of_policy
from hive_replication.events.renames_between_databases import rows_of
from hive_replication.load.replica.held_retries import NO_HISTORY
from hive_replication.load.replica.policy_scope import changed
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.logs import about
from hive_replication.policy import Policy
from hive_replication.recover import history_gap
from sensors.notification_log.cursor import Cursor
from sensors.notification_log.decision import Replica, needs_log
from sensors.notification_log.run_history import RunHistory

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class LogScan:
    """The part of the log that was read.

    Args:
        end: event id up to which it was read.
        first: by database, id and commit time of its first event.
    """

    end: int
    first: dict[str, tuple[int, int]]


def states(connection: Connection) -> dict[str, ReplicaState]:
    """States of the databases that exist at the source or have a replica."""
    policy, source, target = connection.source.policy, connection.source.metastore, connection.target.metastore
    found: dict[str, ReplicaState] = {}
    for database, name in policy.databases.items():
        try:
            state = replica_state(target.database(name))
        except Refused as error:  # of this database only
            _LOG.warning("no run starts for the database: %s", error, extra=about(database))
            continue
        if state.applied is not None or source.database(database) is not None:
            found[database] = state
    return found


def replicas(policy: Policy, found: dict[str, ReplicaState], history: RunHistory, cursor: Cursor) -> list[Replica]:
    """The databases as input of the decision, before the log is read."""
    return [
        Replica(
            database,
            state.applied,
            held=min((state.at.get(name, state.applied or 0) for name in state.tried), default=None),
            next_attempt=min((state.quarantines.get(name, NO_HISTORY).next_attempt for name in state.tried), default=0),
            scanned=cursor.scanned(database, state.applied or 0),
            busy=history.busy.get(database, ""),
            last=history.last.get(database),
            last_catch_up=history.last_catch_up.get(database),
            priority=policy.priority(database),
            released=bool(state.released_names()),
            changed=changed(state, policy, database),
        )
        for database, state in found.items()
    ]


def with_gaps(connection: Connection, found: Sequence[Replica], states: dict[str, ReplicaState], current: int) -> list[Replica]:
    """Gives work to replicas that follow another history than the source's log: the run finds the gap and recovers from it.

    Otherwise a replica without events in the new history would count as idle; so would one whose policy takes other tables now.
    """
    gaps: dict[tuple[int | None, int, str], bool] = {}
    result: list[Replica] = []
    for replica in found:
        state = states[replica.database]
        key = state.applied, state.applied_time, state.applied_hash
        if needs_log(replica, current) and key not in gaps:
            gaps[key] = history_gap(connection.source, state, current) is not None
        has_gap = gaps.get(key, False) or (replica.changed and not replica.lost(current))
        result.append(replace(replica, first_event=min((state.applied or 0) + 1, current)) if has_gap else replica)
    return result


def read_log(connection: Connection, found: Sequence[Replica], current: int) -> tuple[list[Replica], LogScan]:
    """Reads the log as far as the decision depends on it, at most ``max_events`` events in one tick.

    A log that no longer reaches back counts as an event: the run finds the gap and recovers from it.
    """
    policy = connection.source.policy
    unread = {replica.database: replica for replica in found if needs_log(replica, current)}
    if not unread:
        return list(found), LogScan(current, {})
    start = min(replica.scanned for replica in unread.values())
    end = min(current, start + policy.max_events)
    first: dict[str, tuple[int, int]] = {}
    try:
        rows = notifications(connection.source.metastore, start, end, policy.max_message_bytes)
        for row in (seen for one in rows for seen in rows_of(one, unread)):
            if (
                row.evid > unread[row.database].scanned
                and row.database not in first
                and policy.takes(row.type)
                and of_policy(LogEvent(row, policy.partition_filter), row.database, policy.includes)
            ):
                first[row.database] = (row.evid, row.time)
    except MissingEvents:
        first = {name: (replica.scanned + 1, int(time.time())) for name, replica in unread.items() if replica.scanned < end}
    return [_scanned(replica, end, first) if replica.database in unread else replica for replica in found], LogScan(end, first)


def _scanned(replica: Replica, end: int, first: dict[str, tuple[int, int]]) -> Replica:
    evid = first.get(replica.database, (None, 0))[0]
    return replace(replica, first_event=evid, scanned=max(end, replica.scanned))


def idle(found: Sequence[Replica]) -> Iterator[tuple[str, tuple[int, int]]]:
    """By database, the part of the log that the next tick need not read again."""
    for replica in found:
        if replica.applied is not None and replica.first_event is None and replica.scanned > replica.applied:
            yield replica.database, (replica.applied, replica.scanned)


def with_since(found: Sequence[Replica], scan: LogScan, cursor: Cursor, now: float) -> list[Replica]:
    """Adds since when replicas have had work: the commit time of the first event, else when a tick first saw the work.

    Work that came while the sensor rested came before the end of that rest.
    """
    noticed = min(now, (cursor.rests_until or math.inf) - 1)
    return [
        replace(one, since=min(scan.first.get(one.database, (0, noticed))[1], cursor.scheduled.get(one.database, noticed)))
        for one in found
    ]
