"""Reading many small files in parallel, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from typing import TypeVar

_AHEAD = 512

Item = TypeVar("Item")
Value = TypeVar("Value")


def ordered(pool: ThreadPoolExecutor, read: Callable[[Item], Value], items: Iterable[Item]) -> Iterator[Value]:
    """Reads in parallel, a bounded number ahead, and yields in order."""
    items = iter(items)
    ahead = [pool.submit(read, item) for item in islice(items, _AHEAD)]
    while ahead:
        yield ahead.pop(0).result()
        ahead.extend(pool.submit(read, item) for item in islice(items, 1))
