"""Which copier takes a window: driver threads for few files, Spark for many (design, section 7)."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator

from hive_replication.copy.tasks import Check, Copier, CopyFailure, CopyResult, CopyTask
from hive_replication.copy.while_held import checked

_LOG = logging.getLogger(__name__)


class ThresholdCopier:
    """Copies small windows without Spark, so that two files do not wait for a JVM.

    Args:
        threads_copier: takes windows up to both limits.
        spark_copier_factory: makes the other; called only for a window beyond a limit, and then once.
        sized: the same tasks with their bytes, where these were not known.
        max_files: most files for threads.
        max_bytes: most bytes for threads; files of unknown size count as nothing.
    """

    def __init__(
        self,
        threads_copier: Copier,
        spark_copier_factory: Callable[[], Copier],
        sized: Callable[[list[CopyTask]], list[CopyTask]] = lambda tasks: tasks,
        *,
        max_files: int,
        max_bytes: int,
    ) -> None:
        self._threads = threads_copier
        self._make_spark = spark_copier_factory
        self._spark: Copier | None = None
        self._sized = sized
        self._max_files = max_files
        self._max_bytes = max_bytes

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        """Copies and proves each file; the choice needs all tasks, so they are read first."""
        window = self._sized(list(tasks))
        small = len(window) <= self._max_files and sum(max(task.size, 0) for task in window) <= self._max_bytes
        _LOG.info("%d files are copied by %s", len(window), "threads of this process" if small else "Spark")
        yield from (self._threads if small else self._executors()).copy(window)

    def checked(self, check: Check) -> ThresholdCopier:
        """The same, which asks while it copies whether it may go on."""
        threads = checked(self._threads, check)
        return ThresholdCopier(
            threads,
            lambda: checked(self._executors(), check),
            self._sized,
            max_files=self._max_files,
            max_bytes=self._max_bytes,
        )

    def _executors(self) -> Copier:
        if self._spark is None:
            self._spark = self._make_spark()
        return self._spark
