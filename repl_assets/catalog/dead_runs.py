"""Runs whose process has ended without reporting a result: killed, out of memory, or lost in a restart of the machine.

Dagster itself keeps such a run as started for as long as nobody looks.
"""

from __future__ import annotations

import re
import time

import dagster as dg

from hive_replication.process import is_gone, lives
from resources.heartbeat import HEARTBEAT_TAG, LOST, PROCESS_TAG

_RUN_ID = re.compile("[0-9a-f]{8}-[0-9a-f-]{27}")

#: What is said of such a run.
DEAD = "the process of this run ended without reporting a result"


def process_of(instance: dg.DagsterInstance, run: dg.DagsterRun) -> str:
    """The process that executes a run, or ""; not the one of the run that it executes again, whose tags it has."""
    process, _, run_id = (value := run.tags.get(PROCESS_TAG, "")).rpartition(" ")
    if run_id == run.run_id:
        return process
    if _RUN_ID.fullmatch(run_id):
        return ""
    if run.parent_run_id is None:
        return value
    parent = instance.get_run_by_id(run.parent_run_id)  # earlier versions did not say the run
    return value if parent and parent.tags.get(PROCESS_TAG) != value else ""


def is_dead(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Whether the process of an unfinished run has ended; False where that cannot be known, as of another machine's."""
    return is_gone(process_of(instance, run))


def report_dead(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    """Reports a run as failed, unless it has finished since it was read."""
    current = instance.get_run_by_id(run.run_id)
    if current and not current.is_finished:
        instance.report_run_failed(current, DEAD)


def has_ended(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Whether the process of an unfinished run has ended, or may be anywhere and has given no sign of life for long.

    One that lives here may have given none since the machine was suspended, or since its clock was set.
    """
    process = process_of(instance, run)
    return is_gone(process) or (not lives(process) and _is_lost(instance, run))


def _is_lost(instance: dg.DagsterInstance, run: dg.DagsterRun) -> bool:
    """Whether a run that would log signs of life has logged nothing for long, such as one of a container that is gone."""
    if run.tags.get(HEARTBEAT_TAG) != run.run_id:  # Dagster copies the tags of a run that is executed again
        return False
    last = instance.get_records_for_run(run.run_id, limit=1, ascending=False).records
    return bool(last) and last[0].timestamp < time.time() - LOST
