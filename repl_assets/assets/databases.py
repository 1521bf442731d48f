"""Assets of whole databases: the dump of a window of the notification log and its load."""

# No postponed annotations here: Dagster compares those of contexts as types.
import time
from functools import partial

import dagster as dg

from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.specs import Specs
from repl_assets.checks.load_checks import check_results, load_checks
from repl_assets.checks.not_held import record_held
from repl_assets.recording.metadata import dump_metadata, recovery_metadata, window_metadata
from repl_assets.steps.engine import connected_engine, listed_by
from repl_assets.steps.load import load_dump
from repl_assets.steps.plan import dump_to_load, withdraw_loaded
from repl_assets.steps.windows import dump_of, refuse_paused, window_of
from repl_assets.typed import MaterializeResult


def dump_asset(specs: Specs, database: CatalogDatabase) -> dg.AssetsDefinition:
    """``<db>__dump``: REPL DUMP of a window."""
    names = specs.names

    @dg.multi_asset(
        name=names.of_database(database.name, "dump"),
        specs=[specs.database(database, "dump")],
        required_resource_keys=names.resources,
    )
    def dump(context: dg.AssetExecutionContext) -> MaterializeResult:
        window = window_of(context)
        began = time.monotonic()
        engine = connected_engine(context, names)
        result, recovery = engine.dump_window(database.name, window)
        listed = listed_by(context, engine.connection, names)
        metadata = (
            dump_metadata(result)
            | {"duration (s)": round(time.monotonic() - began, 3)}
            | ({"listed by": listed} if listed else {})
            | (recovery_metadata(recovery) if recovery else {})
        )
        return dg.MaterializeResult(metadata=metadata, data_version=dg.DataVersion(str(result.last_evid)))

    return dump


def load_asset(specs: Specs, database: CatalogDatabase) -> dg.AssetsDefinition:
    """``<db>__load``: REPL LOAD of the window's dump; then the tables and partitions that it changed are recorded."""
    names = specs.names
    key = names.database(database.name, "load")

    @dg.multi_asset(
        name=names.of_database(database.name, "load"),
        specs=[specs.database(database, "load")],
        check_specs=load_checks(specs.policy.checks, key),
        required_resource_keys=names.resources,
        pool=names.load_pool(database.name),
    )
    def load(context: dg.AssetExecutionContext) -> MaterializeResult:
        window, engine = window_of(context), connected_engine(context, names)
        refuse_paused(context, engine, database.name)
        made = partial(dump_of, context, names.database(database.name, "dump"), str(window))
        dump, approved = dump_to_load(specs, engine, database.name, window, made)
        report = load_dump(context.op_execution_context, engine, names, database, dump)
        record_held(context.op_execution_context, engine, specs, database, repaired=False)
        if approved:
            withdraw_loaded(specs, engine, database.name, window)
        return dg.MaterializeResult(
            metadata=window_metadata(report, names, database.name, dump) | engine.lag(database.name),
            check_results=[
                found for found in check_results(report, names, database.name) if found.check_name in specs.policy.checks.run
            ],
            data_version=dg.DataVersion(str(report.to_evid)),
        )

    return load
