"""Signs of life of a run: its process as a tag, and an event in its log every ten minutes, whatever its steps do.

Whether a process of another machine, or of a container that is gone, still exists cannot be asked; what its run logs can.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Generator
from contextlib import contextmanager

import dagster as dg

from hive_replication.process import this_process

#: The process that executes a run, and the run's id: a sensor fails runs whose process has died.
#:
#: Dagster's default launcher notices a killed run only as long as the code server that started it lives. After a restart of all
#: of Dagster such a run would count as running for ever, and its database would wait for it.
#: Dagster does not show tags with this prefix, and gives them to runs that execute a run again.
PROCESS_TAG = ".dagster/hive_replication/process"
#: The run's own id, of runs that log signs of life.
HEARTBEAT_TAG = ".dagster/hive_replication/heartbeat"
EVERY = 600.0  # seconds
#: Seconds without an event after which a run that gives signs of life is taken for ended: many of them, as storage may be away.
LOST = 7200.0
_LOG = logging.getLogger(__name__)


def process_tag(run_id: str, process: str) -> dict[str, str]:
    """The tag of a run that says which process executes it.

    Args:
        run_id: of the run.
        process: as :func:`hive_replication.process.this_process` says it.
    """
    return {PROCESS_TAG: f"{process} {run_id}"}


@contextmanager
def heartbeat(instance: dg.DagsterInstance, run: dg.DagsterRun, every: float = EVERY) -> Generator[None]:
    """Logs signs of life while the context is open; short runs log none.

    The tags say from the beginning that there will be some: a run may be lost before its first step, as while that waits for its
    pool.
    """
    instance.add_run_tags(run.run_id, process_tag(run.run_id, this_process()) | {HEARTBEAT_TAG: run.run_id})
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
