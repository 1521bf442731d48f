"""The plan of a load as rows, with files and bytes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hive_replication.events.files import FileRef
from hive_replication.load import operations as op
from hive_replication.load.plan import LanePlan, LoadPlan
from hive_replication.load.resolutions import KeepAside, KeepPartitionsAside
from hive_replication.units import size

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
        shown = ("unknown" if self.bytes < 0 else size(self.bytes)) if self.files else None
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
        yield PlanRow("database", plan.to_evid, op.CreateDatabase.__name__, plan.database)
    for segment in plan.segments:
        for lane in segment.lanes:
            if lane.operations or lane.obstacle:
                number += 1
                yield from _lane_rows(plan.database, str(number), lane, sizes)
        for operation in (*segment.alters, *([segment.barrier] if segment.barrier else [])):
            yield PlanRow("database", operation.evid, operation.kind, plan.database)
    for skipped in plan.skipped:
        yield PlanRow("skipped", skipped.evid, "", skipped.what, reason=skipped.reason)


def _lane_rows(database: str, number: str, lane: LanePlan, sizes: Mapping[FileRef, int]) -> Iterator[PlanRow]:
    stop = lane.obstacle
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
    table = op.object_name(database, operation.table)
    match operation:
        case op.RenameTable():
            return f"{table} -> {op.object_name(database, operation.image.tableName)}", ()
        case KeepAside():
            return f"{table} -> {op.object_name(database, operation.kept)}", ()
        case KeepPartitionsAside():
            return f"{table} -> {op.object_name(database, operation.kept)}", operation.names
        case op.RenamePartition():
            return f"{table}/{operation.old} -> {operation.new}", (operation.old, operation.new)
        case op.AddPartitions():
            parts = tuple(new.name for new in operation.added)
        case op.AlterPartitions():
            parts = tuple(name for name, _ in operation.images)
        case op.DropPartitions():
            parts = operation.names
        case op.ReplaceData() | op.AppendData():
            parts = (operation.partition,) if operation.partition else ()
        case _:
            parts = ()
    if len(parts) > 1:
        return f"{table} ({len(parts):,} partitions: {min(parts)} … {max(parts)})", parts
    return "/".join((table, *parts)), parts
