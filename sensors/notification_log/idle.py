"""Databases without events for long: their applied ids are raised without a run, before the source purges what these name."""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from hive_replication.connect import Connection
from hive_replication.errors import MetastoreError, Refused
from hive_replication.load.replica.advance_idle import advance, open_replayed, writes_to
from hive_replication.load.replica.state import ReplicaState
from hive_replication.logs import about
from sensors.notification_log.decision import Replica

_LOG = logging.getLogger(__name__)
_ADVANCED_A_TICK = 10
_LOOKING = 5.0  # seconds of a tick, which Dagster ends after 60 s
_NOT_RAISED = "it has no events, and where its replica stands cannot be raised: %s"


def long_idle(
    connection: Connection, seen: Sequence[Replica], found: Mapping[str, ReplicaState], now: float, event_ttl: float
) -> list[Replica]:
    """Those whose applied event is far back in the log or in time, as many as one tick settles.

    Args:
        connection: both sides.
        seen: all databases, with what the log has of them.
        found: their states.
        now: seconds since the epoch.
        event_ttl: seconds that the source keeps events.
    """
    old: list[tuple[int, str, Replica]] = []
    for one in seen:
        if one.applied is None or one.first_event is not None or one.busy or one.unfinished(one.scanned) or one.to_approve:
            continue  # what is planned or approved is of where it stands
        age, behind = now - found[one.database].applied_time, one.scanned - one.applied
        if behind > 0 and (age > event_ttl / 4 or behind >= connection.source.policy.max_events):
            old.append((one.applied, one.database, one))
    return [one for _, _, one in sorted(old, key=lambda each: each[:2])[:_ADVANCED_A_TICK]]


def to_be_read(connection: Connection, idle: Sequence[Replica]) -> tuple[list[Replica], Set[str]]:
    """Those of them that this tick settles, and the names of those that need a run.

    On the replicas of some, transactions are open: a run reads the log for their ends, which may name no database. One of which
    the target does not tell that is none of them.
    """
    source, target = connection.source, connection.target
    opened = open_replayed(target) if idle and source.acid else frozenset[int]()
    if not opened:
        return list(idle), frozenset()
    ends = time.monotonic() + _LOOKING
    looked: list[Replica] = []
    found = set[str]()
    for one in idle:
        if time.monotonic() >= ends:
            break
        try:
            writes = writes_to(target, source.policy.target_of(one.database), opened)
        except MetastoreError as error:  # of this database only: it stays where it is
            _LOG.warning(_NOT_RAISED, error, extra=about(one.database))
            continue
        looked.append(one)
        found |= {one.database} if writes else set()
    return looked, found


def with_work(seen: Sequence[Replica], databases: Set[str]) -> list[Replica]:
    """Lets runs start for some idle databases."""
    return [replace(one, first_event=(one.applied or 0) + 1) if one.database in databases else one for one in seen]


def advance_idle(connection: Connection, idle: Sequence[Replica], but: Set[str]) -> None:
    """Raises the applied ids of idle databases, but of some."""
    source, target = connection.source, connection.target
    for one in idle:
        if one.database not in but:
            name = source.policy.target_of(one.database)
            reached = source.reach(one.scanned)
            try:
                advance(target, name, one.applied or 0, one.scanned, *reached)
            except Refused:  # a load is running: the database is not idle; or another policy writes it
                continue
            except MetastoreError as error:  # of this database only: runs of others start
                _LOG.warning(_NOT_RAISED, error, extra=about(one.database))
