"""Which files travel together in one Spark task."""

from __future__ import annotations

from collections.abc import Iterable

from hive_replication.copy.tasks import CopyTask

MIB = 1 << 20
# What a file of unknown size counts as.
_UNKNOWN = 8 * MIB


def pack(tasks: Iterable[CopyTask], *, max_bytes: int = 256 * MIB, max_files: int = 256) -> list[list[CopyTask]]:
    """Packs of tasks, the largest files first, so that no long copy starts last.

    Args:
        tasks: each goes into exactly one pack.
        max_bytes: of one pack; a larger file has a pack of its own.
        max_files: of one pack.
    """
    packs: list[list[CopyTask]] = []
    room = 0
    for task in sorted(tasks, key=_bytes, reverse=True):
        if not packs or _bytes(task) > room or len(packs[-1]) >= max_files:
            packs.append([])
            room = max_bytes
        packs[-1].append(task)
        room -= _bytes(task)
    return packs


def partition_packs(packs: list[list[CopyTask]], most: int) -> list[list[list[CopyTask]]]:
    """The packs of each Spark task: one, or with fewer tasks than packs every n-th, the largest first."""
    tasks = min(len(packs), most)
    return [packs[start::tasks] for start in range(tasks)]


def _bytes(task: CopyTask) -> int:
    return task.size if task.size >= 0 else _UNKNOWN
