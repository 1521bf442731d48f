"""Why nothing is to be started though there is work: it is not the time or hour, or somebody paused the database."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from hive_replication.cron import last_time, next_time
from hive_replication.hours import opens_at, told
from hive_replication.load.state import ReplicaState
from hive_replication.policy import Policy
from hive_replication.units import duration
from sensors.cursor import Cursor
from sensors.decision import Replica
from sensors.look import Scan


def outside_hours(policy: Policy, now: float) -> str:
    """Why nothing begins now, and when it goes on; "" within the policy's hours (seconds since the epoch)."""
    opens = opens_at(now, policy.hours, policy.time_zone)
    if opens is None:
        return ""
    return f"outside of the hours {', '.join(policy.hours)}: goes on {told(opens, policy.time_zone)}, in {duration(opens - now)}"


def paused(found: Mapping[str, ReplicaState]) -> dict[str, str]:
    """Why databases are left alone that somebody paused, by source name."""
    return {name: f"{name}: paused {state.paused}; hive-repl resume {name}" for name, state in found.items() if state.paused}


def due(policy: Policy, now: float) -> float:
    """The schedule's latest time up to ``now``, which everything is due at that came before; both seconds since the epoch."""
    return last_time(policy.schedule, now, policy.time_zone) if policy.schedule else math.inf


def next_due(policy: Policy, now: float) -> float:
    """The schedule's next time after ``now``; 0 without a schedule."""
    return next_time(policy.schedule, now, policy.time_zone) if policy.schedule else 0.0


def off_schedule(policy: Policy, databases: Iterable[str], now: float) -> str:
    """Why databases wait that have something to bring; "" if there are none."""
    if not policy.schedule or not (waiting := ", ".join(databases)):
        return ""
    at = next_due(policy, now)
    schedule = f"waits for the schedule {policy.schedule}"
    return f"{waiting}: {schedule}: goes on {told(at, policy.time_zone)}, in {duration(at - now)}"


def with_since(found: Sequence[Replica], scan: Scan, cursor: Cursor, now: float) -> list[Replica]:
    """Since when replicas have to move: since their first event's commit; where nothing tells one, since a tick found it so.

    What came while the sensor rested came before the time that it rested until.
    """
    noticed = min(now, (cursor.rests_until or math.inf) - 1)
    return [
        replace(one, since=min(scan.first.get(one.database, (0, noticed))[1], cursor.scheduled.get(one.database, noticed)))
        for one in found
    ]
