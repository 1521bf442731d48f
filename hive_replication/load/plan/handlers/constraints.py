"""Handlers of events of constraints."""

from __future__ import annotations

from hive_replication.events import event_records as r
from hive_replication.load.operations.constraints import DropConstraint, SetConstraints, on_target
from hive_replication.load.plan.lane_context import LanePlanning, Replica
from hive_replication.load.plan.lanes import WindowEvent


def add_constraints(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """ADD_PRIMARYKEY and the like; a foreign key to what is not replicated, or what the target lacks, is left out."""
    change = event.event
    assert isinstance(change, r.AddConstraints)  # noqa: S101 - the decoder of these types

    def includes(parent: str) -> bool:
        return lane.includes(parent) and lane.has(lane.mapping.table(parent))

    kept, left = on_target(change.constraints, lane.mapping, replica.name, includes)
    for reason in left:
        lane.skip(event.evid, f"{event.row.type} {replica.name}", reason)
    if kept:
        lane.add(SetConstraints(event.evid, replica.name, kept))


def drop_constraint(lane: LanePlanning, event: WindowEvent, replica: Replica) -> None:
    """DROP_CONSTRAINT."""
    change = event.event
    assert isinstance(change, r.DropConstraint)  # noqa: S101 - the decoder of this type
    lane.add(DropConstraint(event.evid, replica.name, change.constraint))
