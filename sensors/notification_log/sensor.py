"""The sensor on a source's notification log: one run for all databases with events (design: Dagster).

The decision follows from the target's applied ids and from the run records. The cursor only saves work: failed runs are in the
records, and what was applied is in the target.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import dagster as dg

from hive_replication.connect import Connection
from hive_replication.errors import BadRequest, Refused, ReplicationError, Unreachable
from hive_replication.load.records import last_asked
from hive_replication.load.replica.advance_idle import advance
from hive_replication.load.replica.state import ReplicaState
from hive_replication.plans.approval import Approvals
from hive_replication.policy import Policy
from repl_assets.catalog.keys import ATTEMPT_TAG, DATABASE_TAG, KIND_TAG, POLICY_TAG, TAG_LENGTH, Names, Stage
from repl_assets.checks.load_checks import window_checks
from repl_assets.dagster_private import PRIORITY_TAG, delete_dynamic_partitions
from repl_assets.steps.engine import connection_resource
from repl_assets.typed import running_sensor
from resources.engine_log import in_tick
from sensors.not_now import due, next_due, off_schedule, outside_hours, stopped
from sensors.notification_log.approval import needed, pending, with_approval
from sensors.notification_log.cursor import Cursor, read_cursor
from sensors.notification_log.decision import Decision, Kind, Replica, Start, decide
from sensors.notification_log.listening import listen
from sensors.notification_log.log_scan import LogScan, idle, read_log, replicas, states, with_gaps, with_since
from sensors.notification_log.operator_actions import observations, unobserved
from sensors.notification_log.run_history import RunHistory, run_history

DAY = 86_400.0
_KEPT_WINDOWS = 2_000
_PRUNED_A_TICK = 50
_KEPT_RECORDS = 200
_MOST_LISTENING = 40  # seconds


@dataclass(frozen=True)
class SensorSettings:
    """How the sensor runs.

    Args:
        interval: minimum seconds between the starts of ticks.
        listen: seconds for which a tick waits for something to do.
        event_ttl: seconds that the source keeps events (Hive's ``metastore.event.db.listener.timetolive``).
    """

    interval: int = 4
    listen: float = 9.5
    event_ttl: float = 10 * DAY

    def __post_init__(self) -> None:
        """Checks how long a tick takes.

        Raises:
            BadRequest: it would take longer than Dagster lets it.
        """
        if not 0 <= self.listen <= _MOST_LISTENING:
            raise BadRequest(f"listen_seconds is {self.listen:g}: at most {_MOST_LISTENING}, Dagster ends ticks after 60 s")


def notification_log_sensor(policy: Policy, settings: SensorSettings) -> dg.SensorDefinition:
    """The sensor of a policy."""
    names = Names.of(policy)

    @running_sensor(
        name=names.local("notification_log"),
        description=f"Replicates the events in the notification log of {policy.source.metastore}",
        target=[names.database(db, stage) for db in sorted(policy.databases) for stage in _stages(policy)],
        interval=settings.interval,
        resources=frozenset({names.connection}),
    )
    def notification_log(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        resource = connection_resource(context, names)
        with in_tick(context.log):
            try:
                connection = resource.connect()
                return listen(lambda: tick(context, connection, names, settings, time.time()), settings.listen)
            except Unreachable as error:  # the check up_to_date fails for it, and an alarm begins
                return dg.SkipReason(f"nothing can be started: {error}")

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
    cursor, asked = read_cursor(context.cursor, policy), _asked(connection)
    untouched = cursor.asked == asked
    if untouched and cursor.rests(now):
        return dg.SkipReason(off_schedule(policy, cursor.scheduled, now))
    current = connection.source.metastore.current_event_id()
    if untouched and cursor.ends_tick(current, now):
        return dg.SkipReason(f"nothing new: the source's log ends at event {current}")
    found = states(connection)
    waiting = stopped(policy, found)
    by_hand = bool(waiting) or any(map(_is_undone, found.values()))
    found = {database: state for database, state in found.items() if database not in waiting}
    history = run_history(context.instance, names, policy.databases)
    known = with_gaps(connection, replicas(policy, found, history, cursor), found, current)
    seen, scan = read_log(connection, known, current)
    seen = with_since(seen, scan, cursor, now)
    decision = decide(now, current, seen, policy.max_events, due(policy, now))
    if policy.approval:
        decision = _with_approval(policy, now, current, seen, decision, history)
    _advance_idle(connection, settings, now, seen, found, decision)
    why = [*waiting.values(), *decision.waiting, *filter(None, [off_schedule(policy, decision.scheduled, now)])]
    after = _cursor(cursor, policy, now, current, seen, decision, others=by_hand)
    observed = cursor.observed if untouched else _observe_by_hand(context.instance, connection, names, cursor, now)
    context.update_cursor(replace(after, asked=asked, observed=observed).to_json())
    if not decision.starts:
        return dg.SkipReason(_why_nothing(found, current, why))
    _forget_old_windows(context.instance, names)
    return dg.SensorResult(
        run_requests=[_request(names, start, policy) for start in decision.starts],
        dynamic_partitions_requests=[names.windows.build_add_request(_new_keys(context.instance, names, decision))],
        asset_events=list(_observations(names, seen, scan, current, now)),
    )


def _cursor(
    before: Cursor, policy: Policy, now: float, current: int, seen: Sequence[Replica], decision: Decision, *, others: bool
) -> Cursor:
    """The cursor for the next tick.

    Events are in order of time: if the first event of a database waits for the schedule, no later one can be due. What an
    operator stopped (``others``) continues at his word, which no event of the source tells: then each tick looks at the target.
    """
    settled = current if decision.settled and not others else None
    events = any(one.first_event is not None for one in seen if one.database in decision.scheduled)
    rests = events and not others and not decision.starts and not decision.waiting
    return Cursor(before.policy, settled, now, dict(idle(seen)), decision.scheduled, next_due(policy, now) if rests else 0.0)


def _observe_by_hand(
    instance: dg.DagsterInstance, connection: Connection, names: Names, cursor: Cursor, now: float
) -> tuple[str, ...]:
    """Logs what operators did since the last tick; returns the ids of what Dagster has now."""
    new = unobserved(connection, cursor.checked or now, cursor.observed)
    for database, record in new:
        for observation in observations(names, database, record):
            if instance.has_asset_key(observation.asset_key):  # a table of a large database has no asset of its own
                instance.report_runless_asset_event(observation)
    return (*cursor.observed, *(record.id for _, record in new))[-_KEPT_RECORDS:]


def _asked(connection: Connection) -> float:
    """When an operator last changed a replica by hand, as far as the dump root answers."""
    try:
        return last_asked(connection.store.storage, connection.store.root, connection.target.policy.databases.values())
    except (ReplicationError, OSError):
        return 0.0  # the run says why


def _is_undone(state: ReplicaState) -> bool:
    """Whether tables of a replica were undone by request."""
    return any(map(state.waits, state.held))


def _with_approval(
    policy: Policy, now: float, current: int, seen: Sequence[Replica], decision: Decision, history: RunHistory
) -> Decision:
    databases = needed(decision)
    if not databases:
        return decision
    approvals = Approvals.of(policy)
    planned = {
        one.database: pending(one, current, approvals.waiting(policy.target_of(one.database)))
        for one in seen
        if one.database in databases
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
        | {DATABASE_TAG: ", ".join(start.databases)[:TAG_LENGTH]}
        | ({PRIORITY_TAG: priority} if priority else {}),
    )


def _new_keys(instance: dg.DagsterInstance, names: Names, decision: Decision) -> list[str]:
    keys = dict.fromkeys(str(start.window) for start in decision.starts)
    return [key for key in keys if not instance.has_dynamic_partition(str(names.windows.name), key)]


def _observations(
    names: Names, seen: Sequence[Replica], scan: LogScan, current: int, now: float
) -> Iterator[dg.AssetObservation]:
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
    """Raises the applied id of idle databases without a run, before the source purges the event that it names."""
    policy = connection.source.policy
    starting = {database for start in decision.starts for database in start.databases}
    by_name = {one.database: one for one in seen}
    for name, (applied, scanned) in idle(seen):
        state, replica = found[name], by_name[name]
        free = name not in starting and not replica.busy and not replica.unfinished(scanned)
        old = now - state.applied_time > settings.event_ttl / 4 or scanned - applied >= policy.max_events
        if free and old:
            with suppress(Refused):  # a load is running: the database is not idle
                advance(connection.target, policy.target_of(name), applied, scanned, *connection.source.reach(scanned))


def _forget_old_windows(instance: dg.DagsterInstance, names: Names) -> None:
    """Deletes the oldest windows, a few a tick: each run adds one, and Dagster supports at most 100,000 partitions."""
    name = str(names.windows.name)
    keys = instance.get_dynamic_partitions(name)
    delete_dynamic_partitions(instance, name, keys[: max(0, min(len(keys) - _KEPT_WINDOWS, _PRUNED_A_TICK))])
