"""Ways in which a process comes to its end in the middle of its work."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hive_replication.copy.tasks import Copier, CopyFailure, CopyResult, CopyTask


class Killed(BaseException):
    """Stands for the end of the process: nothing may catch it."""


class DyingCopier:
    """Copies some files, then the process ends.

    Args:
        copier: copies them.
        files: how many.
    """

    def __init__(self, copier: Copier, files: int) -> None:
        self._copier, self._left = copier, files

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        for task in tasks:
            if self._left == 0:
                raise Killed
            self._left -= 1
            yield from self._copier.copy([task])
