"""What collapsing spared a load."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from hive_replication.copy.file_sizes import source_sizes
from hive_replication.events.files import FileRef
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.target import Target
from hive_replication.load.report import Collapsed


def not_copied(lanes: Iterable[LanePlan]) -> set[FileRef]:
    """Files that one event at a time would have copied."""
    return {file for lane in lanes if lane.uncollapsed for file in _files(lane.uncollapsed) - _files(lane.operations)}


def saved(target: Target, lanes: list[LanePlan]) -> Collapsed:
    """What collapsing spared; sizes are looked up where the files are as few as the driver itself would copy."""
    spared = not_copied(lanes)
    few = spared if len(spared) <= target.policy.driver_max_files else ()
    return savings(lanes, source_sizes(target.source_storage, few))


def savings(lanes: Iterable[LanePlan], sizes: Mapping[FileRef, int]) -> Collapsed:
    """Sums up collapsed lanes.

    Args:
        lanes: all lanes.
        sizes: bytes of the files that are not copied; -1 or absent where unknown.
    """
    lanes = [lane for lane in lanes if lane.uncollapsed]
    spared = [sizes.get(file, -1) for file in not_copied(lanes)]
    return Collapsed(
        events=len({evid for lane in lanes for operation in lane.operations for evid in operation.parts}),
        operations=sum(1 for lane in lanes for operation in lane.operations if operation.parts),
        files=len(spared),
        bytes=-1 if -1 in spared else sum(spared),
    )


def _files(operations: Iterable[op.Operation]) -> set[FileRef]:
    return {file for operation in operations for _, content in operation.contents for file in content.files}
