"""The additions of a lane that only adds partitions: while HDFS takes some files, metastores add those that are copied.

A partition that is added a second time is refused, unlike a transaction that is committed again. So lanes that may be carried out
in another way if they fail wait for all of their files, and one that is planned again goes on without what it has added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Set
from dataclasses import replace

from hive_replication.load.apply.commit_pipeline import PendingFiles, begins_with_transactions
from hive_replication.load.apply.lane_run import LaneRun
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.call_groups import only_adds
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.parallel import Call, Threads, settle

# Calls of one lane at the same time, as of commits.
_AT_ONCE = 3


def adds_ahead(run: LaneRun) -> bool:
    """Whether a lane's partitions are added while its files are being copied; of one that waits for none there is no need."""
    return not (run.pending.complete or run.lane.uncollapsed) and only_adds(run.due)


def goes_ahead(run: LaneRun) -> bool:
    """Whether a lane is carried out while its files are being copied: it begins with transactions, or only adds partitions."""
    return begins_with_transactions(run.due) or adds_ahead(run)


def add_as_copied(threads: Threads, found: Iterable[range], pending: PendingFiles, carry_out: Callable[[range], bool]) -> None:
    """Carries out groups of additions as soon as their files are copied, in order, up to the first one that cannot be.

    Args:
        threads: make the calls.
        found: numbers of the operations that go together.
        pending: the files of the lane.
        carry_out: carries out a group; returns False if the lane has to stop.

    Raises:
        Exception: the first exception that ``carry_out`` raised.
    """
    started: list[Call[bool]] = []
    try:
        for numbers in found:
            if len(started) >= _AT_ONCE and not started[-_AT_ONCE].result():
                break
            if not all(map(pending.wait, numbers)):
                break
            started.append(threads.begin(carry_out, numbers))
        for call in started:
            call.result()
    finally:
        settle(started)


def without_added(lane: LanePlan, added: Set[tuple[str, str]]) -> LanePlan:
    """A lane that is planned again, without what it has added.

    Args:
        lane: its new plan.
        added: tables and names of partitions.
    """
    left = (
        one
        for one in lane.operations
        if not (isinstance(one, op.AddPartitions) and added >= {(one.table, name) for name in one.partitions})
    )
    return replace(lane, operations=tuple(left)) if added else lane
