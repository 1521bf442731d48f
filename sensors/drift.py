"""The sensor on drift, that is writes that leave no event: scans one table after another and requests repairs.

Dagster kills a tick that exceeds ``DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS`` and discards its cursor. So the sensor records each
table in Dagster's storage before it scans it: if the tick is killed, the next one continues with the following table. Tables
that killed a tick, that cannot be read, or have many partitions, are left to a run of the job ``find_drift_<db>``, one a round.
Where one still cannot be read then, the run fails, which is an alarm.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import dagster as dg
from pydantic import TypeAdapter, ValidationError

from hive_replication.connect import Connection
from hive_replication.drift import DriftScan, NoReplica, TableDrift, unread
from hive_replication.errors import Refused, ReplicationError, Unreachable
from hive_replication.load.replica.held_retries import wait_left
from hive_replication.load.replica.target import state_of
from hive_replication.policy import Policy
from hive_replication.policy.checks import Drift
from repl_assets.catalog.dead_runs import has_ended, report_dead
from repl_assets.catalog.keys import POLICY_TAG, Names
from repl_assets.catalog.run_statuses import NOT_FINISHED_STATUSES
from repl_assets.jobs.drift import find_drift_job_name, find_drift_request
from repl_assets.jobs.found_drift import FoundDrift, Handover
from repl_assets.jobs.repair import repair_job_name
from repl_assets.typed import running_sensor
from resources.engine_log import in_tick
from sensors.connections import connect_for_tick, require_data
from sensors.not_now import outside_hours, stopped
from sensors.turns import Turns

_INTERVAL = 30
_REMEMBERED = 7 * 86_400.0  # seconds until a table that killed a tick is scanned in one again


@dataclass(frozen=True, slots=True)
class Round:
    """The cursor: a round over all tables of a database.

    Args:
        begun: start of the round, seconds since the epoch.
        after: the last table scanned, "" at the start.
        done: whether all tables were scanned.
        large: tables of this round that are left to a run.
        slow: tables that killed a tick, in this round or before, and when that was.
        taken: run keys of the repairs that were requested of what runs found.
    """

    begun: float = 0.0
    after: str = ""
    done: bool = True
    large: tuple[str, ...] = ()
    slow: Mapping[str, float] = field(default_factory=dict[str, float])
    taken: tuple[str, ...] = ()

    def next(self, now: float) -> Round:
        """The round that begins after this one."""
        slow = {table: since for table, since in self.slow.items() if now - since < _REMEMBERED}
        return replace(self, begun=now, after="", done=False, large=(), slow=slow)


_ROUND = TypeAdapter(Round)
_TURNS = Turns()


def drift_sensor(policy: Policy, drift: Drift, database: str, jobs: Iterable[dg.JobDefinition]) -> dg.SensorDefinition:
    """The sensor of a database: ``drift_<db>``.

    Args:
        policy: the policy.
        drift: its settings.
        database: source name.
        jobs: of the database; those that find and repair drift are among them.
    """
    names = Names.of(policy)
    wanted = repair_job_name(names, database), find_drift_job_name(names, database)

    @running_sensor(
        name=names.local(f"drift_{database}"),
        description=f"Repairs partitions of {database} that changed on the source without an event",
        jobs=[job for job in jobs if job.name in wanted],
        interval=min(_INTERVAL, drift.every),
        resources=frozenset({names.connection}),
    )
    def scan_for_drift(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        with in_tick(context.log):
            try:
                connection = connect_for_tick(context, names)
            except (Unreachable, Refused) as error:  # an outage has an alarm of its own
                return dg.SkipReason(f"nothing is scanned: {error}")
            try:
                return tick(context, connection, names, drift, database, time.time())
            except ReplicationError as error:  # such as no replica before the first load, or a database that the source dropped
                return dg.SkipReason(f"nothing is scanned: {error}")

    return scan_for_drift


def tick(
    context: dg.SensorEvaluationContext, connection: Connection, names: Names, drift: Drift, database: str, now: float
) -> dg.SensorResult | dg.SkipReason:
    """One tick at a given time: requests repairs of what a run has found, or else continues the round for its time."""
    state = state_of(connection.target, database)
    waits = stopped(connection.target.policy, {database: state})
    if reason := outside_hours(connection.target.policy, now) or waits.get(database, ""):
        return dg.SkipReason(reason)
    at, handover = _position(context, names, database, now), Handover(context.instance, names, database)
    rest = wait_left(at.begun + drift.every, (drift.every, drift.every), now) if at.done else 0.0
    early = f"the next round starts in {rest:.0f} s" if rest else ""
    handed = handover.read()
    if early and not handed:
        return dg.SkipReason(early)
    if _busy(context.instance, names, repair_job_name(names, database)):
        return dg.SkipReason("a repair is in progress")  # do not request the same repair twice
    finding = _busy(context.instance, names, find_drift_job_name(names, database))
    requests, at = _handed([one for one in handed if not state.stands_with_undo(one.table)], at, names, database)
    if requests:  # at once: a tick that is killed while it scans loses its requests
        return _result(context, at, requests, "")
    if handed and not finding and handover.read() == handed:  # no run adds to it now
        handover.clear()
    if early:
        return dg.SkipReason(early)
    with _TURNS.turn(f"{names.policy}/{database}", (at.done, at.begun)) as first:
        if first:
            return dg.SkipReason(f"{first} is scanned first: one database of a code server at a time")
        require_data(connection)
        return _Scan(context, connection, names, drift, database, finding).go_on(at.next(now) if at.done else at)


def _handed(handed: Sequence[FoundDrift], at: Round, names: Names, database: str) -> tuple[list[dg.RunRequest], Round]:
    """Repairs of what runs have found, the next one of each table that is not requested yet, and the cursor that says so."""
    of_tables = [one.requests(names, database) for one in handed]
    taken = tuple(one.run_key for some in of_tables for one in some if one.run_key and one.run_key in at.taken)
    left = ([one for one in some if one.run_key not in taken] for some in of_tables)
    requests = [some[0] for some in left if some]
    return requests, replace(at, taken=(*taken, *(one.run_key or "" for one in requests)))


def _result(
    context: dg.SensorEvaluationContext, at: Round, requests: Sequence[dg.RunRequest], nothing: str
) -> dg.SensorResult | dg.SkipReason:
    context.update_cursor(_ROUND.dump_json(at).decode())
    return dg.SensorResult(run_requests=requests) if requests else dg.SkipReason(nothing)


@dataclass(frozen=True)
class _Scan:
    """A part of a round, in one tick.

    Args:
        context: of the tick.
        connection: both sides.
        names: of the policy.
        drift: its settings.
        database: source name.
        finding: whether a run looks for drift meanwhile.
    """

    context: dg.SensorEvaluationContext
    connection: Connection
    names: Names
    drift: Drift
    database: str
    finding: bool

    def go_on(self, at: Round) -> dg.SensorResult | dg.SkipReason:
        """Continues the round until the tick's time budget is spent; at least one table."""
        end = time.monotonic() + self.drift.budget
        scan = DriftScan(self.connection.source, self.connection.target, self.database, self.drift.settle, begun=at.begun)
        requests, looked, first = list[dg.RunRequest](), list[TableDrift](), at
        scanned = 0
        try:
            for table in (name for name in scan.names() if name > at.after):
                if table in at.slow or self._is_large(table):
                    at = replace(at, after=table, large=(*at.large, table))
                else:
                    self._record(_ROUND.dump_json(replace(at, after=table)).decode())
                    found, at, scanned = self._table(scan, table), replace(at, after=table), scanned + 1
                    looked += [found] if found is not None else []
                    if found is not None and found.is_unread:
                        self.context.log.warning("%s.%s: %s", self.database, table, found.waiting)
                        at = replace(at, large=(*at.large, table))
                    if found is not None and found.drifted:
                        requests += FoundDrift.of(found, at.begun).requests(self.names, self.database)
                if time.monotonic() > end:
                    break
            else:
                requests += self._end(scan, at)
                at = replace(at, done=True)
        except NoReplica:
            self._record("")
            raise
        except Unreachable as error:  # a metastore: no fault of the table that was scanned last
            self._record("")
            if at == first:
                raise
            self.context.log.warning("the next tick goes on after %s: %s", at.after, error)
        for sentence in scan.told(looked):
            self.context.log.info("%s: %s", self.database, sentence)
        left = f"; left to {find_drift_job_name(self.names, self.database)}: {len(at.large)}" if at.large else ""
        return _result(self.context, at, requests, f"{scanned} tables scanned, none has drifted{left}")

    def _end(self, scan: DriftScan, at: Round) -> list[dg.RunRequest]:
        """The run for what is left of the round, which then deletes its old snapshots too, since its tables need them."""
        all_in_ticks = "" if at.large else str(at.begun)
        self.context.instance.daemon_cursor_storage.set_cursor_values(
            {_all_in_ticks_key(self.names, self.database): all_in_ticks}
        )
        if at.large and not self.finding:
            return [find_drift_request(self.names, self.database, at.large, at.begun)]
        if at.large:
            self.context.log.info("%s: a run looks for drift already, no other one is requested", self.database)
        if not self.finding:
            scan.finish()
        return []

    def _record(self, position: str) -> None:
        """What the next tick has of this one if Dagster kills it; "" for nothing."""
        self.context.instance.daemon_cursor_storage.set_cursor_values({_position_key(self.names, self.database): position})

    def _is_large(self, table: str) -> bool:
        """Whether a table has more directories than are listed by threads."""
        try:
            number = self.connection.source.metastore.partition_count(self.database, table)
        except Unreachable:
            raise
        except ReplicationError:
            return False  # the scan says why, or finds it dropped
        return number > self.connection.source.policy.driver_max_directories

    def _table(self, scan: DriftScan, table: str) -> TableDrift | None:
        """Scans one table. A table that cannot be read does not block the others."""
        try:
            return scan.table(table)
        except (Unreachable, NoReplica):
            raise
        except (ReplicationError, OSError) as error:
            return unread(table, error)


def _position(context: dg.SensorEvaluationContext, names: Names, database: str, now: float) -> Round:
    """Where the last tick stopped, even if Dagster killed it: what it scanned then is left to a run."""
    key, at = _position_key(names, database), read_round(context.cursor)
    recorded = read_round(context.instance.daemon_cursor_storage.get_cursor_values({key}).get(key))
    if (recorded.begun, recorded.after) <= (at.begun, at.after):
        return at
    table, job = recorded.after, find_drift_job_name(names, database)
    context.log.warning("the scan of %s.%s exceeded the time limit of a tick: it is left to the job %s", database, table, job)
    slow = {**recorded.slow, table: now}
    return replace(recorded, large=(*recorded.large, table), slow=slow, taken=at.taken)


def _position_key(names: Names, database: str) -> str:
    return f"hive_replication/drift/{names.policy}/{database}"


def _all_in_ticks_key(names: Names, database: str) -> str:
    return f"hive_replication/drift/all_in_ticks/{names.policy}/{database}"


def all_in_ticks(instance: dg.DagsterInstance, names: Names, databases: Iterable[str]) -> dict[str, float]:
    """When the last finished round of a database began, if it left no table to a run; no entry if it did, or there was none.

    Args:
        instance: Dagster's.
        names: of the policy.
        databases: source names.
    """
    keys = {database: _all_in_ticks_key(names, database) for database in databases}
    begun = instance.daemon_cursor_storage.get_cursor_values({*keys.values()})
    return {database: float(begun[key]) for database, key in keys.items() if begun.get(key)}


def read_round(text: str | None) -> Round:
    """The round of the last tick; a new round if the cursor is unreadable."""
    try:
        return _ROUND.validate_json(text or "")
    except ValidationError:
        return Round()


def _busy(instance: dg.DagsterInstance, names: Names, job: str) -> bool:
    """Whether a run of our job is running or queued; one whose process has died is reported, so that it blocks no other."""
    unfinished = dg.RunsFilter(job_name=job, tags={POLICY_TAG: names.policy}, statuses=NOT_FINISHED_STATUSES)
    runs = [record.dagster_run for record in instance.get_run_records(unfinished)]
    dead = [run for run in runs if has_ended(instance, run)]
    for run in dead:
        report_dead(instance, run)
    return len(dead) < len(runs)
