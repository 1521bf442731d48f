"""REPL STATUS: the last event id applied to a target database or table, and which tables are held."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from hive_replication.load.replica.held_retries import NO_HISTORY, Quarantine
from hive_replication.load.replica.state import SOURCE, ReplicaState, object_id, replica_state
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Table


@dataclass(frozen=True, slots=True)
class HeldTable:
    """A table that is held.

    Args:
        table: its name on the target.
        after: last event id applied to it; 0 if its bootstrap or recovery failed, or passed over what was undone, so that no
            event can be applied.
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


@dataclass(frozen=True, slots=True)
class Status:
    """What REPL STATUS answers; a further column begins here, and is shown by ``cli/commands/repl.py``.

    Args:
        last_evid: last event id applied to the database or table; None where no replication of it is known.
        held: tables of it that failed and are held, each with the reason.
        exists: whether the target has such a database or table.
        left: replicas in it that the policy no longer includes, with the event id at which they were left.
    """

    last_evid: int | None
    held: tuple[HeldTable, ...] = ()
    exists: bool = True
    left: Mapping[str, int] = field(default_factory=dict[str, int])


def repl_status(metastore: Metastore, database: str, table: str | None = None) -> Status:
    """The status of a target database, or of one of its tables.

    Args:
        metastore: the target's.
        database: target database.
        table: of it; the whole database where None.
    """
    found = metastore.database(database)
    state = replica_state(found)
    replica = metastore.table(database, table) if found is not None and table is not None else None
    last = state.last_id if table is None else _last_of_table(state, table, replica)
    held = tuple(held_tables(state, table))
    if last is None and not held:
        return Status(None, exists=found is not None and (table is None or replica is not None))
    return Status(last, held, left={name: evid for name, evid in state.left.items() if table in (None, name)})


def _last_of_table(state: ReplicaState, name: str, replica: Table | None) -> int | None:
    """The position that the gate of REPL LOAD uses: the higher of the table's own id and the database's entry for its name."""
    if replica is None or SOURCE not in (replica.parameters or {}):
        return None
    return max(object_id(replica), state.position(name)) or None


def held_tables(state: ReplicaState, table: str | None = None) -> Iterator[HeldTable]:
    """Held tables by the state of a target database; only this one, if a table is named."""
    for name, reason in sorted(state.held.items()):
        if table in (None, name):
            history = state.quarantines.get(name, NO_HISTORY)
            next_attempt = 0 if state.stands_with_undo(name) else history.next_attempt
            yield HeldTable(name, state.position(name), reason, history, next_attempt)
