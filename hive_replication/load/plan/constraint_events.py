"""Events of constraints after a load of objects that was killed over the replica: which of them apply again (pure)."""

from __future__ import annotations

from itertools import takewhile

from hive_replication.events import event_records as r
from hive_replication.load.plan.incarnations import Incarnation
from hive_replication.load.plan.lane_context import Replica
from hive_replication.load.plan.lanes import Lane, WindowEvent
from hive_replication.load.replica.state import ReplicaState


def watermark(event: WindowEvent, replica: Replica, incarnation: Incarnation, lane: Lane, state: ReplicaState) -> int:
    """State id of a table as far as it tells that an event is applied; 0 where it does not.

    A load of objects gives a table its constraints after its state id. Where one was killed in between, their events apply again,
    but for those that add what a later one drops: it may be in the way of what followed, as a second primary key is.
    """
    change = event.event
    if not (state.checkpoint and isinstance(change, r.AddConstraints | r.DropConstraint)):
        return replica.state_id
    later = [one.event for one in takewhile(lambda one: one is not event, reversed(lane.events))]
    names = {name for name, _ in incarnation.names}
    dropped = {one.constraint for one in later if isinstance(one, r.DropConstraint) and one.table in names}
    parents = {(one.database, one.table) for one in later if isinstance(one, r.DropTable)}
    added = change.constraints if isinstance(change, r.AddConstraints) else ()
    over = bool(added) and all(one.name in dropped or one.parent in parents for one in added)
    return replica.state_id if over else 0
