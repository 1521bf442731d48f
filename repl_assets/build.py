"""Definitions of one policy, from the policy and the catalog of its source; no server is asked."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import dagster as dg

from hive_replication.policy import Policy
from repl_assets.catalog import Catalog, CatalogDatabase
from repl_assets.check_runs import checks_job, overflow_checks
from repl_assets.checks import database_checks
from repl_assets.databases import dump_asset, load_asset, rebuild_job
from repl_assets.overflow import limited, tables_asset
from repl_assets.planning import approval_assets, plan_job
from repl_assets.repairs import repair_job
from repl_assets.retention import retention_job
from repl_assets.specs import Specs
from repl_assets.tables import dump_tables_asset, load_tables_asset
from repl_assets.unrecorded import record_job
from resources.connection import ReplicationConnection
from sensors.alarms import alarm_sensor
from sensors.checks import checks_schedule
from sensors.drift import drift_sensor
from sensors.failed_checks import failed_checks_sensor
from sensors.lag import KeptReader, lag_sensor
from sensors.notification_log import SensorSettings, notification_log_sensor
from sensors.recording import recording_sensor
from sensors.retention import retention_schedule

MOST_TABLES = 1_000  # Dagster's UI stays quick up to about three times as many assets


def policy_definitions(
    policy: Policy,
    catalog: Catalog | None = None,
    *,
    settings: SensorSettings | None = None,
    resources: Mapping[str, Any] | None = None,
    most_tables: int = MOST_TABLES,
) -> dg.Definitions:
    """The assets, checks, jobs and sensors of a policy.

    Args:
        policy: the policy.
        catalog: its tables; without it there are the database assets, which replicate everything all the same.
        settings: of the sensor on the notification log.
        resources: take the place of the policy's own, by key.
        most_tables: tables that get assets of their own; databases beyond it get one asset for all their tables.
    """
    databases = limited([(catalog or Catalog()).database(name) for name in sorted(policy.databases)], most_tables)
    specs = Specs(
        policy,
        nodes=frozenset((database.name, table.name) for database in databases for table in database.tables),
        overflow=frozenset(database.name for database in databases if database.overflow),
    )
    names = specs.names
    record = record_job(specs)
    repairs = [repair_job(specs, database) for database in databases]
    drift = [drift_sensor(policy, policy.drift, name) for name in sorted(policy.databases)] if policy.drift else []
    failed = [failed_checks_sensor(specs, database) for database in databases] if policy.checks.repair else []
    reader = KeptReader()
    sensors = [
        recording_sensor(names, record.name),
        *drift,
        *failed,
        lag_sensor(policy, databases, reader),
        alarm_sensor(policy, reader),
    ]
    checks = [check for database in databases for check in database_checks(specs, database)]
    checks += [check for database in databases if database.overflow for check in overflow_checks(specs, database)]
    schedules = [retention_schedule(policy, policy.retention_at)] if policy.retention_at else []
    schedules += [checks_schedule(policy, policy.checks.schedule)] if policy.checks.schedule else []
    return dg.Definitions(
        assets=[asset for database in databases for asset in _assets(specs, database)],
        asset_checks=checks,
        jobs=[
            *(job(specs, database) for database in databases for job in (plan_job, rebuild_job)),
            *repairs,
            record,
            retention_job(specs, policy),
            checks_job(specs, databases),
        ],
        schedules=schedules,
        sensors=[notification_log_sensor(policy, settings or SensorSettings()), *sensors],
        resources={names.connection: ReplicationConnection.of(policy), **(resources or {})},
    )


def _assets(specs: Specs, database: CatalogDatabase) -> list[dg.AssetsDefinition | dg.AssetSpec]:
    assets = [specs.database(database, "source"), dump_asset(specs, database), load_asset(specs, database)]
    assets += approval_assets(specs, database)
    if database.overflow:
        assets.append(tables_asset(specs, database))
    if database.tables:
        assets += [specs.table(database, table, "source") for table in database.tables]
        assets += [dump_tables_asset(specs, database), load_tables_asset(specs, database)]
    return assets
