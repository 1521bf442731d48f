"""The sensor on a source's notification log: one poll a tick, one run for all databases that have to move (design: Dagster).

What to run follows from where the target stands and from the run records. The cursor only saves work: a failed run is seen in
the records, and what was applied is seen at the target.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

import dagster as dg
from dagster._core.storage.tags import PRIORITY_TAG

from hive_replication.connect import Connection
from hive_replication.errors import Refused
from hive_replication.load.advance import advance
from hive_replication.load.state import ReplicaState
from hive_replication.plans.approval import Approvals
from hive_replication.policy import Policy
from repl_assets.databases import window_checks
from repl_assets.keys import ATTEMPT_TAG, KIND_TAG, POLICY_TAG, Names, Stage
from resources.connection import ReplicationConnection
from sensors.approval import needed, pending, with_approval
from sensors.cursor import Cursor, read_cursor
from sensors.decision import Decision, Kind, Replica, Start, decide
from sensors.held_back import due, next_due, off_schedule, outside_hours, paused, with_since
from sensors.look import Scan, idle, read_log, replicas, states, with_gaps
from sensors.runs import RunHistory, run_history

DAY = 86_400.0
_KEPT_WINDOWS = 2_000
_PRUNED_A_TICK = 50


@dataclass(frozen=True, slots=True)
class SensorSettings:
    """How the sensor runs.

    Args:
        interval: least seconds between ticks.
        event_ttl: seconds that the source keeps events (Hive's ``metastore.event.db.listener.timetolive``).
    """

    interval: int = 10
    event_ttl: float = 10 * DAY


def notification_log_sensor(policy: Policy, settings: SensorSettings) -> dg.SensorDefinition:
    """The sensor of a policy; it runs from the start."""
    names = Names.of(policy)

    @dg.sensor(
        name=names.local("notification_log"),
        description=f"Replicates what the notification log of {policy.source.metastore} tells",
        target=[names.database(db, stage) for db in sorted(policy.databases) for stage in _stages(policy)],
        minimum_interval_seconds=settings.interval,
        default_status=dg.DefaultSensorStatus.RUNNING,
        required_resource_keys={names.connection},
    )
    def notification_log(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        resource: ReplicationConnection = getattr(context.resources, names.connection)
        return tick(context, resource.connect(), names, settings, time.time())

    return notification_log


def _stages(policy: Policy) -> tuple[Stage, ...]:
    return ("dump", "plan", "load") if policy.approval else ("dump", "load")


def tick(
    context: dg.SensorEvaluationContext, connection: Connection, names: Names, settings: SensorSettings, now: float
) -> dg.SensorResult | dg.SkipReason:
    """One tick at a given time."""
    policy = connection.source.policy
    if reason := outside_hours(policy, now):
        return dg.SkipReason(reason)
    cursor = read_cursor(context.cursor, policy)
    if cursor.rests(now):
        return dg.SkipReason(off_schedule(policy, cursor.scheduled, now))
    current = connection.source.metastore.current_event_id()
    if cursor.ends_tick(current, now):
        return dg.SkipReason(f"nothing new: the source's log ends at event {current}")
    found = states(connection)
    waiting = paused(found)
    found = {database: state for database, state in found.items() if database not in waiting}
    history = run_history(context.instance, names, policy.databases)
    asked = with_gaps(connection, replicas(policy, found, history, cursor), found, current)
    seen, scan = read_log(connection, asked, current)
    seen = with_since(seen, scan, cursor, now)
    decision = decide(now, current, seen, policy.max_events, due(policy, now))
    if policy.approval:
        decision = _with_approval(policy, now, current, seen, decision, history)
    _advance_idle(connection, settings, now, seen, found, decision)
    why = [*waiting.values(), *decision.waiting, *filter(None, [off_schedule(policy, decision.scheduled, now)])]
    left = _cursor(cursor, policy, now, current, seen, decision, others=bool(waiting))
    if not decision.starts:
        context.update_cursor(left.to_json())
        return dg.SkipReason(_why_nothing(found, current, why))
    _forget_old_windows(context.instance, names)
    return dg.SensorResult(
        run_requests=[_request(names, start, policy) for start in decision.starts],
        dynamic_partitions_requests=[names.windows.build_add_request(_new_keys(context.instance, names, decision))],
        asset_events=list(_observations(names, seen, scan, current, now)),
        cursor=left.to_json(),
    )


def _cursor(
    before: Cursor, policy: Policy, now: float, current: int, seen: Sequence[Replica], decision: Decision, *, others: bool
) -> Cursor:
    """What this tick leaves.

    Events of a later time are followed by still later ones only: where one waits for the schedule, nothing else can be due.
    """
    settled = current if decision.settled and not others else None
    events = any(one.first_event is not None for one in seen if one.database in decision.scheduled)
    rests = events and not others and not decision.starts and not decision.waiting
    return Cursor(before.policy, settled, now, dict(idle(seen)), decision.scheduled, next_due(policy, now) if rests else 0.0)


def _with_approval(
    policy: Policy, now: float, current: int, seen: Sequence[Replica], decision: Decision, history: RunHistory
) -> Decision:
    asking = needed(decision)
    if not asking:
        return decision
    approvals = Approvals.of(policy)
    planned = {
        one.database: pending(one, current, approvals.waiting(policy.target_of(one.database)))
        for one in seen
        if one.database in asking
    }
    return with_approval(now, decision, planned, history.last_plan)


def _why_nothing(found: dict[str, ReplicaState], current: int, waiting: Sequence[str]) -> str:
    if not found and not waiting:
        return "no database of the policy exists at the source"
    return "; ".join(waiting) or f"no events for this policy up to event {current}"


def _request(names: Names, start: Start, policy: Policy) -> dg.RunRequest:
    stages: dict[Kind, tuple[Stage, ...]] = {
        "plan": ("dump", "plan"),
        "window": ("load",) if policy.approval else ("dump", "load"),
        "catch-up": ("dump", "load"),
    }
    loads = [names.database(db, "load") for db in start.databases if "load" in stages[start.kind]]
    window = str(start.window)
    priority = str(start.priority) if start.priority else ""
    return dg.RunRequest(
        run_key=":".join(filter(None, (names.policy, start.kind, window, f"{start.attempt}:{start.after[:8]}", priority))),
        partition_key=window,
        asset_selection=[names.database(db, stage) for db in start.databases for stage in stages[start.kind]],
        asset_check_keys=[key for load in loads for key in window_checks(policy.checks, load)],
        tags={POLICY_TAG: names.policy, KIND_TAG: start.kind, ATTEMPT_TAG: str(start.attempt)}
        | ({PRIORITY_TAG: priority} if priority else {}),
    )


def _new_keys(instance: dg.DagsterInstance, names: Names, decision: Decision) -> list[str]:
    keys = dict.fromkeys(str(start.window) for start in decision.starts)
    return [key for key in keys if not instance.has_dynamic_partition(str(names.windows.name), key)]


def _observations(names: Names, seen: Sequence[Replica], scan: Scan, current: int, now: float) -> Iterator[dg.AssetObservation]:
    for replica in seen:
        oldest = scan.first.get(replica.database)
        if oldest is not None:
            yield dg.AssetObservation(
                names.database(replica.database, "source"),
                metadata={
                    "source event id": current,
                    "applied event id": replica.applied,
                    "events waiting": max(0, current - oldest[0] + 1),
                    "behind (s)": dg.MetadataValue.float(max(0.0, now - oldest[1])),
                },
            )


def _advance_idle(
    connection: Connection,
    settings: SensorSettings,
    now: float,
    seen: Sequence[Replica],
    found: dict[str, ReplicaState],
    decision: Decision,
) -> None:
    """Raises the applied id of databases without events, without a run, before the log no longer reaches back to it."""
    policy = connection.source.policy
    moving = {database for start in decision.starts for database in start.databases}
    for name, (applied, scanned) in idle(seen):
        state = found[name]
        free = name not in moving and not any(r.busy or r.unfinished(scanned) for r in seen if r.database == name)
        old = now - state.applied_time > settings.event_ttl / 4 or scanned - applied >= policy.max_events
        if free and old:
            with suppress(Refused):  # a load runs: it is not idle
                advance(connection.target, policy.target_of(name), applied, scanned, *connection.source.reach(scanned))


def _forget_old_windows(instance: dg.DagsterInstance, names: Names) -> None:
    """Deletes the oldest windows, a few a tick: they are one for each run, and Dagster wants less than 100,000 partitions."""
    name = str(names.windows.name)
    keys = instance.get_dynamic_partitions(name)
    for key in keys[: max(0, min(len(keys) - _KEPT_WINDOWS, _PRUNED_A_TICK))]:
        instance.delete_dynamic_partition(name, key)
