"""Events of functions in a lane: which of them apply (pure)."""

from __future__ import annotations

from hive_replication.events import event_records as r
from hive_replication.load.plan import gate
from hive_replication.load.plan.handlers.by_event_type import handlers
from hive_replication.load.plan.lane_context import LanePlanning, Replica, require_within
from hive_replication.load.plan.lanes import WindowEvent

#: Why what was done to a function does not matter any more.
GONE = "the function is gone at event {}"


def plan_function(lane: LanePlanning, event: WindowEvent, dropped: int | None, *, early: bool) -> None:
    """Plans an event of a function.

    Args:
        lane: of the function.
        event: its creation or its drop.
        dropped: event id of the drop of what is created; None where it lasts.
        early: whether the lane is held: nothing is asked any more of what goes away in the window.

    Raises:
        LaneStopped: its resources may not be read, and it lasts.
    """
    name = event.names[0]
    goes = dropped if isinstance(event.event, r.CreateFunction) and (early or event.outside) else None
    reason = gate.applied(event.evid, position=lane.view.state.position(name)) or (GONE.format(goes) if goes else "")
    if reason:
        lane.skip(event.evid, f"{event.row.type} {name}", reason)
        return
    require_within(event)
    handlers()[event.row.type](lane, event, Replica(name, present=False, state_id=0, found_as=""))
