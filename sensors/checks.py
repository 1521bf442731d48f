"""The schedule of the job that answers the checks of all tables (see ``repl_assets.check_runs``)."""

from __future__ import annotations

import dagster as dg
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES

from hive_replication.policy import Policy
from repl_assets.check_runs import checks_job_name
from repl_assets.keys import Names


def checks_schedule(policy: Policy, cron: str) -> dg.ScheduleDefinition:
    """The schedule of a policy, ``checks_<policy>``, in its time zone; it runs from the start.

    While a run of it is under way, or waits, no other is asked for.
    """
    job = checks_job_name(Names.of(policy))

    @dg.schedule(
        name=f"checks_{policy.name}",
        job_name=job,
        cron_schedule=cron,
        execution_timezone=policy.time_zone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Answers the checks of all tables of policy {policy.name}",
    )
    def checks(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        under_way = context.instance.get_runs(dg.RunsFilter(job_name=job, statuses=NOT_FINISHED_STATUSES), limit=1)
        return dg.SkipReason(f"run {under_way[0].run_id[:8]} is not over") if under_way else dg.RunRequest()

    return checks
