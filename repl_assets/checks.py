"""Asset checks that no load answers by itself: to run by hand, after repairs, and when a repair of theirs is over.

A check of a table is about all of it. In a run for some partitions only these are examined, and those that failed the last time:
so a check is green when all that was found has been repaired. Checks that need Spark stay out of such a run unless they failed.
"""

# No postponed annotations here: Dagster compares those of contexts as types.
from collections.abc import Iterator

import dagster as dg
from dagster._core.event_api import PartitionKeyFilter
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecord
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus as Status
from dagster._core.storage.tags import (
    ASSET_PARTITION_RANGE_END_TAG,
    ASSET_PARTITION_RANGE_START_TAG,
    PARTITION_NAME_TAG,
)

from hive_replication.connect import Connection
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.verify import strays
from repl_assets.catalog import CatalogDatabase
from repl_assets.freshness import up_to_date_check
from repl_assets.keys import Names, partition_name
from repl_assets.reporting import markdown_table
from repl_assets.specs import Specs
from repl_assets.table_checks import Examiner, Finding, Partitions, Place, TableCheck, checks_of, told
from repl_assets.work import failures
from resources.connection import ReplicationConnection


def database_checks(specs: Specs, database: CatalogDatabase) -> Iterator[dg.AssetChecksDefinition]:
    """All checks of a database that no load answers by itself."""
    yield up_to_date_check(specs, database)
    if "no_strays" in specs.policy.checks.run:
        yield _no_strays(specs, database)
    if checked := _table_checks(specs, database):
        yield checked


def check_specs(specs: Specs, database: CatalogDatabase, check: TableCheck) -> dict[str, dg.AssetCheckSpec]:
    """A check's specs, by the tables that it is about."""
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


def last_failure(instance: dg.DagsterInstance, place: Place) -> dg.AssetCheckEvaluation | None:
    """The newest answer of a check, if it is a failure."""
    record = last_answer(instance, place, {Status.SUCCEEDED, Status.FAILED})
    found = record.evaluation if record else None
    return None if found is None or found.passed else found


def last_answer(instance: dg.DagsterInstance, place: Place, status: set[Status]) -> AssetCheckExecutionRecord | None:
    """The newest answer of a check that is one of these."""
    partition = PartitionKeyFilter(key=place.partition) if place.partition else None
    history = instance.event_log_storage.get_asset_check_execution_history
    return next(iter(history(place.key, limit=1, status=status, partition_filter=partition)), None)


def with_failed(chosen: Partitions, failed: dg.AssetCheckEvaluation | None) -> Partitions:
    """What to examine after a repair of ``chosen``: these and what failed the last time; None for the whole table."""
    before = told(failed.metadata) if failed else None
    if chosen is None or before == ():
        return None
    return tuple(sorted({*chosen, *(before or ())}))


def _table_checks(specs: Specs, database: CatalogDatabase) -> dg.AssetChecksDefinition | None:
    """All kinds in one step: Dagster makes an input for each table of a step, most of what definitions would cost otherwise."""
    names = specs.names
    checks = [
        (check, table, spec) for check in checks_of(specs.policy) for table, spec in check_specs(specs, database, check).items()
    ]
    if not checks:
        return None

    @dg.multi_asset_check(
        name=names.local(f"{database.name}__checks"),
        specs=[spec for _, _, spec in checks],
        can_subset=True,
        required_resource_keys={names.connection},
    )
    def examine(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        resource: ReplicationConnection = getattr(context.resources, names.connection)
        errors: list[str] = []
        with failures():
            examiner = Examiner(resource.connect(), specs.policy, database.name)
            for check, table, spec in checks:
                if spec.key not in context.selected_asset_check_keys:
                    continue
                partitions: Partitions = None
                if context.run.asset_selection:  # a repair
                    failed = last_failure(context.instance, Place(spec.key))
                    if check.spark and failed is None:
                        continue
                    partitions = with_failed(_partitions(context, names, database.name, table), failed)
                try:
                    yield check.answer(examiner, table, partitions).result(spec, partitions)
                except Unreachable:
                    raise
                except ReplicationError as error:  # the other checks are answered all the same
                    context.log.warning("%s of %s has no answer: %s", check.name, table, error)
                    errors.append(f"{check.name} of {table}: {error}")
        if errors:
            raise dg.Failure(f"{len(errors)} checks have no answer: {errors[0]}")

    return examine


def _partitions(context: dg.AssetCheckExecutionContext, names: Names, database: str, table: str) -> Partitions:
    """Hive names of the run's partitions; None without any."""
    tags = context.run.tags
    if one := tags.get(PARTITION_NAME_TAG):
        return (partition_name(one),)
    first, last = tags.get(ASSET_PARTITION_RANGE_START_TAG), tags.get(ASSET_PARTITION_RANGE_END_TAG)
    if not first or not last:
        return None
    known = list(context.instance.get_dynamic_partitions(str(names.partitions(database, table).name)))
    if first not in known or last not in known or (first, last) == (known[0], known[-1]):
        return None
    return tuple(map(partition_name, known[known.index(first) : known.index(last) + 1]))


def _no_strays(specs: Specs, database: CatalogDatabase) -> dg.AssetChecksDefinition:
    names = specs.names

    spec = dg.AssetCheckSpec(
        "no_strays",
        asset=names.database(database.name, "load"),
        description="The target has no table or partition that the source lacks, and no directory that nothing points at.",
        blocking="no_strays" in specs.policy.checks.blocking,
    )

    @dg.multi_asset_check(
        name=names.local(f"{database.name}__no_strays"),
        specs=[spec],
        can_subset=True,
        required_resource_keys={names.connection},
    )
    def no_strays(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        if context.run.asset_selection and last_failure(context.instance, Place(spec.key)) is None:
            return  # a window, which is not to wait until all partitions and directories are read
        resource: ReplicationConnection = getattr(context.resources, names.connection)
        with failures():
            yield strays_found(resource.connect(), database.name).result(spec)

    return no_strays


def strays_found(connection: Connection, database: str) -> Finding:
    """The answer of ``no_strays``, which no repair mends."""
    found = list(strays(connection.source, connection.target, database))
    rows = ((stray.kind, stray.name, stray.location) for stray in found)
    table = {"found": markdown_table(("kind", "name", "location"), rows, len(found))} if found else {}
    return Finding({"strays": len(found), **table}, passed=not found)
