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


def dealt(packs: list[list[CopyTask]], most: int) -> list[list[list[CopyTask]]]:
    """Packs dealt out to Spark tasks: one to each, or in turn, the largest first, where there may be fewer tasks than packs."""
    hands = min(len(packs), most)
    return [packs[start::hands] for start in range(hands)]


def _bytes(task: CopyTask) -> int:
    return task.size if task.size >= 0 else _UNKNOWN
