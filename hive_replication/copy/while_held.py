"""Copying for as long as a load holds its lock: another one may run after that, and what is copied then may be seen at once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, runtime_checkable

from hive_replication.copy.tasks import Check, Copier, CopyFailure, CopyResult, CopyTask
from hive_replication.errors import ReplicationError


@runtime_checkable
class Checking(Protocol):
    """A copier that can ask while files are on their way."""

    def checked(self, check: Check) -> Copier:
        """The same, which asks whether it may go on.

        Args:
            check: what to ask; threads may share it.
        """
        ...


class WhileHeld:
    """Copies as a copier does, until a lock is lost.

    Args:
        copier: copies; asks while it does if it can.
        check: of the lock.
    """

    def __init__(self, copier: Copier, check: Check) -> None:
        self._ask, self._lost = check, list[ReplicationError]()
        self._copier = checked(copier, self._check)

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        """Copies and proves each file.

        Raises:
            LockLost: files that are on their way get no names any more, but those of Spark tasks that end at this moment.
        """
        for answer in self._copier.copy(tasks):
            self._check()
            yield answer

    def _check(self) -> None:
        if self._lost:  # for good: a heartbeat may still come through for what a file has met
            raise self._lost[0]
        try:
            self._ask()
        except ReplicationError as error:
            self._lost.append(error)
            raise


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
