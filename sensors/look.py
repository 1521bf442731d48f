"""One look at source and target: where each database stands, and which of them the log's new events concern."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from hive_replication.connect import Connection
from hive_replication.errors import MissingEvents
from hive_replication.events.log import notifications, of_policy
from hive_replication.load.hold import UNKNOWN
from hive_replication.load.state import ReplicaState, replica_state
from hive_replication.policy import Policy
from hive_replication.recover import history_gap
from sensors.cursor import Cursor
from sensors.decision import Replica, needs_log
from sensors.runs import RunHistory


@dataclass(frozen=True, slots=True)
class Scan:
    """A part of the log that was read.

    Args:
        end: event id up to which it was read.
        first: by database, id and commit time of its first event.
    """

    end: int
    first: dict[str, tuple[int, int]]


def states(connection: Connection) -> dict[str, ReplicaState]:
    """Where the databases stand that exist at the source or have a replica; without those that were undone by request."""
    policy, source, target = connection.source.policy, connection.source.metastore, connection.target.metastore
    found: dict[str, ReplicaState] = {}
    for database, name in policy.databases.items():
        state = replica_state(target.database(name))
        if state.undone is None and (state.applied is not None or source.database(database) is not None):
            found[database] = state
    return found


def replicas(policy: Policy, found: dict[str, ReplicaState], history: RunHistory, cursor: Cursor) -> list[Replica]:
    """The databases as the decision sees them, before the log is read."""
    return [
        Replica(
            database,
            state.applied,
            held=min((state.at.get(name, state.applied or 0) for name in state.tried), default=None),
            next_attempt=min((state.holds.get(name, UNKNOWN).next_attempt for name in state.tried), default=0),
            scanned=cursor.scanned(database, state.applied or 0),
            busy=history.busy.get(database, ""),
            last=history.last.get(database),
            last_catch_up=history.last_catch_up.get(database),
            priority=policy.priority(database),
        )
        for database, state in found.items()
    ]


def with_gaps(connection: Connection, found: Sequence[Replica], states: dict[str, ReplicaState], current: int) -> list[Replica]:
    """Lets a replica move that follows another history than the source's log: its run will find the same and recover.

    Without that one would be taken for idle that has no events in the new history.
    """
    asked: dict[tuple[int | None, int, str], bool] = {}
    result: list[Replica] = []
    for replica in found:
        state = states[replica.database]
        key = state.applied, state.applied_time, state.applied_hash
        if needs_log(replica, current) and key not in asked:
            asked[key] = history_gap(connection.source, state, current) is not None
        moves = asked.get(key, False)
        result.append(replace(replica, first_event=min((state.applied or 0) + 1, current)) if moves else replica)
    return result


def read_log(connection: Connection, found: Sequence[Replica], current: int) -> tuple[list[Replica], Scan]:
    """Reads the log where a database's need to move depends on it, at most ``max_events`` in one tick.

    A log that no longer reaches back counts as an event: the run will find the same and recover.
    """
    policy = connection.source.policy
    asked = {replica.database: replica for replica in found if needs_log(replica, current)}
    if not asked:
        return list(found), Scan(current, {})
    start = min(replica.scanned for replica in asked.values())
    end = min(current, start + policy.max_events)
    first: dict[str, tuple[int, int]] = {}
    try:
        for row in notifications(connection.source.metastore, start, end):
            replica = asked.get(row.database)
            if (
                replica
                and row.evid > replica.scanned
                and row.database not in first
                and policy.takes(row.type)
                and of_policy(row, row.database, policy.includes)
            ):
                first[row.database] = (row.evid, row.time)
    except MissingEvents:
        first = {name: (replica.scanned + 1, int(time.time())) for name, replica in asked.items() if replica.scanned < end}
    return [_scanned(replica, end, first) if replica.database in asked else replica for replica in found], Scan(end, first)


def _scanned(replica: Replica, end: int, first: dict[str, tuple[int, int]]) -> Replica:
    evid = first.get(replica.database, (None, 0))[0]
    return replace(replica, first_event=evid, scanned=max(end, replica.scanned))


def idle(found: Sequence[Replica]) -> Iterator[tuple[str, tuple[int, int]]]:
    """What the next tick need not read again."""
    for replica in found:
        if replica.applied is not None and replica.first_event is None and replica.scanned > replica.applied:
            yield replica.database, (replica.applied, replica.scanned)
