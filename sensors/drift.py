"""The sensor on writes that leave no event: looks at tables in turn, and has those repaired that have drifted."""

from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, replace

import dagster as dg
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES
from pydantic import TypeAdapter, ValidationError

from hive_replication.connect import Connection
from hive_replication.drift import DriftScan, TableDrift
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.load.state import replica_state
from hive_replication.policy import Drift, Policy
from repl_assets.keys import DATABASE_TAG, POLICY_TAG, Names
from repl_assets.repairs import repair_job_name, repair_op_name
from repl_assets.worker import PROCESS_TAG, is_gone
from resources.connection import ReplicationConnection
from sensors.held_back import outside_hours, paused

_INTERVAL = 30
_MOST_PARTITIONS = 500  # of one run; the next round finds the others


@dataclass(frozen=True, slots=True)
class Round:
    """The cursor: a round over all tables of a database.

    Args:
        begun: when, seconds since the epoch.
        after: table that was looked at last, "" at the beginning.
        done: whether all were.
    """

    begun: float = 0.0
    after: str = ""
    done: bool = True


_ROUND = TypeAdapter(Round)


def drift_sensor(policy: Policy, drift: Drift, database: str) -> dg.SensorDefinition:
    """The sensor of a database: ``drift_<db>``. It runs from the start."""
    names = Names.of(policy)

    @dg.sensor(
        name=names.local(f"drift_{database}"),
        description=f"Repairs what changed in {database} on the source without an event",
        job_name=repair_job_name(names, database),
        minimum_interval_seconds=min(_INTERVAL, drift.every),
        default_status=dg.DefaultSensorStatus.RUNNING,
        required_resource_keys={names.connection},
    )
    def look_for_drift(context: dg.SensorEvaluationContext) -> dg.SensorResult | dg.SkipReason:
        resource: ReplicationConnection = getattr(context.resources, names.connection)
        return tick(context, resource.connect(), names, drift, database, time.time())

    return look_for_drift


def tick(
    context: dg.SensorEvaluationContext, connection: Connection, names: Names, drift: Drift, database: str, now: float
) -> dg.SensorResult | dg.SkipReason:
    """One tick at a given time: goes on with the round, as long as its budget lasts but one table at least."""
    state = replica_state(connection.target.metastore.database(connection.target.policy.target_of(database)))
    if reason := outside_hours(connection.target.policy, now) or paused({database: state}).get(database, ""):
        return dg.SkipReason(reason)
    at = read_round(context.cursor)
    if at.done and now - at.begun < drift.every:
        return dg.SkipReason(f"the next round begins in {at.begun + drift.every - now:.0f} s")
    if _busy(context.instance, names, database):
        return dg.SkipReason("a repair is under way")  # what it changes need not be asked for again
    scan = DriftScan(connection.source, connection.target, database, drift.settle)
    at, end = Round(now, done=False) if at.done else at, time.monotonic() + drift.budget
    requests: list[dg.RunRequest] = []
    looked = 0
    for table in (name for name in scan.names() if name > at.after):
        found = _look(context, scan, table)
        at, looked = replace(at, after=table), looked + 1
        if found is not None and found.drifted:
            requests.append(_request(names, database, found, at))
        if time.monotonic() > end:
            break
    else:
        at = replace(at, done=True)
    cursor = _ROUND.dump_json(at).decode()
    context.update_cursor(cursor)
    if not requests:
        return dg.SkipReason(f"{looked} tables looked at, none has drifted")
    return dg.SensorResult(run_requests=requests, cursor=cursor)


def _look(context: dg.SensorEvaluationContext, scan: DriftScan, table: str) -> TableDrift | None:
    """Looks at one table; one that cannot be looked at does not keep the others from it."""
    try:
        return scan.table(table)
    except Unreachable:
        raise
    except (ReplicationError, OSError) as error:
        context.log.warning("%s.%s cannot be looked at: %s", scan.database, table, error)
        return None


def read_round(text: str | None) -> Round:
    """The round of the last tick; a new one is due where it is unreadable."""
    try:
        return _ROUND.validate_json(text or "")
    except ValidationError:
        return Round()


def _busy(instance: dg.DagsterInstance, names: Names, database: str) -> bool:
    """Whether a repair of the database is under way or in the queue."""
    wanted = dg.RunsFilter(job_name=repair_job_name(names, database), statuses=NOT_FINISHED_STATUSES)
    runs = [record.dagster_run for record in instance.get_run_records(wanted)]
    return any(not is_gone(run.tags.get(PROCESS_TAG, "")) for run in runs)


def _request(names: Names, database: str, found: TableDrift, at: Round) -> dg.RunRequest:
    """One run for a table. Its key has what was found and the round: a repair that failed is asked for again in the next."""
    drifted = found.drifted[:_MOST_PARTITIONS]
    what = hashlib.sha256(repr([(one.partition, one.digest) for one in drifted]).encode()).hexdigest()[:16]
    config = {"table": found.table, "partitions": [one.partition for one in drifted if one.partition]}
    return dg.RunRequest(
        run_key=f"{names.policy}:drift:{database}.{found.table}:{what}:{at.begun:.0f}",
        run_config={"ops": {repair_op_name(names, database): {"config": config}}},
        tags={POLICY_TAG: names.policy, DATABASE_TAG: database},
    )
