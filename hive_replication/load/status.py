"""REPL STATUS: where a target database or table stands."""

from __future__ import annotations

from dataclasses import dataclass

from hive_replication.load.hold import UNKNOWN, Hold
from hive_replication.load.state import SOURCE, object_id, replica_state
from hive_replication.metastore.client import Metastore


@dataclass(frozen=True, slots=True)
class HeldTable:
    """A table that failed.

    Args:
        table: its name on the target.
        after: event id that it stands at; 0 where a bootstrap or recovery failed for it, so that no event brings it up.
        reason: why, one sentence.
        history: the event that failed, since when, and how often it was tried.
        next_attempt: when the sensor tries again at the earliest, seconds since the epoch; 0 where that is not known, or where
            the table waits since somebody took it back.
    """

    table: str
    after: int
    reason: str
    history: Hold = UNKNOWN
    next_attempt: int = 0


def held_tables(metastore: Metastore, database: str, table: str | None = None) -> list[HeldTable]:
    """Tables of a target database that are held, or the one named if it is."""
    state = replica_state(metastore.database(database))
    found: list[HeldTable] = []
    for name, reason in sorted(state.held.items()):
        if table in (None, name):
            hold = state.holds.get(name, UNKNOWN)
            found.append(HeldTable(name, state.position(name), reason, hold, 0 if state.waits(name) else hold.next_attempt))
    return found


def repl_status(metastore: Metastore, database: str, table: str | None = None) -> int | None:
    """Last event id applied to a target database, or to one of its tables; None where no replication of it is known.

    For a table it is the position that the gate of REPL LOAD uses: the highest of the table's own id and what its database
    says of its name.
    """
    found = metastore.database(database)
    state = replica_state(found)
    if found is None or table is None:
        return state.last_id
    replica = metastore.table(database, table)
    if replica is None or SOURCE not in (replica.parameters or {}):
        return None
    return max(object_id(replica), state.position(table)) or None
