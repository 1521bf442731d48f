"""How far a target is behind its source (design: Dagster, "seconds behind")."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hive_replication.dump.source import Source
from hive_replication.events.log import notifications, of_policy
from hive_replication.events.records import Notification
from hive_replication.load.state import ReplicaState, replica_state
from hive_replication.load.target import Target


@dataclass(frozen=True, slots=True)
class Lag:
    """How far one database is behind.

    Args:
        database: source name.
        target_database: its name on the target.
        applied: event id that the target stands at (REPL STATUS), None before its bootstrap is done.
        current: newest event id of the source.
        waiting: events of the policy that are not applied, None before the bootstrap is done.
        seconds_behind: 0 if nothing waits, else seconds since the commit of the oldest event not applied; None before the
            bootstrap is done.
        held: tables that are held, with the reason.
    """

    database: str
    target_database: str
    applied: int | None
    current: int
    waiting: int | None
    seconds_behind: float | None
    held: tuple[tuple[str, str], ...] = ()


def lag(source: Source, target: Target, database: str) -> Lag:
    """Asks both metastores where they are.

    Args:
        source: the source side.
        target: the target side.
        database: source name.

    Raises:
        MissingEvents: the source's log no longer reaches back to where the target stands.
    """
    name = source.policy.target_of(database)
    state = replica_state(target.metastore.database(name))
    current = source.metastore.current_event_id()
    held = tuple(sorted(state.held.items()))
    if state.last_id is None:
        return Lag(database, name, None, current, None, None, held)
    start = min(there for there in (state.applied or 0, *state.at.values()) if there or not state.lost)
    rows = notifications(source.metastore, start, current)
    policy = source.policy
    waiting, oldest = _waiting(rows, state, lambda row: policy.takes(row.type) and of_policy(row, database, policy.includes))
    behind = max(0.0, time.time() - oldest) if oldest is not None else 0.0
    return Lag(database, name, state.last_id, current, waiting, behind, held)


def _waiting(
    rows: Iterable[Notification], state: ReplicaState, belongs: Callable[[Notification], bool]
) -> tuple[int, int | None]:
    """Number of events not applied, and the commit time of the oldest; a name's own position counts, if it has one."""
    times = [row.time for row in rows if row.evid > state.position(row.table) and belongs(row)]
    return len(times), min(times, default=None)
