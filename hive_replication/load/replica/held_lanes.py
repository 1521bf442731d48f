"""What a load writes down of the lanes that it holds."""

from __future__ import annotations

import time
from collections.abc import Iterable

from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.held_reasons import (
    JOINED_REASON,
    LEFT_OUT_REASON,
    RELEASED_REASON,
    UNDONE_REASON,
    is_hidden,
)
from hive_replication.load.replica.held_retries import NO_HISTORY
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.report import Held
from hive_replication.logs import printable

_OWN = (UNDONE_REASON, RELEASED_REASON, LEFT_OUT_REASON)  # such a reason steers what loads do with the name that has it


def with_held(state: ReplicaState, held: Iterable[Held], *, lost: bool = False, window: int = 0) -> ReplicaState:
    """A state in which the tables of some lanes are held; only lanes that the load tried count as failed once more.

    Args:
        state: without them.
        held: the lanes.
        lost: whether their objects could not be loaded from a dump of objects, so that events must not be applied to them until a
            recovery, a repair or another bootstrap. Replicas whose tables are left out by now are as they were.
        window: end of the window that was loaded; a replica whose table is left out from an event on stands there, since none
            of what follows is for it. It is 0 where it was none.
    """
    now = time.time()
    for lane in held:
        for name in lane.tables:
            left_out = lane.reason.startswith(LEFT_OUT_REASON)
            after = 0 if lost and not left_out else lane.after
            after = max(after, window) if left_out and lane.tried and name == lane.table else after
            state = state.quarantine(name, after, held_reason(state, lane, name))
            state = state.failed(name, lane.evid, now) if lane.tried else state
    return state


def looked_for(state: ReplicaState, before: int | None, evid: int) -> ReplicaState:
    """A state that counts one more attempt at the tables that the source hides, after a catch-up, which has asked for them.

    Args:
        state: after the load.
        before: event id that the database stood at before it.
        evid: end of the window that was loaded.
    """
    now = time.time()
    for name in state.unfinished if covers(before, evid) else ():
        if is_hidden(state.held[name]):
            state = state.failed(name, state.quarantines.get(name, NO_HISTORY).evid, now)
    return state


def held_reason(state: ReplicaState, lane: Held, name: str) -> str:
    """Why a name of a lane is held: what steers loads stays with the name that it is of, as the lane's reason and as its own."""
    return printable(_reason(state, lane, name))


def _reason(state: ReplicaState, lane: Held, name: str) -> str:
    own, of_another = state.held.get(name, ""), lane.table not in ("", name) and lane.reason.startswith(_OWN)
    if own.startswith(_OWN) and not lane.tried:
        return own
    if not of_another:
        return lane.reason
    return own if state.why_left_out(name) else f"{JOINED_REASON}{lane.table}: {lane.reason}"
