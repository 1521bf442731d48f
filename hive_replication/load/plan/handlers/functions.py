"""Handlers of events of functions."""

from __future__ import annotations

from hive_replication.dump.functions import why_left_out, with_stores
from hive_replication.events import event_records as r
from hive_replication.load.operations.functions import DropFunction, create_function, homes_of
from hive_replication.load.plan.lane_context import LanePlanning, Replica
from hive_replication.load.plan.lanes import WindowEvent


def add_function(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """CREATE_FUNCTION: copy the resources, create."""
    change = event.event
    assert isinstance(change, r.CreateFunction)  # noqa: S101 - the decoder of this type
    files = event.files().files
    function = with_stores(change.after, lane.mapping.source_location)
    reason = why_left_out(function, files)
    if reason:
        lane.skip(event.evid, f"CREATE_FUNCTION {replica.name}", reason)
    elif not lane.superseded(event, "", f"CREATE_FUNCTION {replica.name}"):
        lane.add(create_function(lane.mapping, function, files, event.evid))


def drop_function(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """DROP_FUNCTION."""
    change = event.event
    assert isinstance(change, r.DropFunction)  # noqa: S101 - the decoder of this type
    lane.add(DropFunction(event.evid, replica.name, change.function, homes_of(lane.mapping, change.function)))
