"""The sensor that has recorded what large loads left out (see ``repl_assets.unrecorded``).

It asks Dagster's own storage only, no metastore. It is apart from the sensor on the notification log because a sensor of Dagster
starts either assets or jobs, and so that it can be switched off alone.
"""

from __future__ import annotations

import time
from itertools import takewhile

import dagster as dg
from dagster._core.storage.dagster_run import RunRecord

from hive_replication.load.hold import delay
from repl_assets.keys import Names
from repl_assets.unrecorded import unrecorded_runs
from repl_assets.worker import PROCESS_TAG, is_gone
from sensors.runs import ended, report_gone

RETRY_DELAY = (60.0, 3600.0)  # seconds after a failure, as for catching up
_INTERVAL = 30
_LAST_RUNS = 20


def recording_sensor(names: Names, job: str) -> dg.SensorDefinition:
    """The sensor of a policy, for its job of that name; it runs from the start."""

    @dg.sensor(
        name=names.local("recording"),
        description="Starts the job that records what large loads left out",
        job_name=job,
        minimum_interval_seconds=_INTERVAL,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def recording(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        return ask(context.instance, names, job, time.time())

    return recording


def ask(instance: dg.DagsterInstance, names: Names, job: str, now: float) -> dg.RunRequest | dg.SkipReason:
    """One tick at a given time: a run of the job where something is left and no such run is under way."""
    left = unrecorded_runs(instance, names)
    if not left:
        return dg.SkipReason("all that loads changed is recorded")
    past = list(instance.get_run_records(dg.RunsFilter(job_name=job), limit=_LAST_RUNS))
    for record in past:
        run = record.dagster_run
        if not run.is_finished and not is_gone(run.tags.get(PROCESS_TAG, "")):
            return dg.SkipReason(f"run {run.run_id[:8]} is under way")
        if not run.is_finished:
            report_gone(instance, run)
            return dg.SkipReason(f"run {run.run_id[:8]} ended without a word")
    due = _due(past)
    if now < due:
        return dg.SkipReason(f"the last run failed, the next one is in {due - now:.0f} s")
    last = past[0].dagster_run.run_id if past else ""
    return dg.RunRequest(run_key=f"{job}:{left[0]}:{last[:8]}")


def _due(past: list[RunRecord]) -> float:
    failed = list(takewhile(lambda record: not record.dagster_run.is_success, past))
    return ended(failed[0]) + delay(len(failed), RETRY_DELAY) if failed else 0.0
