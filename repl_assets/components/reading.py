"""When a component's catalog is read: how often, and for how long all of a code location together.

Dagster ends a load of the definitions that takes longer than 180 s, and the sensors with it. A daemon that starts the code
servers itself loads the definitions once a minute: it is not to read all tables of both metastores each time.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Generator
from dataclasses import dataclass, field
from pathlib import Path

_FRESH = 300  # seconds: a catalog is not read again so soon
_TOGETHER = 90  # seconds that reading takes in one load, whatever hangs; the rest is for making the definitions
_LOAD = 180  # seconds: what is read later belongs to another load
_PATIENCE = 30  # seconds for the answer of one call


@dataclass
class Budget:
    """The seconds that all components of a process read in one load."""

    begun: float = float("-inf")
    spent: float = 0.0
    guard: threading.Lock = field(default_factory=threading.Lock)

    def patience(self) -> float:
        """Seconds to wait for the answer of a call that is made twice; 0 where the others have taken the time."""
        with self.guard:
            if (now := time.monotonic()) > self.begun + _LOAD:
                self.begun, self.spent = now, 0.0
            left = _TOGETHER - self.spent
            return min(_PATIENCE, left / 2) if left >= 1 else 0

    @contextlib.contextmanager
    def used(self) -> Generator[None]:
        """Counts the time while the context is open."""
        begun = time.monotonic()
        try:
            yield
        finally:
            with self.guard:
                self.spent += time.monotonic() - begun


BUDGET = Budget()


def was_read(state: Path) -> bool:
    """Whether a catalog was read a short while ago, or its source did not answer then."""
    with contextlib.suppress(OSError):
        return abs(time.time() - _mark(state).stat().st_mtime) < _FRESH
    return False


def note_reading(state: Path) -> None:
    """Notes that a catalog is read now."""
    with contextlib.suppress(OSError):  # of an image, whose catalog is not to be written
        _mark(state).touch()


def read_again(state: Path | None) -> None:
    """Lets the next load read a catalog, however short ago it was read; None where no load keeps one."""
    with contextlib.suppress(OSError):
        if state:
            _mark(state).unlink()


def _mark(state: Path) -> Path:
    return state.with_name(f"{state.name}.read")
