"""The plan of a load as rows, with files and bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hive_replication.events.files import FileRef
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.conflict_resolutions import KeepAside, KeepPartitionsAside
from hive_replication.load.plan.load_plan import LanePlan, LoadPlan
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.units import size_figure

COLUMNS = ("lane", "event", "operation", "object", "files", "size", "why not")


@dataclass(frozen=True, slots=True)
class PlanRow:
    """One operation, or why something is not done.

    Args:
        lane: number of its lane, ``database``, ``held`` where the lane stops there, or ``skipped``.
        evid: event id.
        operation: e.g. ``AddPartitions``, or "".
        object: e.g. ``sales.orders/ds=1``, with ``->`` for a rename.
        partitions: names of the partitions that it is about.
        files: number of files to bring.
        bytes: their size, -1 where the source does not tell.
        reason: why it is not done, or "".
        events: ids of all events that it carries out.
    """

    lane: str
    evid: int
    operation: str
    object: str
    partitions: tuple[str, ...] = ()
    files: int = 0
    bytes: int = 0
    reason: str = ""
    events: tuple[int, ...] = ()

    @property
    def cells(self) -> tuple[object, ...]:
        """For people, in the order of :data:`COLUMNS`."""
        shown = size_figure(None if self.bytes < 0 else self.bytes) if self.files else None
        evids = f"{self.evid} and {len(self.events) - 1} before" if len(self.events) > 1 else self.evid
        return self.lane, evids, self.operation, self.object, self.files or None, shown, self.reason


def plan_rows(plan: LoadPlan, sizes: Mapping[FileRef, int]) -> Iterator[PlanRow]:
    """Operations lane by lane in order, changes of the database where they come, then what is skipped.

    Args:
        plan: of the load.
        sizes: bytes of its files, -1 where unknown.
    """
    number = 0
    if plan.creates:
        yield PlanRow("database", plan.to_evid, op.CreateDatabase.kind, plan.database)
    for segment in plan.segments:
        for lane in segment.lanes:
            if lane.operations or lane.stop:
                number += 1
                yield from _lane_rows(plan.database, str(number), lane, sizes)
        for operation in filter(None, (*segment.alters, segment.barrier)):
            yield PlanRow("database", operation.evid, operation.kind, plan.database)
    for skipped in plan.skipped:
        yield PlanRow("skipped", skipped.evid, "", skipped.what, reason=skipped.reason)


def _lane_rows(database: str, number: str, lane: LanePlan, sizes: Mapping[FileRef, int]) -> Iterator[PlanRow]:
    stop = lane.stop
    for operation in lane.operations:
        if stop is None or operation.evid < stop.evid:
            found = [sizes[file] for file in _files(operation)]
            total = -1 if -1 in found else sum(found)
            name, parts = _about(database, operation)
            yield PlanRow(number, operation.evid, operation.kind, name, parts, len(found), total, events=operation.evids)
    if stop is not None:
        yield PlanRow("held", stop.evid, "", ", ".join(f"{database}.{name}" for name in lane.names), reason=stop.reason)


def _files(operation: op.Operation) -> Iterator[FileRef]:
    return (file for _, content in operation.contents for file in content.files)


def _about(database: str, operation: op.Operation) -> tuple[str, tuple[str, ...]]:
    """The object as people call it, and the partitions."""
    table = object_name(database, operation.table)
    parts = operation.partitions
    if isinstance(operation, KeepAside | KeepPartitionsAside):
        return f"{table} -> {object_name(database, operation.kept)}", operation.foreign_partitions
    for before, after in ((change.before, change.after) for change in operation.name_changes if change.renames):
        if before is not None and after is not None:
            shown = after[1] or object_name(database, after[0])
            return f"{object_name(database, *before)} -> {shown}", parts
    if len(parts) > 1:
        return f"{table} ({len(parts):,} partitions: {min(parts)} … {max(parts)})", parts
    return "/".join((table, *parts)), parts
