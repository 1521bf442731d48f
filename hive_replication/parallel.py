"""Threads that everything on one connection shares: one set for tasks (tables, lanes), one for the calls of each storage.

How many there are is the policy's ``parallelism``. Nothing else makes threads of its own, so tasks within tasks need no more of
them. No set is ever used up by waiting: who waits for a call that no thread has begun makes it itself. So a task may wait for
calls, and a call for further calls, with any number of threads.
"""

from __future__ import annotations

import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from itertools import islice
from queue import SimpleQueue
from threading import Lock
from typing import Generic, Protocol, TypeVar

from hive_replication.errors import ReplicationError

_LOG = logging.getLogger(__name__)

# Calls per thread that wait while the first one is slow: the other threads have work, and memory stays bounded.
_AHEAD = 8

Item = TypeVar("Item")
Value = TypeVar("Value")


def per_core(number: int, *, most: int) -> int:
    """So many for each core that this process may use, up to what a server should get from one client."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(number * cores, most)


class Call(Generic[Value]):
    """A call that is made once: by a thread of a set, or by the first that waits for its result.

    Args:
        do: makes it.
    """

    def __init__(self, do: Callable[[], Value]) -> None:
        self._do, self._begun = do, Lock()
        self._future: Future[Value] = Future()

    def run(self) -> None:
        """Makes the call unless it has begun."""
        if not self._begun.acquire(blocking=False):
            return
        try:
            value = self._do()
        except BaseException as error:  # noqa: BLE001 (it is raised where the result is asked for)
            self._future.set_exception(error)
        else:
            self._future.set_result(value)

    def result(self) -> Value:
        """Its result, or what it raised."""
        self.run()
        return self._future.result()

    def cancel(self) -> None:
        """Leaves the call out unless it has begun."""
        if self._begun.acquire(blocking=False):
            self._future.cancel()

    def wait(self) -> None:
        """Waits until it is no longer under way."""
        if not self._future.cancelled():
            self._future.exception()


class Threads:
    """A set of threads. They start when they are needed, and end with the last reference to the set.

    Args:
        number: how many there are at most.
        name: how their names begin.
    """

    def __init__(self, number: int, name: str) -> None:
        self._number, self._name = number, name
        self._lock = Lock()
        self._executor: ThreadPoolExecutor | None = None

    def begin(self, do: Callable[..., Value], *arguments: object) -> Call[Value]:
        """Makes a call as soon as a thread is free."""
        call = Call(partial(do, *arguments))
        self._submit(call.run)
        return call

    def map(self, do: Callable[[Item], Value], items: Iterable[Item]) -> Iterator[Value]:
        """Makes calls and yields their results in order; begins at once, and keeps a bounded number ahead of the consumer.

        Raises:
            Exception: what the first call that failed raised, when none is under way any more.
        """
        items = iter(items)
        ahead = deque(self.begin(do, item) for item in islice(items, _AHEAD * self._number))
        return self._ordered(do, items, ahead)

    def _ordered(self, do: Callable[[Item], Value], items: Iterator[Item], ahead: deque[Call[Value]]) -> Iterator[Value]:
        try:
            while ahead:
                yield ahead.popleft().result()
                ahead.extend(self.begin(do, item) for item in islice(items, 1))
        finally:
            settle(ahead)

    def unordered(self, do: Callable[[Item], Value], items: Iterable[Item]) -> Iterator[Value]:
        """Makes calls and yields each result when it is there. Not for use in one of these threads: the caller only waits.

        Raises:
            Exception: what the first call that failed raised, when none is under way any more.
        """
        done: SimpleQueue[Call[Value]] = SimpleQueue()
        under_way: set[Call[Value]] = set()

        def report(call: Call[Value]) -> None:
            call.run()
            done.put(call)

        def taken() -> Value:
            call = done.get()
            under_way.remove(call)
            return call.result()

        try:
            for item in items:
                call = Call(partial(do, item))
                under_way.add(call)
                self._submit(partial(report, call))
                if len(under_way) >= 2 * self._number:
                    yield taken()
            while under_way:
                yield taken()
        finally:
            settle(under_way)

    def close(self) -> None:
        """Leaves out what has not begun, and waits for the rest."""
        with self._lock:
            executor, self._executor = self._executor, None
        if executor is not None:
            executor.shutdown(cancel_futures=True)

    def _submit(self, do: Callable[[], None]) -> None:
        with self._lock:
            if self._executor is None:
                self._executor = ThreadPoolExecutor(self._number, thread_name_prefix=self._name)
            self._executor.submit(do)


class ParallelCalls(Protocol):
    """Makes a call for each of many items. Implementations: threads of this process, Spark executors, or a choice by number."""

    def map(self, do: Callable[[Item], Value], items: Sequence[Item]) -> Iterator[Value]:
        """Makes the calls; their results in order.

        Args:
            do: makes one; it can be pickled.
            items: one for each call.

        Raises:
            ReplicationError: a call raised it, as any OSError.
        """
        ...


class ThresholdCalls:
    """Makes the first calls in threads, and those beyond a number in Spark: small databases wait for no JVM. Thread-safe.

    Args:
        threads: make the first ones, and any that come alone.
        spark_factory: makes the other; called when it is first needed, and then once.
        most: how many calls are made by threads.
    """

    def __init__(self, threads: ParallelCalls, spark_factory: Callable[[], ParallelCalls], *, most: int) -> None:
        self._threads, self._make_spark, self._left = threads, spark_factory, most
        self._spark: ParallelCalls | None = None
        self._lock = Lock()
        #: Whether any calls were made.
        self.used = False

    @property
    def uses_spark(self) -> bool:
        """Whether some calls were made in Spark."""
        return self._spark is not None

    def map(self, do: Callable[[Item], Value], items: Sequence[Item]) -> Iterator[Value]:
        """Makes the calls; their results in order."""
        return self._by(len(items)).map(do, items)

    def _by(self, number: int) -> ParallelCalls:
        with self._lock:
            self.used = self.used or number > 0
            self._left -= number
            if self._left >= 0 or number <= 1:
                return self._threads
            if self._spark is None:
                _LOG.info("directories beyond the policy's driver_max_directories are read by Spark executors")
                self._spark = self._make_spark()
            return self._spark


@dataclass(frozen=True, slots=True)
class Raised:
    """What a call in a Spark task raised, after which the task makes no further ones."""

    error: Exception


def answers_of_task(do: Callable[[Item], Value], threads: int, items: Iterable[Item]) -> Iterator[Value | Raised]:
    """Makes the calls of one Spark task in threads: the results in order, and last what the call raised that failed.

    It stands here and not with Spark's resource, since executors get this package only.
    """
    try:
        yield from Threads(threads, "storage").map(do, items)
    except (ReplicationError, OSError) as error:
        yield Raised(error)


def settle(calls: Iterable[Call[Value]]) -> None:
    """Leaves out those calls that have not begun, and waits for the others."""
    calls = list(calls)
    for call in calls:
        call.cancel()
    for call in calls:
        call.wait()
