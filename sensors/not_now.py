"""Why no run starts although there is work: outside of the policy's hours or schedule, or the database is stopped."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from hive_replication.load.replica.state import ReplicaState
from hive_replication.policy import Policy
from hive_replication.policy.cron import last_time, next_time
from hive_replication.policy.hours import opens_at, told
from hive_replication.units import duration


def outside_hours(policy: Policy, now: float) -> str:
    """Why no run starts now, and when the next may; "" within the policy's hours. Times are seconds since the epoch."""
    opens = opens_at(now, policy.hours, policy.time_zone)
    if opens is None:
        return ""
    return f"outside of the hours {', '.join(policy.hours)}: resumes {told(opens, policy.time_zone)}, in {duration(opens - now)}"


def stopped(policy: Policy, found: Mapping[str, ReplicaState]) -> dict[str, str]:
    """Reasons for databases that an operator stopped, by source name: paused, undone or failed over."""
    return paused(found) | undone(policy, found) | failed_over(found)


def failed_over(found: Mapping[str, ReplicaState]) -> dict[str, str]:
    """Reasons for databases of which a failover ended this direction, by source name."""
    return {
        name: f"{name}: the target was {state.failed_over} by a failover; hive-repl failover status {name}"
        for name, state in found.items()
        if state.failed_over
    }


def paused(found: Mapping[str, ReplicaState]) -> dict[str, str]:
    """Reasons for paused databases, by source name."""
    return {name: f"{name}: paused {state.paused}; hive-repl resume {name}" for name, state in found.items() if state.paused}


def undone(policy: Policy, found: Mapping[str, ReplicaState]) -> dict[str, str]:
    """Reasons for databases that an operator undid, by source name."""
    return {
        name: f"{name}: undone to event {state.undone}; hive-repl undo {policy.target_of(name)} --release"
        for name, state in found.items()
        if state.undone is not None
    }


def due(policy: Policy, now: float) -> float:
    """The schedule's latest time up to ``now``: events before it are due. Both are seconds since the epoch."""
    return last_time(policy.schedule, now, policy.time_zone) if policy.schedule else math.inf


def next_due(policy: Policy, now: float) -> float:
    """The schedule's next time after ``now``; 0 without a schedule."""
    return next_time(policy.schedule, now, policy.time_zone) if policy.schedule else 0.0


def off_schedule(policy: Policy, databases: Iterable[str], now: float) -> str:
    """Why databases with work wait for the schedule; "" if there are none."""
    if not policy.schedule or not (waiting := ", ".join(databases)):
        return ""
    at = next_due(policy, now)
    schedule = f"waits for the schedule {policy.schedule}"
    return f"{waiting}: {schedule}: resumes {told(at, policy.time_zone)}, in {duration(at - now)}"
