"""The asset of a database in overflow, which has more tables than Dagster shows well: its partitions are the tables."""

# No postponed annotations here: Dagster compares those of contexts as types.
import dagster as dg

from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import partition_name
from repl_assets.catalog.specs import Specs
from repl_assets.checks.not_held import record_held
from repl_assets.recording.metadata import load_metadata
from repl_assets.steps.engine import as_dagster_failure, connected_engine
from repl_assets.steps.repair import repair_table
from repl_assets.typed import MaterializeResult


def tables_asset(specs: Specs, database: CatalogDatabase) -> dg.AssetsDefinition:
    """``<db>__tables``: materializing a partition brings that table to the current state of the source."""
    names = specs.names

    @dg.multi_asset(
        name=names.of_database(database.name, "tables"),
        specs=[specs.tables(database)],
        required_resource_keys=names.resources,
        pool=names.load_pool(database.name),
    )
    def tables(context: dg.AssetExecutionContext) -> MaterializeResult:
        if not context.has_partition_key:
            raise dg.Failure("choose tables: each is a partition")
        engine = connected_engine(context, names)
        table = partition_name(context.partition_key)
        with as_dagster_failure():
            stood = engine.state(database.name)
        try:
            report = repair_table(context.op_execution_context, engine, names, database, stood, table)
        finally:
            record_held(context.op_execution_context, engine, specs, database, repaired=True)
        return dg.MaterializeResult(
            metadata=load_metadata(report, names, database.name), data_version=dg.DataVersion(str(report.to_evid))
        )

    return tables
