"""REPL STATUS: the last event id applied to a target database or table, and which tables are held."""

from __future__ import annotations

from dataclasses import dataclass

from hive_replication.load.replica.quarantine import NO_HISTORY, Quarantine
from hive_replication.load.replica.state import SOURCE, ReplicaState, object_id, replica_state
from hive_replication.metastore.client import Metastore


@dataclass(frozen=True, slots=True)
class HeldTable:
    """A table that is held.

    Args:
        table: its name on the target.
        after: last event id applied to it; 0 if its bootstrap or recovery failed, so that no event can be applied.
        reason: why it is held, one sentence.
        history: the event that failed, since when, and how often it was tried.
        next_attempt: earliest time at which the sensor retries it, seconds since the epoch; 0 if unknown, or if the table was
            undone by request.
    """

    table: str
    after: int
    reason: str
    history: Quarantine = NO_HISTORY
    next_attempt: int = 0


def held_tables(state: ReplicaState, table: str | None = None) -> list[HeldTable]:
    """Held tables by the state of a target database; only this one, if a table is named."""
    found: list[HeldTable] = []
    for name, reason in sorted(state.held.items()):
        if table in (None, name):
            history = state.quarantines.get(name, NO_HISTORY)
            next_attempt = 0 if state.waits(name) else history.next_attempt
            found.append(HeldTable(name, state.position(name), reason, history, next_attempt))
    return found


def repl_status(metastore: Metastore, database: str, table: str | None = None) -> int | None:
    """Last event id applied to a target database, or to one of its tables; None if it is no replica.

    For a table it is the position that the gate of REPL LOAD uses: the higher of the table's own id and the database's entry
    for its name.
    """
    found = metastore.database(database)
    state = replica_state(found)
    if found is None or table is None:
        return state.last_id
    replica = metastore.table(database, table)
    if replica is None or SOURCE not in (replica.parameters or {}):
        return None
    return max(object_id(replica), state.position(table)) or None
