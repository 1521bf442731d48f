"""What one input may take: memory, by the greatest size of the process meanwhile, and time, which does not count waiting."""

from __future__ import annotations

import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

#: Bytes of memory above those of the process before, and seconds of computing.
MOST_MEMORY, MOST_SECONDS = 300 << 20, 2.0

_STATUS, _CLEAR = Path("/proc/self/status"), Path("/proc/self/clear_refs")


class TooSlow(BaseException):
    """The input takes more than its time."""


def _memory(name: str) -> int:
    text = _STATUS.read_text(encoding="utf-8")
    return int(text.partition(f"{name}:")[2].split()[0]) * 1024


def _late(*_: object) -> None:
    raise TooSlow


@contextmanager
def limited(found: list[str]) -> Generator[None]:
    """Notes in ``found`` which limit was passed."""
    _CLEAR.write_text("5")  # the greatest size begins anew
    before = _memory("VmRSS")
    signal.signal(signal.SIGPROF, _late)
    signal.setitimer(signal.ITIMER_PROF, MOST_SECONDS)
    try:
        yield
    except TooSlow:
        found.append(f"more than {MOST_SECONDS:g} s")
    except MemoryError:
        found.append("no memory left")
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    if _memory("VmHWM") - before > MOST_MEMORY:
        found.append(f"more than {MOST_MEMORY >> 20} MB")
