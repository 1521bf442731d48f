"""Ending the transactions that a lane begins with while files are being copied: each as soon as what it wrote is in place.

The target's metastore ends a transaction once, however often it is asked, so a lane may be gone through again afterwards.
Transactions that wrote to a table end in their order, others when their time comes, as in different lanes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import takewhile
from threading import Condition

from hive_replication.load.opening import Transactional
from hive_replication.load.operations import Operation
from hive_replication.load.transactions import AbortTransaction, CommitTransaction

_THREADS = 3


class Arrivals:
    """How many files each operation waits for. Threads may share one.

    Args:
        numbers: of the operations in their lane, once for each file.
    """

    def __init__(self, numbers: Iterable[int]) -> None:
        self._left, self._changed, self._over = Counter(numbers), Condition(), False

    def arrived(self, number: int) -> None:
        """A file of an operation is at its place."""
        with self._changed:
            self._left[number] -= 1
            self._changed.notify_all()

    def end(self) -> None:
        """No further file arrives."""
        with self._changed:
            self._over = True
            self._changed.notify_all()

    def wait(self, number: int) -> bool:
        """Waits for the files of an operation; whether all of them are there."""
        with self._changed:
            self._changed.wait_for(lambda: self._over or not self._left[number])
            return not self._left[number]


def follows(operations: Sequence[Operation]) -> bool:
    """Whether a lane begins with transactions."""
    return bool(operations) and isinstance(operations[0], Transactional)


def follow(operations: Sequence[Operation], arrivals: Arrivals, carry_out: Callable[[int], bool]) -> None:
    """Carries out the operations on transactions that a lane begins with, until one does not come to its end.

    Args:
        operations: of the lane.
        arrivals: of their files.
        carry_out: does it, by number of the operation; False where the lane has to stop.

    Raises:
        Exception: whatever ``carry_out`` raised first.
    """
    begun: list[Future[bool]] = []
    last: dict[str, Future[bool]] = {}  # of those that wrote to a table
    with ThreadPoolExecutor(_THREADS, thread_name_prefix="transaction") as pool:
        for number, one in enumerate(takewhile(lambda one: isinstance(one, Transactional), operations)):
            if isinstance(one, CommitTransaction | AbortTransaction):
                tables = {written.table for written in one.written} if isinstance(one, CommitTransaction) else set[str]()
                before = [last[table] for table in tables if table in last]
                begun.append(pool.submit(_end, number, before, arrivals, carry_out))
                last |= dict.fromkeys(tables, begun[-1])
            elif not (all(future.result() for future in begun) and carry_out(number)):
                break
        for future in begun:
            future.result()


def _end(number: int, before: list[Future[bool]], arrivals: Arrivals, carry_out: Callable[[int], bool]) -> bool:
    return all(future.result() for future in before) and arrivals.wait(number) and carry_out(number)
