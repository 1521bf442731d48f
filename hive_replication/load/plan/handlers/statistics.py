"""Handlers of events of column statistics."""

from __future__ import annotations

from hive_replication.events import event_records as r
from hive_replication.load.operations.statistics import Columns, DeleteStatistics, SetStatistics
from hive_replication.load.plan.lane_context import LanePlanning, Replica
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.metastore.statistics import ENGINE


def update_statistics(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """UPDATE_TBL_COL_STAT_EVENT and UPDATE_PART_COL_STAT_EVENT."""
    change = event.event
    assert isinstance(change, r.UpdateStatistics)  # noqa: S101 - the decoder of these types
    if change.engine != ENGINE:
        what = f"{event.row.type} {replica.name}" + (f"/{change.partition_name}" if change.partition_name else "")
        lane.skip(event.evid, what, f"statistics of the engine {change.engine} are not replicated")
    elif not change.partition_name or lane.passes(event, change.partition_name, replica):
        columns = Columns(change.partition_name, change.columns, change.accurate)
        lane.add(SetStatistics(event.evid, replica.name, (columns,)))


def delete_statistics(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """DELETE_TBL_COL_STAT_EVENT and DELETE_PART_COL_STAT_EVENT."""
    change = event.event
    assert isinstance(change, r.DeleteStatistics)  # noqa: S101 - the decoder of these types
    if not change.partition_name or lane.passes(event, change.partition_name, replica, needed=False):
        lane.add(DeleteStatistics(event.evid, replica.name, change.partition_name, change.column))
