"""Why nothing is to be started though there is work: it is not the hour, or somebody paused the database."""

from __future__ import annotations

from collections.abc import Mapping

from hive_replication.hours import opens_at, told
from hive_replication.load.state import ReplicaState
from hive_replication.policy import Policy
from hive_replication.units import duration


def outside_hours(policy: Policy, now: float) -> str:
    """Why nothing begins now, and when it goes on; "" within the policy's hours (seconds since the epoch)."""
    opens = opens_at(now, policy.hours, policy.time_zone)
    if opens is None:
        return ""
    return f"outside of the hours {', '.join(policy.hours)}: goes on {told(opens, policy.time_zone)}, in {duration(opens - now)}"


def paused(found: Mapping[str, ReplicaState]) -> dict[str, str]:
    """Why databases are left alone that somebody paused, by source name."""
    return {name: f"{name}: paused {state.paused}; hive-repl resume {name}" for name, state in found.items() if state.paused}
