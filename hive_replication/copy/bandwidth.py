"""A limit on bytes per second, shared by all threads of a process."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator

KIB, MIB = 1 << 10, 1 << 20
_SHARE = 64 * KIB  # bytes a second that a stream has at least: one that waits too long loses its connection


class Bandwidth:
    """Lets so many bytes a second pass: each piece takes its time on one clock of all threads, and waits for it.

    Args:
        rate: bytes per second.
    """

    def __init__(self, rate: float) -> None:
        self.rate = rate
        self._free = 0.0  # monotonic time at which all that was let through has had its time
        self._lock = threading.Lock()

    def passing(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """The same chunks, none faster than the limit."""
        for chunk in chunks:
            time.sleep(self._wait(len(chunk)))
            yield chunk

    def threads(self, most: int) -> int:
        """How many streams may share it."""
        return max(1, min(most, int(self.rate // _SHARE)))

    def chunk(self, threads: int) -> int:
        """Bytes of a piece with which each of some streams waits about a second for its turn."""
        return int(max(_SHARE, min(4 * MIB, self.rate // threads)))

    def _wait(self, size: int) -> float:
        """Reserves time for a piece; seconds until it has passed."""
        with self._lock:
            now = time.monotonic()
            self._free = max(now, self._free) + size / self.rate
            return self._free - now
