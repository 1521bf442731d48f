"""Signs of life of a run: an event in its log every ten minutes, whatever its steps do.

Whether a process of another machine, or of a container that is gone, still exists cannot be asked; what its run logs can.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager

import dagster as dg

EVERY = 600.0  # seconds
#: Seconds without an event after which a run that gives signs of life is taken for ended: many of them, as storage may be away.
LOST = 7200.0
_LOG = logging.getLogger(__name__)


@contextmanager
def heartbeat(instance: dg.DagsterInstance, run: dg.DagsterRun, every: float = EVERY) -> Generator[None]:
    """Logs signs of life while the context is open; short runs log none."""
    ended = threading.Event()

    def beat() -> None:
        while not ended.wait(every):
            try:
                instance.report_engine_event("The run is at work", run)
            except Exception as error:  # noqa: BLE001 (Dagster's storage may be away; the next one may come through)
                _LOG.warning("no sign of life of run %s: %s", run.run_id, error)

    threading.Thread(target=beat, name="heartbeat", daemon=True).start()
    try:
        yield
    finally:
        ended.set()
