"""A tick that looks at the source again and again for a while, so that a run starts soon after an event.

Dagster's daemon starts the ticks of a sensor five seconds apart, at best.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import dagster as dg

_PAUSE = 0.5  # seconds between two looks
_PAUSE_BY_LOOK = 5  # a look that takes longer is followed by so many times its own time: servers and Dagster's storage rest
#: Ticks of one process that listen at a time, others look once: a code server answers Dagster in few threads, its cores and four.
_PLACES = threading.BoundedSemaphore(2)


def listen(look: Callable[[], dg.SensorResult | dg.SkipReason], seconds: float) -> dg.SensorResult | dg.SkipReason:
    """Looks until there is a run to request or the time is over; at least once.

    Args:
        look: says which runs to request, or why none.
        seconds: for how long.
    """
    until = time.monotonic() + seconds
    listens = _PLACES.acquire(blocking=False)
    try:
        while True:
            began = time.monotonic()
            found = look()
            ended = time.monotonic()
            pause = max(_PAUSE, _PAUSE_BY_LOOK * (ended - began))
            if isinstance(found, dg.SensorResult) or not listens or ended + pause > until:
                return found
            time.sleep(pause)
    finally:
        if listens:
            _PLACES.release()
