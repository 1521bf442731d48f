"""How long work reports its progress; the terminal, logs and Dagster each implement it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

Item = TypeVar("Item")


class Progress(Protocol):
    """Receives progress of one step after another."""

    def over(self, items: Sequence[Item], label: str) -> Iterable[Item]:
        """Iterates over a known number of items, reporting each."""
        ...

    def count(self, items: Iterable[Item], label: str, total: int | None = None) -> Iterator[Item]:
        """Iterates over a stream of items, reporting each."""
        ...


class Silent:
    """No progress shown."""

    def over(self, items: Sequence[Item], label: str) -> Iterable[Item]:  # noqa: ARG002
        """See :class:`Progress`."""
        return items

    def count(self, items: Iterable[Item], label: str, total: int | None = None) -> Iterator[Item]:  # noqa: ARG002
        """See :class:`Progress`."""
        return iter(items)
