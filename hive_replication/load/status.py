"""REPL STATUS: where a target database or table stands."""

from __future__ import annotations

from dataclasses import dataclass

from hive_replication.load.state import SOURCE, object_id, replica_state
from hive_replication.metastore.client import Metastore


@dataclass(frozen=True, slots=True)
class HeldTable:
    """A table that failed: its name, the event id that it stands at, and why."""

    table: str
    after: int
    reason: str


def held_tables(metastore: Metastore, database: str, table: str | None = None) -> list[HeldTable]:
    """Tables of a target database that are held, or the one named if it is."""
    state = replica_state(metastore.database(database))
    held = sorted(state.held.items())
    return [HeldTable(name, state.position(name), reason) for name, reason in held if table in (None, name)]


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
