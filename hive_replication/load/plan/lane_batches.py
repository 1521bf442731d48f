"""What a load holds in memory at once: lanes, and parts of large ones, that are carried out one after another (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.conflict_resolutions import Resolution
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.metastore.types import Partition, Table

_COLUMNS = 25  # that take as much memory as a file


def weight(operations: Sequence[op.Operation]) -> int:
    """How much memory operations take, in files: objects count as one, and wide ones as several."""
    contents = (content for one in operations for _, content in one.contents)
    columns = (len(image.sd.cols or ()) // _COLUMNS for one in operations for image in _images(one) if image.sd)
    return sum(1 + len(content.files) for content in contents) + sum(columns)


def _images(one: op.Operation) -> Sequence[Table | Partition]:
    if isinstance(one, op.AddPartitions):
        return [new.image for new in one.added]
    return [one.image] if isinstance(one, op.CreateTable | op.ReplaceData) else []


def in_batches(lanes: Iterable[LanePlan], most: int | None) -> Iterator[list[LanePlan]]:
    """Lanes in batches that are planned and carried out one after another, so that memory holds one of them (pure).

    A part of a lane that has so much itself ends its batch: the next part of the lane comes after it.

    Args:
        lanes: planned as they are asked for.
        most: lanes, partitions and files of a batch, but for its last lane; None for all together.
    """
    batch: list[LanePlan] = []
    size = 0
    for lane in lanes:
        batch.append(lane)
        size += 1 + weight(lane.operations)
        if most is not None and size >= most:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def in_parts(operations: Iterable[op.Operation], most: int | None) -> Iterator[tuple[op.Operation, ...]]:
    """A lane's operations in parts that are carried out one after another (pure).

    Args:
        operations: planned as they are asked for.
        most: partitions and files of a part, but for its last operation; None for one part.
    """
    part: list[op.Operation] = []
    size, begun, whole = 0, False, most is None
    for one in operations:
        part.append(one)
        size += weight([one])
        whole = whole or isinstance(one, op.DropTable | Resolution)
        if not whole and size >= (most or 0):
            yield tuple(part)
            part, size, begun = [], 0, True
    if part or not begun:
        yield tuple(part)
