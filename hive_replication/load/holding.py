"""The state of a database after a load some of whose lanes are held."""

from __future__ import annotations

import time
from collections.abc import Iterable

from hive_replication.load.report import Held
from hive_replication.load.state import ReplicaState


def with_held(state: ReplicaState, held: Iterable[Held], *, nowhere: bool = False) -> ReplicaState:
    """A state in which the tables of lanes are held; those that were not tried have failed no further time.

    Args:
        state: without them.
        held: the lanes.
        nowhere: whether they stand at no event at all (at 0), since a dump of objects failed for them: only a recovery, a repair
            or the bootstrap again ends the hold, events must not be applied to them.
    """
    now = time.time()
    for lane in held:
        for name in lane.tables:
            state = state.hold(name, 0 if nowhere else lane.after, lane.reason)
            state = state.failed(name, lane.evid, now) if lane.tried else state
    return state
