"""Python workers of Spark executors killed in the middle of a copy."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterable, Iterator
from pathlib import Path

from hive_replication.copy.tasks import CopyFailure, CopyResult, CopyTask
from hive_replication.copy.thread_copier import ThreadCopier
from hive_replication.storage import Storage


class KillingCopier(ThreadCopier):
    """Kills its own process, once, when some files are copied: a Python worker where Spark runs it. Picklable.

    Args:
        source: where files are read.
        target: where replicas go.
        files: copied before the end.
        mark: a path that is made by the one that kills itself.
    """

    def __init__(self, source: Storage, target: Storage, files: int, mark: Path) -> None:
        super().__init__(source, target, threads=1, executor="spark")
        self._files, self._mark = files, mark

    def copy_packs(self, packs: Iterable[list[CopyTask]]) -> Iterator[CopyResult | CopyFailure]:
        """Copies file after file, up to the end."""
        for number, task in enumerate(task for pack in packs for task in pack):
            if number == self._files and not self._mark.exists():
                self._mark.touch()
                os.kill(os.getpid(), signal.SIGKILL)
            yield from self.copy([task])
