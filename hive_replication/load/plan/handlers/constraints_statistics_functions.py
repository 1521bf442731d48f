"""Handlers of events of constraints, column statistics and functions."""

from __future__ import annotations

from hive_replication.dump.constraints_statistics_functions import why_left_out
from hive_replication.events import event_types as r
from hive_replication.load.operations.constraints import DropConstraint, SetConstraints, on_target
from hive_replication.load.operations.functions import DropFunction, create_function, home_of
from hive_replication.load.operations.statistics import Columns, DeleteStatistics, SetStatistics
from hive_replication.load.plan.lane_context import LanePlanning, Replica
from hive_replication.load.plan.lanes import WindowEvent


def add_constraints(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """ADD_PRIMARYKEY and the like; a foreign key that points out of the policy is left out."""
    change = event.event
    assert isinstance(change, r.AddConstraints)  # noqa: S101 - the decoder of these types
    kept, left = on_target(change.constraints, lane.mapping, replica.name, lane.includes)
    for reason in left:
        lane.skip(event.evid, f"{event.row.type} {replica.name}", reason)
    if kept:
        lane.add(SetConstraints(event.evid, replica.name, kept))


def drop_constraint(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """DROP_CONSTRAINT."""
    change = event.event
    assert isinstance(change, r.DropConstraint)  # noqa: S101 - the decoder of this type
    lane.add(DropConstraint(event.evid, replica.name, change.constraint))


def update_statistics(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """UPDATE_TBL_COL_STAT_EVENT and UPDATE_PART_COL_STAT_EVENT."""
    change = event.event
    assert isinstance(change, r.UpdateStatistics)  # noqa: S101 - the decoder of these types
    if not change.partition_name or lane.passes(event, change.partition_name, replica):
        columns = Columns(change.partition_name, change.columns, change.accurate)
        lane.add(SetStatistics(event.evid, replica.name, (columns,)))


def delete_statistics(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """DELETE_TBL_COL_STAT_EVENT and DELETE_PART_COL_STAT_EVENT."""
    change = event.event
    assert isinstance(change, r.DeleteStatistics)  # noqa: S101 - the decoder of these types
    if not change.partition_name or lane.passes(event, change.partition_name, replica, needed=False):
        lane.add(DeleteStatistics(event.evid, replica.name, change.partition_name, change.column))


def add_function(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """CREATE_FUNCTION: copy the resources, create."""
    change = event.event
    assert isinstance(change, r.CreateFunction)  # noqa: S101 - the decoder of this type
    files = event.files().files
    reason = why_left_out(change.after, files)
    if reason:
        lane.skip(event.evid, f"CREATE_FUNCTION {replica.name}", reason)
    elif not lane.superseded(event, "", f"CREATE_FUNCTION {replica.name}"):
        lane.add(create_function(lane.mapping, change.after, files, event.evid))


def drop_function(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """DROP_FUNCTION."""
    change = event.event
    assert isinstance(change, r.DropFunction)  # noqa: S101 - the decoder of this type
    lane.add(DropFunction(event.evid, replica.name, change.function, home_of(lane.mapping, change.function)))
