"""The sensor on failed checks of tables, where the policy wants repairs: one repair until the check passes again.

What a repair brings is in the failed result; the repair's run answers the check anew. It asks Dagster's own storage only.
"""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus as Status
from dagster._core.storage.tags import RUN_KEY_TAG

from repl_assets.catalog import CatalogDatabase
from repl_assets.checks import check_specs, last_answer, last_failure
from repl_assets.keys import DATABASE_TAG, POLICY_TAG, partition_name
from repl_assets.repairs import repair_job_name, repair_op_name
from repl_assets.specs import Specs
from repl_assets.table_checks import Place, TableCheck, checks_of, told

_INTERVAL = 30


def failed_checks_sensor(specs: Specs, database: CatalogDatabase) -> dg.SensorDefinition:
    """The sensor of a database: ``failed_checks_<db>``. It runs from the start."""

    @dg.sensor(
        name=specs.names.local(f"failed_checks_{database.name}"),
        description=f"Repairs what a failed check of {database.name} names, once until the check passes again",
        job_name=repair_job_name(specs.names, database.name),
        minimum_interval_seconds=_INTERVAL,
        default_status=dg.DefaultSensorStatus.RUNNING,
    )
    def failed_checks(context: dg.SensorEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        return list(requests(context.instance, specs, database)) or dg.SkipReason("no failed check waits for a repair")

    return failed_checks


def requests(instance: dg.DagsterInstance, specs: Specs, database: CatalogDatabase) -> Iterator[dg.RunRequest]:
    """One run for each failed check that has had none since it passed last."""
    for check in checks_of(specs.policy):
        for table in _failed(instance, specs, database, check):
            request = _request(instance, specs, database, table, check)
            if request is not None:
                yield request


def _failed(instance: dg.DagsterInstance, specs: Specs, database: CatalogDatabase, check: TableCheck) -> list[str]:
    """Tables of which the newest answer is a failure."""
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
    names, place = specs.names, Place.of(specs.names, database.name, table, check)
    found = last_failure(instance, place)
    partitions = told(found.metadata) if found else None
    if partitions is None:
        return None
    passed = last_answer(instance, place, {Status.SUCCEEDED})
    run_key = f"{names.policy}:check:{database.name}.{table}:{check.name}:{passed.id if passed else 0}"
    if instance.get_run_records(dg.RunsFilter(tags={RUN_KEY_TAG: run_key}), limit=1):
        return None
    config = {"table": table, "partitions": list(partitions), "checks": [check.name]}
    return dg.RunRequest(
        run_key=run_key,
        run_config={"ops": {repair_op_name(names, database.name): {"config": config}}},
        tags={POLICY_TAG: names.policy, DATABASE_TAG: database.name},
    )
