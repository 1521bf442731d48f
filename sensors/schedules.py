"""Schedules of a policy: the checks of all tables, the comparison of all objects, and retention."""

from __future__ import annotations

import dagster as dg

from hive_replication.policy import Policy
from repl_assets.catalog.dead_runs import has_ended, report_dead
from repl_assets.catalog.keys import POLICY_TAG, Names
from repl_assets.catalog.run_statuses import NOT_FINISHED_STATUSES
from repl_assets.checks.checks_job import checks_job_name
from repl_assets.checks.same_objects import same_objects_job_name
from repl_assets.jobs.retention import retention_job_name
from repl_assets.typed import running_schedule


def checks_schedule(policy: Policy, cron: str) -> dg.ScheduleDefinition:
    """Starts the job that runs the checks of all tables: ``checks_<policy>``, in the policy's time zone."""
    job = checks_job_name(Names.of(policy))
    return _one_at_a_time(policy, "checks", job, cron, f"Runs the checks of all tables of policy {policy.name}")


def same_objects_schedule(policy: Policy, cron: str) -> dg.ScheduleDefinition:
    """Starts the job that compares all objects of both sides: ``same_objects_<policy>``, in the policy's time zone."""
    job = same_objects_job_name(Names.of(policy))
    return _one_at_a_time(policy, "same_objects", job, cron, f"Compares what source and target of policy {policy.name} hold")


def _one_at_a_time(policy: Policy, name: str, job: str, cron: str, description: str) -> dg.ScheduleDefinition:
    """A schedule whose tick is skipped while a run of the job is queued or running."""

    @running_schedule(name=f"{name}_{policy.name}", job_name=job, cron=cron, time_zone=policy.time_zone, description=description)
    def start(context: dg.ScheduleEvaluationContext) -> dg.RunRequest | dg.SkipReason:
        unfinished = dg.RunsFilter(job_name=job, tags={POLICY_TAG: policy.name}, statuses=NOT_FINISHED_STATUSES)
        for run in context.instance.get_runs(unfinished):
            if not has_ended(context.instance, run):
                return dg.SkipReason(f"run {run.run_id[:8]} has not finished")
            report_dead(context.instance, run)
        return dg.RunRequest()

    return start


def retention_schedule(policy: Policy, at: str) -> dg.ScheduleDefinition:
    """Starts the job that frees space (``repl_assets.jobs.retention``) once a day: ``retention_<policy>``.

    Args:
        policy: the policy.
        at: time of day in the policy's time zone, e.g. ``03:00``.
    """
    job = retention_job_name(Names.of(policy))
    hour, minute = map(int, at.split(":"))
    description = f"Deletes old data of the replicas of policy {policy.name} and its old runs in Dagster"
    return _one_at_a_time(policy, "retention", job, f"{minute} {hour} * * *", description)
