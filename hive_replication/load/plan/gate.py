"""The gate: whether an event applies to a replica (pure). The only place of a plan that compares an event id with a state id.

The rule:

- An event applies iff its id is greater than the highest of three: the state id of the object itself, the state id of its table,
  and the position of the table's name, which is the database's entry ``at.<name>`` if there is one, else its applied id.
- A table's state id is a watermark: it rises only after the last operation of the window on that table. Until then a partition or
  the name may stand ahead of it, never behind what is done.
- Where the target lacks an object whose incarnation (up to its drop, or its rename away) ends inside the window, the whole
  incarnation is skipped, so that a repeat does not bring it back. Which incarnation the target's object is, its state id tells.
- The window of a retry is never shorter than the one it retries. A window applies only where the event before its first one
  applies no more; otherwise events between would be missing.

So repeats, crashes and restarts change nothing twice.
"""

from __future__ import annotations

from collections.abc import Mapping

from hive_replication.load.replica.covers import covers


def applied(evid: int, *, object_id: int = 0, table_id: int = 0, position: int = 0) -> str:
    """Why an event does not apply, "" where it does.

    Args:
        evid: event id.
        object_id: state id of the object that the event changes; 0 where it has none or is the table itself.
        table_id: state id of its table; 0 where the target does not have the table, or the event is of none.
        position: where the name stands (:meth:`hive_replication.load.replica.state.ReplicaState.position`).
    """
    stands = max(object_id, table_id, position)
    return f"applied already (state id {stands})" if covers(stands, evid) else ""


def due(evid: int, state_id: int, *, again: bool = False, other_history: bool = False) -> bool:
    """Whether an object of the target takes what a dump of objects has of it.

    Args:
        evid: event id that the dump's objects stand at.
        state_id: of the target's object.
        again: whether one that stands at that very event takes it, too.
        other_history: whether the target's state ids are of another history of the source, and say nothing.
    """
    return other_history or not covers(state_id, evid) or (again and state_id == evid)


def bootstrapped(applied: int | None, evid: int, *, failed: bool) -> bool:
    """Whether a database needs nothing more of a bootstrap: it has it, or is beyond it.

    Args:
        applied: event id that the database stands at, None where no bootstrap is finished.
        evid: event id that the dump's objects stand at.
        failed: whether the bootstrap failed for some tables; then loading it again does what is missing.
    """
    return covers(applied, evid) and not (applied == evid and failed)


def ahead(positions: Mapping[str, int], evid: int) -> dict[str, int]:
    """Names that stand beyond an event, with their positions."""
    return {name: position for name, position in positions.items() if not covers(evid, position)}


def reached(positions: Mapping[str, int], from_evid: int, to_evid: int) -> set[str]:
    """Names that a window from ``from_evid`` to ``to_evid`` brings up to its end: no event between is missing."""
    return {name for name, position in positions.items() if covers(position, from_evid) and not covers(position, to_evid)}


def of_incarnation(state_id: int, entered: int, left: int | None) -> bool:
    """Whether an object of the target belongs to the incarnation that had its name for a while.

    Args:
        state_id: of the target's object.
        entered: event id with which the incarnation took the name.
        left: event id with which it left the name, None where it has it to the window's end.
    """
    return entered <= state_id and (left is None or state_id < left)
