"""What a load writes down of the lanes that it holds."""

from __future__ import annotations

import time
from collections.abc import Iterable

from hive_replication.load.replica.held_reasons import LEFT_OUT_REASON
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.report import Held
from hive_replication.logs import printable


def with_held(state: ReplicaState, held: Iterable[Held], *, lost: bool = False) -> ReplicaState:
    """A state in which the tables of some lanes are held; only lanes that the load tried count as failed once more.

    Args:
        state: without them.
        held: the lanes.
        lost: whether their objects could not be loaded from a dump of objects, so that events must not be applied to them until a
            recovery, a repair or another bootstrap. Replicas whose tables are left out by now are as they were.
    """
    now = time.time()
    for lane in held:
        for name in lane.tables:
            after = 0 if lost and not lane.reason.startswith(LEFT_OUT_REASON) else lane.after
            state = state.quarantine(name, after, printable(lane.reason))
            state = state.failed(name, lane.evid, now) if lane.tried else state
    return state
