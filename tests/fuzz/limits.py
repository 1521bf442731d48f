"""What one input may take: memory, by the greatest size of the process; time, which does not count waiting; and waiting.

A busy machine makes everything wait, so what is slow is told from what stands still: an input that waits uses no time at all.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

#: Bytes of memory above those of the process before, seconds of computing, and seconds of waiting at a stretch.
MOST_MEMORY, MOST_SECONDS, MOST_WAITING = 300 << 20, 2.0, 30.0

_IDLE = 0.01  # share of a stretch that is computing in what only waits

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class TooSlow(BaseException):
    """The input takes more than its time."""


def _memory(name: str) -> int:
    text = _STATUS.read_text(encoding="utf-8")
    return int(text.partition(f"{name}:")[2].split()[0]) * 1024


def _late(*_: object) -> None:
    raise TooSlow(f"more than {MOST_SECONDS:g} s")


class _Stretches:
    """Raises after a stretch in which nothing was computed."""

    def __init__(self) -> None:
        self._computed = time.process_time()

    def __call__(self, *_: object) -> None:
        before, self._computed = self._computed, time.process_time()
        if self._computed - before < MOST_WAITING * _IDLE:
            raise TooSlow(f"waits for more than {MOST_WAITING:g} s")


@contextmanager
def limited(found: list[str]) -> Generator[None]:
    """Notes in ``found`` which limit was passed."""
    _CLEAR.write_text("5")  # the greatest size begins anew
    before = _memory("VmRSS")
    signal.signal(signal.SIGPROF, _late)
    signal.signal(signal.SIGALRM, _Stretches())
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    signal.setitimer(signal.ITIMER_REAL, MOST_WAITING, MOST_WAITING)
    try:
        yield
    except TooSlow as error:
        found.append(str(error))
    except MemoryError:
        found.append("no memory left")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.setitimer(signal.ITIMER_REAL, 0)
    if _memory("VmHWM") - before > MOST_MEMORY:
        found.append(f"more than {MOST_MEMORY >> 20} MB")
