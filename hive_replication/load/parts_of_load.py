"""Progress of a load of objects that is carried out in parts: how far it is of all that its dump has.

Of a part alone the time left says nothing: a table of a million partitions has dozens of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import TypeVar

from hive_replication.progress import Item, Number, Progress, Size

Record = TypeVar("Record")
Part = TypeVar("Part")
_LABEL = "tables and partitions loaded"


@dataclass
class PartsOfLoad(Progress):
    """Shows the progress of the whole load, and of steps of a part as that of the part.

    Args:
        shown: who is told.
        total: tables and partitions of the dump.
        read: those of them that were planned.
        done: those that were carried out.
    """

    shown: Progress
    total: int
    read: int = 0
    done: int = 0

    def reading(self, records: Iterable[Record]) -> Iterator[Record]:
        """Tables or partitions of the dump that are planned now."""
        for record in records:
            self.read += 1
            yield record

    def carry_out(self, parts: Iterable[Part], one: Callable[[Part], object]) -> None:
        """Carries out parts, each planned when it is asked for."""
        for _ in self.shown.count(self._done(parts, one), _LABEL, self.total, number=int):
            pass

    def _done(self, parts: Iterable[Part], one: Callable[[Part], object]) -> Iterator[int]:
        for part in parts:
            one(part)
            before, self.done = self.done, self.read
            yield self.done - before

    def count(
        self,
        items: Iterable[Item],
        label: str,
        total: int | None = None,
        size: Size[Item] | None = None,
        number: Number[Item] | None = None,
    ) -> Iterator[Item]:
        """See :class:`hive_replication.progress.Progress`."""
        is_part = self.done or self.read < self.total
        part = f", of the part up to {self.read} of {self.total} tables and partitions" if is_part else ""
        return self.shown.count(items, label + part, total, size, number)
