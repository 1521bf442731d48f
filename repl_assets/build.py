"""Definitions of one policy, from the policy and the catalog of its source; no server is asked."""

from __future__ import annotations

import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg

from hive_replication.policy import Policy
from repl_assets.assets.databases import dump_asset, load_asset
from repl_assets.assets.plans import approval_assets
from repl_assets.assets.table_partitions import tables_asset
from repl_assets.assets.tables import dump_tables_asset, load_tables_asset
from repl_assets.catalog.catalog import Catalog, CatalogDatabase, with_overflow, without_cycles, without_twins
from repl_assets.catalog.keys import SAME_OBJECTS
from repl_assets.catalog.specs import Specs
from repl_assets.checks.check_definitions import database_checks
from repl_assets.checks.checks_job import checks_job, overflow_checks
from repl_assets.checks.load_checks import load_checks
from repl_assets.checks.same_objects import same_objects_job
from repl_assets.jobs.drift import find_drift_job
from repl_assets.jobs.failover import failover_job
from repl_assets.jobs.pause import pause_job, resume_job
from repl_assets.jobs.plan import plan_job
from repl_assets.jobs.rebuild import rebuild_job
from repl_assets.jobs.record_rest import record_job
from repl_assets.jobs.repair import repair_job
from repl_assets.jobs.retention import retention_job
from repl_assets.typed import with_resources
from resources.connection import ReplicationConnection
from resources.spark import Spark
from sensors.alarms.sensor import alarm_sensor
from sensors.check_repairs import failed_checks_sensor
from sensors.drift import drift_sensor
from sensors.lag import KeptReader, lag_sensor
from sensors.notification_log.sensor import SensorSettings, notification_log_sensor
from sensors.record_rest import recording_sensor
from sensors.schedules import checks_schedule, retention_schedule, same_objects_schedule

_LOG = logging.getLogger("dagster")

MOST_TABLES = 1_000  # Dagster's UI stays quick up to about three times as many assets


#: Of each database.
_JOBS = (repair_job, plan_job, rebuild_job, pause_job, resume_job, failover_job)


def policy_definitions(
    policy: Policy,
    catalog: Catalog | None = None,
    *,
    settings: SensorSettings | None = None,
    resources: Mapping[str, Any] | None = None,
    most_tables: int = MOST_TABLES,
    others: Collection[str] = (),
    problem: str = "",
) -> dg.Definitions:
    """The assets, checks, jobs and sensors of a policy.

    Args:
        policy: the policy.
        catalog: its tables; without it there are the database assets, which replicate everything all the same.
        settings: of the sensor on the notification log.
        resources: take the place of the policy's own, by key.
        most_tables: tables that get assets of their own; databases beyond it get one asset for all their tables.
        others: names of the project's other policies.
        problem: why this policy, or another one of its name, is not in use as its file has it now.
    """
    found = [(catalog or Catalog()).database(name) for name in sorted(policy.databases)]
    databases = without_cycles([without_twins(database) for database in with_overflow(found, most_tables)])
    specs = Specs(
        policy,
        nodes=frozenset((database.name, table.name) for database in databases for table in database.tables),
        overflow=frozenset(database.name for database in databases if database.overflow),
        others=frozenset(others),
    )
    parts = [_part(specs, database) for database in databases]
    databases = [part.database for part in parts]
    names = specs.names
    record = record_job(specs)
    needed = {names.spark: Spark.of(policy), names.connection: ReplicationConnection.of(policy), **(resources or {})}
    if policy.drift:
        parts = [replace(part, jobs=[with_resources(job, needed) for job in part.jobs]) for part in parts]
    drift = [drift_sensor(policy, policy.drift, part.database.name, part.jobs) for part in parts] if policy.drift else []
    failed = [failed_checks_sensor(specs, database) for database in databases] if policy.checks.repair else []
    reader = KeptReader()
    checks = [check for part in parts for check in part.checks]
    of_partitions = [check for part in parts for check in part.of_partitions]
    answered = [*_of_loads(specs, databases), *(key for check in checks for key in check.check_keys)]
    sensors = [
        recording_sensor(names, record.name),
        *drift,
        *failed,
        lag_sensor(specs, databases, reader),
        alarm_sensor(specs, reader, answered, [key for check in of_partitions for key in check.check_keys], problem),
    ]
    schedules = [retention_schedule(policy, policy.retention_at)] if policy.retention_at else []
    schedules += [checks_schedule(policy, policy.checks.schedule)] if policy.checks.schedule else []
    witness = policy.witness.schedule if SAME_OBJECTS in policy.checks.run else None
    schedules += [same_objects_schedule(policy, witness)] if witness else []
    return dg.Definitions(
        assets=[specs.status(), *(asset for part in parts for asset in part.assets)],
        asset_checks=[*checks, *of_partitions],
        jobs=[
            *(job for part in parts for job in part.jobs),
            record,
            retention_job(specs),
            checks_job(specs, databases),
            *([same_objects_job(specs, databases)] if SAME_OBJECTS in policy.checks.run else []),
        ],
        schedules=schedules,
        sensors=[notification_log_sensor(specs, databases, settings or SensorSettings()), *sensors],
        resources=needed,
    )


@dataclass(frozen=True)
class _Part:
    """What Dagster has of one database."""

    database: CatalogDatabase
    assets: Sequence[dg.AssetsDefinition | dg.AssetSpec]
    checks: Sequence[dg.AssetChecksDefinition]
    of_partitions: Sequence[dg.AssetChecksDefinition]
    jobs: Sequence[dg.JobDefinition]


def _part(specs: Specs, database: CatalogDatabase) -> _Part:
    """The definitions of a database; of the database alone where those of its tables cannot be made.

    Whatever somebody creates at the source: the sensors and alarms of all databases depend on definitions that load.
    """
    try:
        return _complete(specs, database)
    except Exception as error:  # noqa: BLE001 (Dagster raises many kinds)
        _LOG.warning("tables of %s have no assets, Dagster does not take their definitions: %s", database.name, error)
        why = f"Its tables have no assets of their own, since Dagster does not take their definitions: {error}"
        return _complete(specs, CatalogDatabase(database.name, "", why, "", (), ()))


def _complete(specs: Specs, database: CatalogDatabase) -> _Part:
    return _Part(
        database,
        _assets(specs, database),
        list(database_checks(specs, database)),
        list(overflow_checks(specs, database)) if database.overflow else [],
        [job(specs, database) for job in (*_JOBS, *([find_drift_job] if specs.policy.drift else []))],
    )


def _of_loads(specs: Specs, databases: Sequence[CatalogDatabase]) -> Iterator[dg.AssetCheckKey]:
    """The checks that loads answer."""
    keys = (specs.names.database(database.name, "load") for database in databases)
    yield from (spec.key for key in keys for spec in load_checks(specs.policy.checks, key))


def _assets(specs: Specs, database: CatalogDatabase) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    assets = [specs.database(database, "source"), dump_asset(specs, database), load_asset(specs, database)]
    assets += approval_assets(specs, database)
    if database.overflow:
        assets.append(tables_asset(specs, database))
    if database.tables:
        assets += [specs.table(database, table, "source") for table in database.tables]
        assets += [dump_tables_asset(specs, database), load_tables_asset(specs, database)]
    return assets
