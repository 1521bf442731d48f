"""The sensor that starts the job for partitions that large loads left unrecorded (see ``repl_assets.jobs.record_rest``).

It reads Dagster's own storage only, no metastore. It is separate from the sensor on the notification log because a Dagster
sensor targets either assets or jobs, and so that an operator can stop it alone.
"""

from __future__ import annotations

import time
from itertools import takewhile

import dagster as dg

from hive_replication.load.replica.held_retries import delay, wait_left
from repl_assets.catalog.dead_runs import has_ended, report_dead
from repl_assets.catalog.keys import POLICY_TAG, Names
from repl_assets.catalog.run_statuses import ended
from repl_assets.steps.record_rest import unrecorded_runs
from repl_assets.typed import running_sensor

RETRY_DELAY = (60.0, 3600.0)  # seconds after a failure, as for catching up
_INTERVAL = 30
_LAST_RUNS = 20


def recording_sensor(names: Names, job: str) -> dg.SensorDefinition:
    """The sensor of a policy, for its job of that name."""

    @running_sensor(
        name=names.local("recording"),
        description="Starts the job that records the partitions that large loads left unrecorded",
        job_name=job,
        interval=_INTERVAL,
    )
    def recording(context: dg.SensorEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        return tick(context.instance, names, job, time.time())

    return recording


def tick(instance: dg.DagsterInstance, names: Names, job: str, now: float) -> dg.RunRequest | dg.SkipReason:
    """One tick at a given time: requests a run of the job if partitions are left and no such run is in progress."""
    left = unrecorded_runs(instance, names)
    if not left:
        return dg.SkipReason("all changed partitions are recorded")
    past = list(instance.get_run_records(dg.RunsFilter(job_name=job, tags={POLICY_TAG: names.policy}), limit=_LAST_RUNS))
    for record in past:
        run = record.dagster_run
        if not run.is_finished:
            if not has_ended(instance, run):
                return dg.SkipReason(f"run {run.run_id[:8]} is in progress")
            report_dead(instance, run)
            return dg.SkipReason(f"the process of run {run.run_id[:8]} ended without reporting a result")
    if rest := wait_left(_due(past), RETRY_DELAY, now):
        return dg.SkipReason(f"the last run failed, the next one starts in {rest:.0f} s")
    last = past[0].dagster_run.run_id if past else ""
    return dg.RunRequest(run_key=f"{job}:{left[0]}:{last[:8]}")


def _due(past: list[dg.RunRecord]) -> float:
    failed = list(takewhile(lambda record: not record.dagster_run.is_success, past))
    return ended(failed[0]) + delay(len(failed), RETRY_DELAY) if failed else 0.0
