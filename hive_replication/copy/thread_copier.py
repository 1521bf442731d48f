"""Many files at once in threads: in the driver for small windows, and inside every Spark task for large ones."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from contextlib import closing
from copy import copy
from functools import partial
from itertools import chain, islice

from hive_replication.copy.bandwidth import Bandwidth
from hive_replication.copy.copy_file import Read, copy_file
from hive_replication.copy.tasks import Check, CopyFailure, CopyResult, CopyTask
from hive_replication.copy.while_held import go_on, passing
from hive_replication.logs import about
from hive_replication.parallel import Threads
from hive_replication.storage import Storage

_LOG = logging.getLogger(__name__)

# So few files wait for nobody but themselves: they are written in one request each, which costs the servers twice the work.
_FEW = 64


class ThreadCopier:
    """Copies files in threads of this process. Picklable.

    Copying small files waits far more than it works (closing one on HDFS takes half a second), so there are many threads.

    Args:
        source: where files and cmroot are read.
        target: where replicas go.
        threads: files in flight.
        executor: what the results say about who copied.
        bandwidth: most bytes per second that all these threads read; None for as fast as it goes.
    """

    def __init__(
        self,
        source: Storage,
        target: Storage,
        *,
        threads: int = 128,
        executor: str = "threads",
        bandwidth: float | None = None,
    ) -> None:
        self._source = source
        self._target = target
        self._threads = threads
        self._executor = executor
        self._bandwidth = bandwidth
        self._check: Check = go_on

    def limited(self, bandwidth: float | None) -> ThreadCopier:
        """The same with another limit."""
        same = copy(self)
        same._bandwidth = bandwidth  # noqa: SLF001 (its own class)
        return same

    def checked(self, check: Check) -> ThreadCopier:
        """The same, which asks after each piece that it reads, and before it gives a file its name."""
        same = copy(self)
        same._check = check  # noqa: SLF001 (its own class)
        return same

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        """Copies and proves each file; takes tasks only as threads become free, answers in the order files are done.

        Raises:
            ReplicationError: this process cannot connect to a store, which is no fault of a file.
        """
        threads, read = self._reader()
        waiting, most = self._connected(tasks), min(_FEW, 2 * threads)
        first = list(islice(waiting, most))
        answer_of = partial(self._answer, read=read, at_once=len(first) < most)
        with closing(Threads(threads, "copy")) as pool:
            yield from pool.unordered(answer_of, chain(first, waiting))

    def copy_packs(self, packs: Iterable[list[CopyTask]]) -> Iterator[CopyResult | CopyFailure]:
        """The same for packs, as Spark's ``mapPartitions`` hands them over."""
        return self.copy(task for pack in packs for task in pack)

    def _connected(self, tasks: Iterable[CopyTask]) -> Iterator[CopyTask]:
        for task in tasks:
            for storage, uri in (self._source, task.file.uri), (self._target, task.target):
                if storage.holds(uri):  # else it is refused by itself
                    storage.has_checksums(uri)  # connects
            yield task

    def _reader(self) -> tuple[int, Read]:
        """How many threads there may be, and how they read so that all together keep to the limit, and end where they have to."""
        if not self._bandwidth:
            return self._threads, self._checked_read
        limit = Bandwidth(self._bandwidth)
        threads = limit.threads(self._threads)
        size = limit.chunk(threads)
        return threads, lambda uri: limit.passing(self._checked_read(uri, size))

    def _checked_read(self, uri: str, size: int = 4 << 20) -> Iterator[bytes]:
        return passing(self._source.stream(uri, size), self._check)

    def _answer(self, task: CopyTask, *, read: Read, at_once: bool) -> CopyResult | CopyFailure:
        try:
            return copy_file(
                task, self._source, self._target, executor=self._executor, read=read, at_once=at_once, check=self._check
            )
        except Exception as error:  # noqa: BLE001 (every task gets its answer; the others go on)
            _LOG.warning("an unexpected error in the copy of %s", task.file.uri, exc_info=error, extra=about(evid=task.evid))
            return CopyFailure(task, f"{task.object_name}, event {task.evid}: {type(error).__name__}: {error}")
