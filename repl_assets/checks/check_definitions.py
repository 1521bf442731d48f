"""Asset checks apart from those that each load answers: they run by hand and after repairs.

A check of a table covers the whole table. A run for some partitions examines these and the ones that failed last, so that the
check passes when everything found is repaired. In such a run checks that need Spark are skipped unless they failed last.
"""

# No postponed annotations here: Dagster compares those of contexts as types.
from collections.abc import Iterator

import dagster as dg

from hive_replication.errors import ReplicationError, Unreachable
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import NO_STRAYS, SAME_OBJECTS, Names
from repl_assets.catalog.run_partitions import partitions_of
from repl_assets.catalog.specs import Specs
from repl_assets.checks.examiner import Examiner
from repl_assets.checks.findings import EvaluationKey, Partitions, last_failure, with_failed
from repl_assets.checks.no_alarms import no_alarms_check
from repl_assets.checks.no_strays import no_strays_check
from repl_assets.checks.same_objects import same_objects_check
from repl_assets.checks.table_checks import TableCheck, enabled_checks
from repl_assets.checks.up_to_date import up_to_date_check
from repl_assets.steps.engine import as_dagster_failure, connected_engine


def database_checks(specs: Specs, database: CatalogDatabase) -> Iterator[dg.AssetChecksDefinition]:
    """All checks of a database apart from those that each load answers."""
    yield up_to_date_check(specs, database)
    yield no_alarms_check(specs, database)
    if SAME_OBJECTS in specs.policy.checks.run:
        yield same_objects_check(specs, database)
    if NO_STRAYS in specs.policy.checks.run:
        yield no_strays_check(specs, database)
    if checked := _table_checks(specs, database):
        yield checked


def check_specs(specs: Specs, database: CatalogDatabase, check: TableCheck) -> dict[str, dg.AssetCheckSpec]:
    """The specs of a check, by table."""
    return {
        table.name: dg.AssetCheckSpec(
            check.name,
            asset=specs.names.table(database.name, table.name, "load"),
            description=check.description,
            blocking=check.name in specs.policy.checks.blocking,
        )
        for table in database.tables
        if not (check.spark and table.view)
    }


def _table_checks(specs: Specs, database: CatalogDatabase) -> dg.AssetChecksDefinition | None:
    """All kinds in one step: Dagster makes an input for each table of a step, most of the cost of definitions."""
    names = specs.names
    checks = [
        (check, table, spec)
        for check in enabled_checks(specs.policy)
        for table, spec in check_specs(specs, database, check).items()
    ]
    if not checks:
        return None

    @dg.multi_asset_check(
        name=names.of_database(database.name, "checks"),
        specs=[spec for _, _, spec in checks],
        can_subset=True,
        required_resource_keys=names.resources,
    )
    def examine(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        examiner = Examiner(connected_engine(context, names).connection, specs.policy, database.name)
        errors: list[str] = []
        with as_dagster_failure():
            for check, table, spec in checks:
                if spec.key not in context.selected_asset_check_keys:
                    continue
                partitions: Partitions = None
                if context.run.asset_selection:  # a repair
                    failed = last_failure(context.instance, EvaluationKey(spec.key))
                    if check.spark and failed is None:
                        continue
                    partitions = with_failed(_partitions(context, names, database.name, table), failed)
                try:
                    yield check.find(examiner, table, partitions).result(EvaluationKey(spec.key), partitions)
                except Unreachable:
                    raise
                except ReplicationError as error:  # the other checks run all the same
                    context.log.warning("%s of %s has no answer: %s", check.name, table, error)
                    errors.append(f"{check.name} of {table}: {error}")
        if errors:
            raise dg.Failure(f"{len(errors)} checks have no answer: {errors[0]}")

    return examine


def _partitions(context: dg.AssetCheckExecutionContext, names: Names, database: str, table: str) -> Partitions:
    """Hive names of the run's partitions; None without any."""
    found = partitions_of(context.instance, context.run.tags, names.partitions(database, table))
    return None if "" in found else found
