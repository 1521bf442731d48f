"""Runs whose process has ended without reporting a result: killed, out of memory, or lost in a restart of the machine.

Dagster itself keeps such a run as started for as long as nobody looks.
"""

from __future__ import annotations

import dagster as dg

from hive_replication.process import is_gone
from repl_assets.catalog.keys import PROCESS_TAG

#: What is said of such a run.
DEAD = "the process of this run ended without reporting a result"


def is_dead(run: dg.DagsterRun) -> bool:
    """Whether the process of an unfinished run has ended; False where that cannot be known, as of another machine's."""
    return is_gone(run.tags.get(PROCESS_TAG, ""))


def report_dead(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    """Reports a run as failed, unless it has finished since it was read."""
    current = instance.get_run_by_id(run.run_id)
    if current and not current.is_finished:
        instance.report_run_failed(current, DEAD)
