"""The sensor on drift, that is writes that leave no event: scans one table after another and requests repairs.

Dagster kills a tick that exceeds ``DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS`` and discards its cursor. So the sensor records each
table in Dagster's storage before it scans it: if the tick is killed, the next one continues with the following table.
"""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace

import dagster as dg
from pydantic import TypeAdapter, ValidationError

from hive_replication.connect import Connection
from hive_replication.drift import DriftScan, TableDrift
from hive_replication.errors import Refused, ReplicationError, Unreachable
from hive_replication.load.replica.state import replica_state
from hive_replication.policy import Policy
from hive_replication.policy.checks import Drift
from repl_assets.catalog.dead_runs import has_ended
from repl_assets.catalog.keys import Names
from repl_assets.catalog.run_statuses import NOT_FINISHED_STATUSES
from repl_assets.jobs.repair import repair_job_name, repair_request
from repl_assets.typed import running_sensor
from resources.engine_log import in_tick
from sensors.connections import connect_for_tick, require_data
from sensors.not_now import outside_hours, stopped

_INTERVAL = 30
_MOST_PARTITIONS = 500  # in one run; the next round finds the rest


@dataclass(frozen=True, slots=True)
class Round:
    """The cursor: a round over all tables of a database.

    Args:
        begun: start of the round, seconds since the epoch.
        after: the last table scanned, "" at the start.
        done: whether all tables were scanned.
    """

    begun: float = 0.0
    after: str = ""
    done: bool = True


_ROUND = TypeAdapter(Round)


def drift_sensor(policy: Policy, drift: Drift, database: str) -> dg.SensorDefinition:
    """The sensor of a database: ``drift_<db>``."""
    names = Names.of(policy)

    @running_sensor(
        name=names.local(f"drift_{database}"),
        description=f"Repairs partitions of {database} that changed on the source without an event",
        job_name=repair_job_name(names, database),
        interval=min(_INTERVAL, drift.every),
        resources=frozenset({names.connection}),
    )
    def scan_for_drift(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        with in_tick(context.log):
            try:
                return tick(context, connect_for_tick(context, names), names, drift, database, time.time())
            except (Unreachable, Refused) as error:  # an outage has an alarm of its own
                return dg.SkipReason(f"nothing is scanned: {error}")

    return scan_for_drift


def tick(
    context: dg.SensorEvaluationContext, connection: Connection, names: Names, drift: Drift, database: str, now: float
) -> dg.SensorResult | dg.SkipReason:
    """One tick at a given time: continues the round until its time budget is spent; at least one table."""
    state = replica_state(connection.target.metastore.database(connection.target.policy.target_of(database)))
    waits = stopped(connection.target.policy, {database: state})
    if reason := outside_hours(connection.target.policy, now) or waits.get(database, ""):
        return dg.SkipReason(reason)
    at = _position(context, names, database)
    if at.done and now - at.begun < drift.every:
        return dg.SkipReason(f"the next round starts in {at.begun + drift.every - now:.0f} s")
    if _busy(context.instance, names, database):
        return dg.SkipReason("a repair is in progress")  # do not request the same repair twice
    require_data(connection)
    at, end = Round(now, done=False) if at.done else at, time.monotonic() + drift.budget
    scan = DriftScan(connection.source, connection.target, database, drift.settle, begun=at.begun)
    requests, looked = list[dg.RunRequest](), list[TableDrift]()
    scanned = 0
    for table in (name for name in scan.names() if name > at.after):
        at, scanned = replace(at, after=table), scanned + 1
        found = _scan_table(context, scan, table, names, at)
        looked += [found] if found is not None else []
        if found is not None and found.drifted:
            requests.append(_request(names, database, found, at))
        if time.monotonic() > end:
            break
    else:
        at = replace(at, done=True)
        scan.finish()
    for sentence in scan.told(looked):
        context.log.info("%s: %s", database, sentence)
    context.update_cursor(_ROUND.dump_json(at).decode())
    if not requests:
        return dg.SkipReason(f"{scanned} tables scanned, none has drifted")
    return dg.SensorResult(run_requests=requests)


def _position(context: dg.SensorEvaluationContext, names: Names, database: str) -> Round:
    """Where the last tick stopped, even if Dagster killed it."""
    key, at = _position_key(names, database), read_round(context.cursor)
    recorded = read_round(context.instance.daemon_cursor_storage.get_cursor_values({key}).get(key))
    if (recorded.begun, recorded.after) <= (at.begun, at.after):
        return at
    context.log.warning(
        "the scan of %s.%s exceeded the time limit of a tick and is skipped in this round: run hive-repl drift, or raise "
        "DAGSTER_SENSOR_GRPC_TIMEOUT_SECONDS",
        database,
        recorded.after,
    )
    return recorded


def _position_key(names: Names, database: str) -> str:
    return f"hive_replication/drift/{names.policy}/{database}"


def _scan_table(context: dg.SensorEvaluationContext, scan: DriftScan, table: str, names: Names, at: Round) -> TableDrift | None:
    """Scans one table. A table that cannot be read does not block the others."""
    cursors, key = context.instance.daemon_cursor_storage, _position_key(names, scan.database)
    cursors.set_cursor_values({key: _ROUND.dump_json(at).decode()})
    try:
        return scan.table(table)
    except Unreachable:
        cursors.set_cursor_values({key: ""})  # not the table's fault: the next tick scans it again
        raise
    except (ReplicationError, OSError) as error:
        context.log.warning("%s.%s cannot be scanned: %s", scan.database, table, error)
        return None


def read_round(text: str | None) -> Round:
    """The round of the last tick; a new round if the cursor is unreadable."""
    try:
        return _ROUND.validate_json(text or "")
    except ValidationError:
        return Round()


def _busy(instance: dg.DagsterInstance, names: Names, database: str) -> bool:
    """Whether a repair of the database is running or queued."""
    unfinished = dg.RunsFilter(job_name=repair_job_name(names, database), statuses=NOT_FINISHED_STATUSES)
    runs = [record.dagster_run for record in instance.get_run_records(unfinished)]
    return not all(has_ended(instance, run) for run in runs)


def _request(names: Names, database: str, found: TableDrift, at: Round) -> dg.RunRequest:
    """One run for a table. The run key holds the round, so that a failed repair is requested again in the next round."""
    drifted = found.drifted[:_MOST_PARTITIONS]
    what = hashlib.sha256(repr([(one.partition, one.digest) for one in drifted]).encode()).hexdigest()[:16]
    run_key = f"{names.policy}:drift:{database}.{found.table}:{what}:{at.begun:.0f}"
    return repair_request(names, database, found.table, (one.partition for one in drifted if one.partition), run_key=run_key)
