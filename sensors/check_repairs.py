"""The sensor that repairs tables whose checks failed, if the policy says so: one repair until the check passes again.

The failed result names the partitions to repair; the repair's run then runs the check again. The sensor reads Dagster's own
storage only.
"""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.specs import Specs
from repl_assets.checks.check_definitions import check_specs
from repl_assets.checks.findings import EvaluationKey, failed_tables, last_execution, last_failure, partitions_to_repair
from repl_assets.checks.table_checks import TableCheck, enabled_checks
from repl_assets.dagster_private import RUN_KEY_TAG
from repl_assets.dagster_private import AssetCheckExecutionRecordStatus as Status
from repl_assets.jobs.repair import repair_job_name, repair_request
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
        tables = check_specs(specs, database, check)
        for table in failed_tables(instance, specs.names, database.name, check.name, tables):
            request = _request(instance, specs, database, table, check)
            if request is not None:
                yield request


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
    return repair_request(names, database.name, table, partitions, run_key=run_key, checks=[check.name])
