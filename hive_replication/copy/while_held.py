"""Copying for as long as a load holds its lock: another one may run after that, and what is copied then may be seen at once.

Where nothing is heard of the lock, copies and changes wait for a heartbeat: once there is one, nobody else has had it.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from typing import Protocol, runtime_checkable

from hive_replication.copy.tasks import Check, Copier, CopyFailure, CopyResult, CopyTask
from hive_replication.errors import LockSilent, ReplicationError

_LOG = logging.getLogger(__name__)
_PATIENCE, _POLL = 600.0, 1.0  # seconds for which a heartbeat is waited for, and between two looks


@runtime_checkable
class Checking(Protocol):
    """A copier that can ask while files are on their way."""

    def checked(self, check: Check) -> Copier:
        """The same, which asks whether it may go on.

        Args:
            check: what to ask; threads may share it.
        """
        ...


class Patient:
    """A check of a lock that waits for a sign of life where there is none for a while. Threads share it, and its patience.

    Args:
        ask: the check; does not wait.
        ended: whether it is no use to wait any more.
    """

    def __init__(self, ask: Check, ended: Callable[[], bool] = lambda: False) -> None:
        self.ask, self._ended = ask, ended
        self._since: float | None = None  # when it was found silent, since it was last heard of

    def __call__(self) -> None:
        """Asks, and waits.

        Raises:
            LockLost: it is another's; LockSilent where it stays silent for too long.
        """
        while True:
            try:
                self.ask()
            except LockSilent:
                now, since = time.monotonic(), self._since
                if since is None:
                    _LOG.warning("no heartbeat for the load's lock gets through: it waits for one, up to %.0f s", _PATIENCE)
                    since = self._since = now
                if now >= since + _PATIENCE or self._ended():
                    raise
                time.sleep(_POLL)
            else:
                self._since = None
                return


class WhileHeld:
    """Copies as a copier does, until a lock is lost. Where nothing is heard of the lock it waits, and goes on with the rest.

    Args:
        copier: copies; asks while it does if it can.
        check: of the lock; files that are on their way do not wait, also where it is a patient one.
    """

    def __init__(self, copier: Copier, check: Check) -> None:
        self._copier, self._wait = copier, check if isinstance(check, Patient) else Patient(check)

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        """Copies and proves each file.

        Raises:
            LockLost: files that are on their way get no names any more, but those of Spark tasks that end at this moment.
        """
        left = list(tasks)
        while left:
            held, answered = _Latch(self._wait.ask), Counter[CopyTask]()
            for answer in self._until_lost(left, held):
                answered[answer.task] += 1  # a file of two objects is copied for each
                yield answer
            if not held.lost:
                return
            self._wait()
            left = [task for task in left if not _counted_off(answered, task)]

    def _until_lost(self, tasks: list[CopyTask], held: _Latch) -> Iterator[CopyResult | CopyFailure]:
        """One round. What fails after the lock was lost may have failed for it, and is left for the next."""
        with suppress(LockSilent):
            for answer in checked(self._copier, held.check).copy(tasks):
                with suppress(LockSilent):
                    held.check()
                if not held.lost:
                    yield answer
                    continue
                if isinstance(answer, CopyResult):
                    self._wait()
                    yield answer
                return


class _Latch:
    """Once it is lost it stays so: a heartbeat may still come through for what a file has met."""

    def __init__(self, ask: Check) -> None:
        self._ask = ask
        self.lost: ReplicationError | None = None

    def check(self) -> None:
        if self.lost:
            raise self.lost
        try:
            self._ask()
        except ReplicationError as error:
            self.lost = error
            raise


def _counted_off(numbers: Counter[CopyTask], one: CopyTask) -> bool:
    numbers[one] -= 1
    return numbers[one] >= 0


def checked(copier: Copier, check: Check) -> Copier:
    """A copier that asks while it copies, if it can."""
    return copier.checked(check) if isinstance(copier, Checking) else copier


def go_on() -> None:
    """Asks nobody."""


def passing(chunks: Iterable[bytes], check: Check) -> Iterator[bytes]:
    """The same pieces; asks after each."""
    for chunk in chunks:
        check()
        yield chunk
