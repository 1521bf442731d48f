"""The report on a plan: figures, operations, conflicts, and what is skipped and why."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from hive_replication.events.files import FileRef
from hive_replication.load.copy_rate import rates_of
from hive_replication.load.operations.conflict_resolutions import Resolution
from hive_replication.load.plan.collapse_savings import savings
from hive_replication.load.plan.load_plan import LoadPlan
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.load.replica.target import Target
from hive_replication.load.report import Collapsed
from hive_replication.plans.estimate import Estimate, estimate
from hive_replication.plans.plan_rows import PlanRow, plan_rows
from hive_replication.plans.planned_files import Place, find_files
from hive_replication.progress import Progress, Silent


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """A file to copy that is not, or not as it was, where its event says.

    Args:
        object: e.g. ``sales.orders/ds=1``.
        file: its name.
        size: bytes, -1 where unknown.
        place: where it is taken from; ``gone``: from nowhere.
    """

    object: str
    file: str
    size: int
    place: Place


@dataclass(frozen=True)
class PlanReport:
    """What a load would do.

    Args:
        plan: as it was made.
        made: when, seconds since the epoch.
        rows: operations, and what is held or skipped.
        operations: numbers of operations by kind.
        files: numbers of files to copy by place: ``source``, ``cmroot``, ``unreadable`` and ``gone``.
        bytes: of those that are there.
        collapsed: what collapsing spares.
        estimate: how long it may take.
        elsewhere: files that are not taken from their path.
    """

    plan: LoadPlan
    made: float
    rows: tuple[PlanRow, ...]
    operations: Mapping[str, int]
    files: Mapping[str, int]
    bytes: int
    collapsed: Collapsed
    estimate: Estimate
    elsewhere: tuple[Elsewhere, ...] = ()

    @property
    def conflicts(self) -> Iterator[tuple[str, str]]:
        """What is in the way on the target, and what would become of it."""
        for lane in self.plan.lanes:
            for one in lane.operations:
                if isinstance(one, Resolution):
                    yield f"{self.plan.database}.{'/'.join((one.table, *one.foreign_partitions))}", one.outcome
            if lane.stop is not None and lane.stop.refused:
                yield ", ".join(f"{self.plan.database}.{name}" for name in lane.names), lane.stop.reason

    def data(self) -> dict[str, Any]:
        """The same for programs."""
        return {
            "database": self.plan.database,
            "directory": self.plan.directory,
            "from_evid": self.plan.from_evid,
            "to_evid": self.plan.to_evid,
            "operations": dict(self.operations),
            "files": dict(self.files),
            "bytes": self.bytes,
            "collapsed": asdict(self.collapsed),
            "estimate": asdict(self.estimate),
            "elsewhere": [asdict(one) for one in self.elsewhere],
            "conflicts": [{"object": name, "outcome": outcome} for name, outcome in self.conflicts],
            "plan": [asdict(row) for row in self.rows],
        }


def plan_report(target: Target, plan: LoadPlan, *, progress: Progress | None = None) -> PlanReport:
    """Looks up the files of a plan and sums it up; changes nothing.

    Args:
        target: the target side.
        plan: what a load would do.
        progress: shows the progress.
    """
    found = find_files(target.source_storage, plan, progress or Silent())
    sizes = {file: one.size for file, one in found.items()}
    rows = tuple(plan_rows(plan, sizes))
    objects = _copied(plan)
    copied = {file: found[file] for file in objects}
    total = sum(max(one.size, 0) for one in copied.values())
    done = Counter(row.operation for row in rows if row.operation)
    database = target.metastore.database(plan.database)
    rates = rates_of(target.storage, database.locationUri) if database is not None and database.locationUri else None
    return PlanReport(
        plan,
        time.time(),
        rows,
        done,
        Counter(one.place for one in copied.values()),
        total,
        savings(plan.lanes, sizes),
        estimate(len(copied), total, done.total(), rates, target.policy.bandwidth),
        tuple(Elsewhere(objects[file], file.name, one.size, one.place) for file, one in copied.items() if one.place != "source"),
    )


def _copied(plan: LoadPlan) -> dict[FileRef, str]:
    """The files that are to be copied with their objects, without those that only a lane without collapsing would bring."""
    return {
        file: object_name(plan.database, one.table, partition)
        for lane in plan.lanes
        for one in lane.operations
        if lane.stop is None or one.evid < lane.stop.evid
        for partition, content in one.contents
        for file in content.files
    }
