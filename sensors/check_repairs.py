"""The sensor that repairs tables whose checks failed, if the policy says so: one repair until the check passes again.

The failed result names the partitions to repair; the repair's run then runs the check again. The sensor reads Dagster's own
storage only.
"""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import DATABASE_TAG, POLICY_TAG, partition_name
from repl_assets.catalog.specs import Specs
from repl_assets.checks.check_definitions import check_specs
from repl_assets.checks.findings import EvaluationKey, last_execution, last_failure, partitions_to_repair
from repl_assets.checks.table_checks import TableCheck, enabled_checks
from repl_assets.dagster_private import RUN_KEY_TAG
from repl_assets.dagster_private import AssetCheckExecutionRecordStatus as Status
from repl_assets.jobs.repair import repair_job_name, repair_op_name
from repl_assets.typed import running_sensor

_INTERVAL = 30


def failed_checks_sensor(specs: Specs, database: CatalogDatabase) -> dg.SensorDefinition:
    """The sensor of a database: ``failed_checks_<db>``."""

    @running_sensor(
        name=specs.names.local(f"failed_checks_{database.name}"),
        description=f"Repairs tables of {database.name} whose checks failed, once until the check passes again",
        job_name=repair_job_name(specs.names, database.name),
        interval=_INTERVAL,
    )
    def failed_checks(context: dg.SensorEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        return list(requests(context.instance, specs, database)) or dg.SkipReason("no failed check needs a repair")

    return failed_checks


def requests(instance: dg.DagsterInstance, specs: Specs, database: CatalogDatabase) -> Iterator[dg.RunRequest]:
    """One run for each failed check that has had no run since it last passed."""
    for check in enabled_checks(specs.policy):
        for table in _failed(instance, specs, database, check):
            request = _request(instance, specs, database, table, check)
            if request is not None:
                yield request


def _failed(instance: dg.DagsterInstance, specs: Specs, database: CatalogDatabase, check: TableCheck) -> list[str]:
    """Tables whose latest check result is a failure."""
    storage = instance.event_log_storage
    if database.overflow:
        found = storage.get_asset_check_partition_info([dg.AssetCheckKey(specs.names.tables(database.name), check.name)])
        partitions = [one.partition_key for one in found if one.latest_execution_status == Status.FAILED]
        return [partition_name(partition) for partition in partitions if partition]
    tables = {spec.key: table for table, spec in check_specs(specs, database, check).items()}
    latest = storage.get_latest_asset_check_execution_by_key(list(tables))
    return [tables[key] for key, record in latest.items() if record.status == Status.FAILED]


def _request(
    instance: dg.DagsterInstance, specs: Specs, database: CatalogDatabase, table: str, check: TableCheck
) -> dg.RunRequest | None:
    names, key = specs.names, EvaluationKey.of(specs.names, database.name, table, check.name)
    found = last_failure(instance, key)
    partitions = partitions_to_repair(found.metadata) if found else None
    if partitions is None:
        return None
    passed = last_execution(instance, key, {Status.SUCCEEDED})
    run_key = f"{names.policy}:check:{database.name}.{table}:{check.name}:{passed.id if passed else 0}"
    if instance.get_run_records(dg.RunsFilter(tags={RUN_KEY_TAG: run_key}), limit=1):
        return None
    config = {"table": table, "partitions": list(partitions), "checks": [check.name]}
    return dg.RunRequest(
        run_key=run_key,
        run_config={"ops": {repair_op_name(names, database.name): {"config": config}}},
        tags={POLICY_TAG: names.policy, DATABASE_TAG: database.name},
    )
