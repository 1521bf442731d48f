"""Turns of the sensors on drift: of all databases of a code server one is scanned at a time, that whose round is oldest.

A code server answers Dagster in few threads, its cores and four: scans in all of them would leave none to the other sensors.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager

_FORGOTTEN = 90.0  # seconds since the last tick of a database that waits: its sensor may be off, or its servers down
_LONGEST = 300.0  # seconds: Dagster ended the tick long before, and its thread may wait for a store for ever
_LAST_FOR = 600.0  # seconds for which a database comes last whose turn failed, or took too long: its servers may be down

#: Of a round, the least comes first: whether it has yet to begin, and when it or the one before it began.
Age = tuple[bool, float]

_LAST: Age = (True, math.inf)


class Turns:
    """Who is scanned, and who waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._scanned = ("", 0.0)  # and since when
        self._waiting: dict[str, tuple[Age, float]] = {}
        self._failed: dict[str, float] = {}

    @contextmanager
    def turn(self, own: str, age: Age) -> Generator[str]:
        """A turn, as long as the context lasts: "" if it was given, else who comes first.

        After some minutes others have theirs all the same. If one took as long, or raised, its database comes last for a while.

        Args:
            own: the database that asks.
            age: of its round.
        """
        first, mine = self._ask(own, age)
        if first:
            yield first
            return
        failed = True
        try:
            yield ""
            failed = False
        finally:
            self._leave(mine, failed=failed)

    def _ask(self, own: str, age: Age) -> tuple[str, tuple[str, float]]:
        with self._lock:
            now = time.monotonic()
            scanned, since = self._scanned
            if scanned and now - since > _LONGEST:
                self._scanned, self._failed[scanned] = ("", 0.0), now
            self._failed = {name: when for name, when in self._failed.items() if now - when < _LAST_FOR}
            age = _LAST if own in self._failed else age
            others = {name: one for name, one in self._waiting.items() if name != own and now - one[1] < _FORGOTTEN}
            older = min(((waits, name) for name, (waits, _) in others.items() if waits < age), default=(age, ""))
            first = self._scanned[0] or older[1]
            self._waiting = others | ({own: (age, now)} if first else {})
            if not first:
                self._scanned = (own, now)
            return first, self._scanned

    def _leave(self, turn: tuple[str, float], *, failed: bool) -> None:
        with self._lock:
            if failed:
                self._failed[turn[0]] = time.monotonic()
            if self._scanned == turn:  # others may have one since
                self._scanned = ("", 0.0)
