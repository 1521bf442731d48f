"""The transactions at the beginning of a lane: each is committed or aborted as soon as its files are copied.

Committing or aborting a transaction again changes nothing on the target, so a lane may be carried out once more afterwards.
Transactions that wrote to the same table end in the order of the source; others end independently of each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from itertools import takewhile
from threading import Condition

from hive_replication.load.operations.kinds import Operation
from hive_replication.load.operations.open_transactions import Transactional
from hive_replication.load.operations.transactions import ReplayAbort, ReplayCommit
from hive_replication.parallel import Call, Threads, settle

# Transactions of one lane that wait at the same time: with more, one lane could block all threads until its files are copied.
_AT_ONCE = 3


class PendingFiles:
    """The files for which the operations of a lane wait. Thread-safe.

    Args:
        numbers: for each file, the number of its operation in the lane.
    """

    def __init__(self, numbers: Iterable[int]) -> None:
        self._pending, self._changed, self._closed = Counter(numbers), Condition(), False

    @property
    def complete(self) -> bool:
        """Whether all files of the lane are copied."""
        with self._changed:
            return not self._pending

    def copied(self, number: int) -> None:
        """Counts a copied file of an operation."""
        with self._changed:
            self._pending[number] -= 1
            if not self._pending[number]:
                del self._pending[number]
            self._changed.notify_all()

    def close(self) -> None:
        """Ends all waiting: no further file will be copied."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def wait(self, number: int) -> bool:
        """Waits for the files of an operation; returns whether all of them are copied."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or not self._pending[number])
            return not self._pending[number]


def begins_with_transactions(operations: Sequence[Operation]) -> bool:
    """Whether a lane begins with transactions."""
    return bool(operations) and isinstance(operations[0], Transactional)


def commit_as_copied(
    threads: Threads, operations: Sequence[Operation], pending: PendingFiles, carry_out: Callable[[int], bool]
) -> None:
    """Carries out the operations on transactions at the beginning of a lane, up to the first one that cannot be.

    Args:
        threads: commit and abort the transactions.
        operations: of the lane.
        pending: their files.
        carry_out: carries out an operation by its number; returns False if the lane has to stop.

    Raises:
        Exception: the first exception that ``carry_out`` raised.
    """
    started: list[Call[bool]] = []
    last: dict[str, Call[bool]] = {}  # the last one that wrote to each table
    try:
        for number, one in enumerate(takewhile(lambda one: isinstance(one, Transactional), operations)):
            if isinstance(one, ReplayCommit | ReplayAbort):
                tables = {written.table for written in one.written} if isinstance(one, ReplayCommit) else set[str]()
                before = [last[table] for table in tables if table in last]
                if len(started) >= _AT_ONCE:
                    started[-_AT_ONCE].result()
                started.append(threads.begin(_end, number, before, pending, carry_out))
                last |= dict.fromkeys(tables, started[-1])
            elif all(call.result() for call in started) and carry_out(number):
                started.clear()  # they have ended
            else:
                break
        for call in started:
            call.result()
    finally:
        settle(started)


def _end(number: int, before: list[Call[bool]], pending: PendingFiles, carry_out: Callable[[int], bool]) -> bool:
    return all(call.result() for call in before) and pending.wait(number) and carry_out(number)
