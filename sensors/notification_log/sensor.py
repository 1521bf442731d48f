"""The sensor on a source's notification log: one run for all databases with events (design: Dagster).

The decision follows from the target's applied ids and from the run records. The cursor only saves work: failed runs are in the
records, and what was applied is in the target.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import dagster as dg

from hive_replication.connect import Connection
from hive_replication.errors import BadRequest, ReplicationError, Unreachable
from hive_replication.load.records import last_asked
from hive_replication.load.replica.state import ReplicaState
from hive_replication.logs import reason
from hive_replication.plans.approval import Approvals, PlannedWindow
from hive_replication.policy import Policy
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import Names, Stage
from repl_assets.catalog.specs import Specs
from repl_assets.typed import running_sensor
from resources.engine_log import in_tick
from sensors.connections import connect_for_tick, require_dump_root
from sensors.not_now import due, next_due, off_schedule, outside_hours, stopped
from sensors.notification_log.approval import pending, with_approval, without_catch_ups
from sensors.notification_log.cursor import Cursor, Reading, read_cursor
from sensors.notification_log.decision import Replica, decide
from sensors.notification_log.idle import advance_idle, long_idle, to_be_read, with_work
from sensors.notification_log.listening import listen
from sensors.notification_log.log_scan import killed_loads, replicas, states, to_be_approved, with_gaps, with_log
from sensors.notification_log.operator_actions import Mended, OfHeldTables, observations, unobserved
from sensors.notification_log.run_history import RunHistory, run_history
from sensors.notification_log.run_requests import forget_old_windows, new_keys, run_request
from sensors.notification_log.runs import Decision, limited, without

DAY = 86_400.0
_KEPT_RECORDS = 200
_MOST_LISTENING = 40  # seconds


@dataclass(frozen=True)
class SensorSettings:
    """How the sensor runs.

    Args:
        interval: minimum seconds between the starts of ticks.
        listen: seconds for which a tick waits for something to do.
        event_ttl: seconds that the source keeps events (Hive's ``metastore.event.db.listener.timetolive``).
        max_runs: runs of the policy at a time.
    """

    interval: int = 4
    listen: float = 9.5
    event_ttl: float = 10 * DAY
    max_runs: int = 8

    def __post_init__(self) -> None:
        """Checks the settings.

        Raises:
            BadRequest: a tick would take longer than Dagster lets it, or no run would ever start.
        """
        if self.max_runs < 1:
            raise BadRequest(f"max_runs is {self.max_runs}: at least 1")
        if not 0 <= self.listen <= _MOST_LISTENING:
            raise BadRequest(f"listen_seconds is {self.listen:g}: at most {_MOST_LISTENING}, Dagster ends ticks after 60 s")


def notification_log_sensor(specs: Specs, databases: Sequence[CatalogDatabase], settings: SensorSettings) -> dg.SensorDefinition:
    """The sensor of a policy.

    Args:
        specs: of the policy.
        databases: its databases, with the tables that have assets.
        settings: how it runs.
    """
    names, policy = specs.names, specs.policy

    @running_sensor(
        name=names.local("notification_log"),
        description=f"Replicates the events in the notification log of {policy.source.metastore}",
        target=[names.database(db, stage) for db in sorted(policy.databases) for stage in _stages(policy)],
        interval=settings.interval,
        resources=frozenset({names.connection}),
    )
    def notification_log(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        with in_tick(context.log):
            try:
                connection = connect_for_tick(context, names)
                require_dump_root(connection)
                checks = OfHeldTables(context.instance, connection, specs, databases)
                return listen(lambda: tick(context, connection, names, settings, time.time(), checks.answer), settings.listen)
            except Unreachable as error:  # the check up_to_date fails for it, and an alarm begins
                return dg.SkipReason(f"nothing can be started: {error}")

    return notification_log


def _stages(policy: Policy) -> tuple[Stage, ...]:
    return ("dump", "plan", "load") if policy.approval else ("dump", "load")


def tick(
    context: dg.SensorEvaluationContext,
    connection: Connection,
    names: Names,
    settings: SensorSettings,
    now: float,
    mended: Mended = lambda _: None,
) -> dg.SensorResult | dg.SkipReason:
    """One tick at a given time; ``mended`` is told what operators did since the last one."""
    policy = connection.source.policy
    if reason := outside_hours(policy, now):
        return dg.SkipReason(reason)
    cursor, marks = read_cursor(context.cursor, policy), _marks(connection)
    asked = max(marks.values(), default=0.0)
    untouched = cursor.asked == asked
    if untouched and cursor.rests(now):
        return dg.SkipReason(off_schedule(policy, cursor.scheduled, now))
    current = connection.source.metastore.current_event_id()
    if untouched and cursor.ends_tick(current, now):
        return dg.SkipReason(f"nothing new: the source's log ends at event {current}")
    history = run_history(context.instance, names, policy)  # first: a run that ends after this still blocks its databases
    cursor = cursor.of_log(*connection.source.reach(cursor.event[0]))
    found = states(connection)
    current = connection.source.metastore.current_event_id()  # after the states: one that is ahead of it is of another log
    waiting = stopped(policy, found)
    by_hand = bool(waiting) or any(map(_is_undone, found.values()))
    found = {database: state for database, state in found.items() if database not in waiting}
    killed = killed_loads(connection, found, {*history.busy, *history.repaired})
    known = with_gaps(connection, replicas(connection.source, found, history, cursor, killed), found, cursor, current)
    seen, readings = with_log(connection, known, cursor, current, now)
    seen = to_be_approved(connection, seen, found, history.last_plan, current, now) if policy.approval else seen
    idle, unended = to_be_read(connection, long_idle(connection, seen, found, now, settings.event_ttl))
    seen = with_work(seen, unended)
    asking = without_catch_ups(seen) if policy.approval else seen
    decision = decide(now, current, asking, policy.max_events, due(policy, now))
    if policy.approval:
        decision = _with_approval(policy, now, current, seen, decision, history)
    decision = limited(decision, {one.database: one.since for one in seen}, len({*history.busy.values()}), settings.max_runs)
    advance_idle(connection, idle, decision.databases | unended)
    why = [*waiting.values(), *decision.waiting, *filter(None, [off_schedule(policy, decision.scheduled, now)])]
    after = _cursor(cursor, policy, now, current, seen, decision, others=by_hand)
    after = replace(after, readings=readings, event=(current, *connection.source.reach(current)))
    observed = cursor.observed if untouched else _observe_by_hand(context.instance, connection, names, cursor, marks, now, mended)
    context.update_cursor(replace(after, asked=asked, observed=observed).to_json())
    if not decision.starts:
        return dg.SkipReason(_why_nothing(found, current, why))
    forget_old_windows(context.instance, names, policy)
    return dg.SensorResult(
        run_requests=[run_request(names, start, policy) for start in decision.starts],
        dynamic_partitions_requests=[names.windows.build_add_request(new_keys(context.instance, names, decision))],
        asset_events=list(_observations(names, seen, readings, decision, current, now)),
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
    rests_until = next_due(policy, now) if rests else 0.0
    return Cursor(before.policy, settled, now, scheduled=decision.scheduled, rests_until=rests_until, delayed=decision.delayed)


def _observe_by_hand(
    instance: dg.DagsterInstance,
    connection: Connection,
    names: Names,
    cursor: Cursor,
    marks: Mapping[str, float],
    now: float,
    mended: Mended,
) -> tuple[str, ...]:
    """Logs what operators did since the last tick; returns the ids of what Dagster has now."""
    new = unobserved(connection, marks, cursor.checked or now, cursor.asked, cursor.observed)
    mended(new)
    for database, record in new:
        for observation in observations(names, database, record):
            if instance.has_asset_key(observation.asset_key):  # a table of a large database has no asset of its own
                instance.report_runless_asset_event(observation)
    return (*cursor.observed, *(record.id for _, record in new))[-_KEPT_RECORDS:]


def _marks(connection: Connection) -> Mapping[str, float]:
    """When an operator last changed each replica by hand, as far as the dump root answers."""
    try:
        return last_asked(connection.target.policy, connection.store)
    except (ReplicationError, OSError):
        return {}  # the run says why


def _is_undone(state: ReplicaState) -> bool:
    """Whether tables of a replica were undone by request."""
    return any(map(state.waits, state.held))


def _with_approval(
    policy: Policy, now: float, current: int, seen: Sequence[Replica], decision: Decision, history: RunHistory
) -> Decision:
    databases = decision.databases
    if not databases:
        return decision
    approvals, planned, unread = Approvals.of(policy), dict[str, PlannedWindow | None](), dict[str, str]()
    for one in seen:
        if one.database not in databases:
            continue
        try:
            planned[one.database] = pending(one, current, approvals.waiting(policy.target_of(one.database)))
        except Unreachable:
            raise
        except (ReplicationError, ValueError) as error:  # of this database only
            unread[one.database] = f"its plans below {policy.dump_root}/.plans cannot be read: {reason(error)}"
    decision = without(decision, unread)
    return with_approval(now, decision, planned, history.last_plan, {one.database: one.applied for one in seen})


def _why_nothing(found: Mapping[str, ReplicaState], current: int, waiting: Sequence[str]) -> str:
    if not found and not waiting:
        return "no database of the policy exists at the source"
    return "; ".join(waiting) or f"no events for this policy up to event {current}"


def _observations(
    names: Names, seen: Sequence[Replica], readings: Mapping[str, Reading], decision: Decision, current: int, now: float
) -> Iterator[dg.AssetObservation]:
    """How far databases are behind for which a run starts."""
    starting = decision.databases
    for replica in seen:
        reading = readings.get(replica.database)
        if replica.database in starting and reading and reading.first:
            evid, committed = reading.first
            yield dg.AssetObservation(
                names.database(replica.database, "source"),
                metadata={
                    "source event id": current,
                    "applied event id": replica.applied,
                    "events waiting": max(0, current - evid + 1),
                    "behind (s)": dg.MetadataValue.float(max(0.0, now - committed)),
                },
            )
