"""Progress of long operations; the terminal, logs and Dagster each implement it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Protocol, TypeVar

from hive_replication import units

Item = TypeVar("Item")
#: Bytes of an item.
Size = Callable[[Item], int]
#: For how many an item counts.
Number = Callable[[Item], int]
_EVERY = 10.0  # seconds between two lines of progress


class Progress(Protocol):
    """Receives progress of one step after another; those that derive from it show it by :meth:`count` alone."""

    def over(self, items: Sequence[Item], label: str) -> Iterable[Item]:
        """Iterates over a known number of items, reporting each."""
        return self.count(items, label, len(items))

    def count(
        self,
        items: Iterable[Item],
        label: str,
        total: int | None = None,
        size: Size[Item] | None = None,
        number: Number[Item] | None = None,
    ) -> Iterator[Item]:
        """Iterates over a stream of items, reporting each.

        Args:
            items: the stream.
            label: what they are, e.g. ``files copied``.
            total: how many there will be, if that is known.
            size: bytes of each, if bytes say more than the number of items.
            number: for how many of the total each counts, if that is not one.
        """
        ...


class Silent:
    """No progress shown."""

    def over(self, items: Sequence[Item], label: str) -> Iterable[Item]:  # noqa: ARG002
        """See :class:`Progress`."""
        return items

    def count(
        self,
        items: Iterable[Item],
        label: str,  # noqa: ARG002
        total: int | None = None,  # noqa: ARG002
        size: Size[Item] | None = None,  # noqa: ARG002
        number: Number[Item] | None = None,  # noqa: ARG002
    ) -> Iterator[Item]:
        """See :class:`Progress`."""
        return iter(items)


@dataclass
class Pace:
    """How far a step has come, and how fast.

    Args:
        total: items in all; None where unknown.
        began: by the clock of :attr:`clock`.
        clock: seconds.
    """

    total: int | None
    clock: Callable[[], float] = time.monotonic
    began: float = field(init=False)
    items: int = field(default=0, init=False)
    bytes: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.began = self.clock()

    def add(self, size: int, number: int = 1) -> None:
        """An item is done, or several at once."""
        self.items += number
        self.bytes += size

    def __str__(self) -> str:
        """``1.2 GiB, 240.0 MiB/s, 38 s left`` or ``1,200 a second, 38 s left``; the time left goes by the number of items."""
        seconds = self.clock() - self.began
        parts = [units.size(self.bytes), f"{units.size(self.bytes / seconds)}/s"] if self.bytes and seconds else []
        if self.total and not self.bytes and self.items > seconds > 0:
            parts.append(f"{self.items / seconds:,.0f} a second")
        if self.total and 0 < self.items < self.total:
            parts.append(f"{units.duration(seconds / self.items * (self.total - self.items))} left")
        return ", ".join(parts)


class Log(Protocol):
    """Where lines go: a logger, or Dagster's log manager."""

    def info(self, msg: str, *args: object) -> object:
        """Writes a line."""
        ...


@dataclass(frozen=True)
class LoggedProgress(Progress):
    """Progress of long work as lines of a log, one in ten seconds at most."""

    log: Log
    every: float = _EVERY

    def count(
        self,
        items: Iterable[Item],
        label: str,
        total: int | None = None,
        size: Size[Item] | None = None,
        number: Number[Item] | None = None,
    ) -> Iterator[Item]:
        """See :class:`Progress`."""
        pace = Pace(total)
        logged = pace.began
        for item in items:
            pace.add(size(item) if size else 0, number(item) if number else 1)
            if pace.clock() - logged >= self.every:
                logged = pace.clock()
                far = f", {pace}" if str(pace) else ""
                with suppress(Exception):  # Dagster's log raises while its storage is away: a line is lost, not the work
                    self.log.info("%s: %d of %s%s", label, pace.items, total or "an unknown number", far)
            yield item
