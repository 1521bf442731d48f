"""Turns of the sensors on drift: of all databases of a code server one is scanned at a time, that whose round is oldest.

A code server answers Dagster in few threads, its cores and four: scans in all of them would leave none to the other sensors.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

_FORGOTTEN = 90.0  # seconds since the last tick of a database that waits: its sensor may be off, or its servers down

#: Of a round, the least comes first: whether it has yet to begin, and when it or the one before it began.
Age = tuple[bool, float]


class Turns:
    """Who is scanned, and who waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._scanned = ""
        self._waiting: dict[str, tuple[Age, float]] = {}

    @contextmanager
    def turn(self, own: str, age: Age) -> Generator[str]:
        """A turn, as long as the context lasts: "" if it was given, else who comes first.

        Args:
            own: the database that asks.
            age: of its round.
        """
        first = self._ask(own, age)
        try:
            yield first
        finally:
            if not first:
                self._scanned = ""

    def _ask(self, own: str, age: Age) -> str:
        with self._lock:
            now = time.monotonic()
            others = {name: one for name, one in self._waiting.items() if name != own and now - one[1] < _FORGOTTEN}
            older = min(((waits, name) for name, (waits, _) in others.items() if waits < age), default=(age, ""))
            first = self._scanned or older[1]
            self._waiting = others | ({own: (age, now)} if first else {})
            if not first:
                self._scanned = own
            return first
