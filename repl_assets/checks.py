"""Asset checks to run by hand: is the replica equal to its source now, and has it as many rows."""

# No postponed annotations here: Dagster compares those of contexts as types.
from collections.abc import Iterator

import dagster as dg

from hive_replication.verify import TableComparison, compare_database
from repl_assets.catalog import CatalogDatabase
from repl_assets.freshness import up_to_date_check
from repl_assets.reporting import markdown_table
from repl_assets.row_counts import count_rows, spark_session
from repl_assets.specs import Specs
from repl_assets.work import failures
from resources.connection import ReplicationConnection


def database_checks(specs: Specs, database: CatalogDatabase) -> Iterator[dg.AssetChecksDefinition]:
    """All checks of a database that no load answers by itself."""
    yield up_to_date_check(specs, database)
    if database.tables:
        yield _replica_equal(specs, database)
        yield from _row_counts(specs, database)


def _replica_equal(specs: Specs, database: CatalogDatabase) -> dg.AssetChecksDefinition:
    names = specs.names
    description = "Schema, parameters, partitions, and each file by checksum are as at the source now."
    keys = {table.name: names.table(database.name, table.name, "load") for table in database.tables}
    checked = {table: dg.AssetCheckSpec("replica_equal", asset=key, description=description) for table, key in keys.items()}

    @dg.multi_asset_check(
        name=names.local(f"{database.name}__replica_equal"),
        specs=list(checked.values()),
        can_subset=True,
        required_resource_keys={names.connection},
    )
    def replica_equal(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        if context.run.asset_selection:
            return  # a repair, which proves what it copies: whole tables are compared by hand
        resource: ReplicationConnection = getattr(context.resources, names.connection)
        with failures():
            connection = resource.connect()
            for table, spec in checked.items():
                if spec.key in context.selected_asset_check_keys:
                    for found in compare_database(connection.source, connection.target, database.name, table=table):
                        yield _result(spec, found)

    return replica_equal


def _row_counts(specs: Specs, database: CatalogDatabase) -> Iterator[dg.AssetChecksDefinition]:
    names, target = specs.names, specs.policy.target_of(database.name)
    keys = {table.name: names.table(database.name, table.name, "load") for table in database.tables if not table.view}
    checked = {
        table: dg.AssetCheckSpec(
            "row_counts", asset=key, description="Spark counts as many rows in the replica as at the source."
        )
        for table, key in keys.items()
    }
    if not checked:
        return

    @dg.multi_asset_check(
        name=names.local(f"{database.name}__row_counts"),
        specs=list(checked.values()),
        can_subset=True,
        required_resource_keys={names.connection},
    )
    def row_counts(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        if context.run.asset_selection:
            return  # as above
        resource: ReplicationConnection = getattr(context.resources, names.connection)
        with failures():
            connection = resource.connect()
            spark = spark_session(specs.policy)
            for table, spec in checked.items():
                if spec.key in context.selected_asset_check_keys:
                    source = count_rows(spark, connection.source, database.name, table)
                    replica = count_rows(spark, connection.target, target, table)
                    yield dg.AssetCheckResult(
                        passed=source == replica,
                        asset_key=spec.asset_key,
                        check_name=spec.name,
                        metadata={"rows at source": source, "rows at target": replica},
                    )

    yield row_counts


def _result(spec: dg.AssetCheckSpec, found: TableComparison) -> dg.AssetCheckResult:
    differences = markdown_table(("difference",), ([text] for text in found.differences), len(found.differences))
    return dg.AssetCheckResult(
        passed=not found.differences,
        asset_key=spec.asset_key,
        check_name=spec.name,
        description="; ".join(found.differences[:3]) or None,  # Dagster shows tables in a check's metadata after a click only
        metadata={
            "partitions at source": found.partitions_source,
            "partitions at target": found.partitions_target,
            "files at source": found.files_source,
            "files at target": found.files_target,
            "files proven equal": found.files_proven,
            "kept as external table": found.translated,
        }
        | ({"differences": differences} if found.differences else {}),
    )
