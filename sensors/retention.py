"""The schedule of the job that frees space (see ``repl_assets.retention``)."""

from __future__ import annotations

import dagster as dg

from hive_replication.policy import Policy
from repl_assets.keys import Names
from repl_assets.retention import retention_job_name


def retention_schedule(policy: Policy, at: str) -> dg.ScheduleDefinition:
    """The schedule of a policy, ``retention_<policy>``, once a day; it runs from the start.

    Args:
        policy: the policy.
        at: time of day in the policy's time zone, e.g. ``03:00``.
    """
    names = Names.of(policy)
    hour, minute = map(int, at.split(":"))
    return dg.ScheduleDefinition(
        name=f"retention_{policy.name}",
        job_name=retention_job_name(names),
        cron_schedule=f"{minute} {hour} * * *",
        execution_timezone=policy.time_zone,
        default_status=dg.DefaultScheduleStatus.RUNNING,
        description=f"Frees space of the replicas of policy {policy.name} and forgets its old runs",
    )
