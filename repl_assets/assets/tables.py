"""Assets of tables: an operator repairs a table, or partitions of it, by materializing them."""

# No postponed annotations here: Dagster compares those of contexts as types.
from collections.abc import Iterator
from dataclasses import replace

import dagster as dg

from hive_replication import DumpResult
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.report import LoadReport, Touched
from hive_replication.statements import ReplDump
from repl_assets.catalog.catalog import CatalogDatabase, CatalogTable
from repl_assets.catalog.keys import Stage, partition_key, partition_name
from repl_assets.catalog.specs import Specs
from repl_assets.checks.not_held import record_held
from repl_assets.recording.metadata import dump_materializations, dump_metadata, is_dump, load_metadata, text_of
from repl_assets.recording.recorder import Recorder
from repl_assets.steps.engine import Engine, as_dagster_failure, connected_engine
from repl_assets.steps.repair import NOT_REPAIRED, Failures
from repl_assets.typed import MaterializeResult

_MOST_READ = 1_000  # entries of a table's dump since the run began; behind more of them it is dumped again


def dump_tables_asset(specs: Specs, database: CatalogDatabase) -> dg.AssetsDefinition:
    """``<t>__dump`` of all tables of a database: REPL DUMP of a table or of some of its partitions."""
    names = specs.names

    @dg.multi_asset(
        name=names.of_database(database.name, "dump_tables"),
        specs=[specs.table(database, table, "dump") for table in database.tables],
        can_subset=True,
        required_resource_keys=names.resources,
        backfill_policy=dg.BackfillPolicy.single_run(),
    )
    def dump_tables(context: dg.AssetExecutionContext) -> Iterator[MaterializeResult]:
        engine, failures = connected_engine(context, names), Failures(context.op_execution_context)
        for table in _selected(context, specs, database, "dump"):
            with failures.of(table.name):
                result = _dump(engine, database.name, table, _partitions(context, specs.table(database, table, "dump")))
                yield dg.MaterializeResult(
                    asset_key=names.table(database.name, table.name, "dump"),
                    metadata=dump_metadata(result),
                    data_version=dg.DataVersion(str(result.last_evid)),
                )
        failures.raise_any()

    return dump_tables


def load_tables_asset(specs: Specs, database: CatalogDatabase) -> dg.AssetsDefinition:
    """``<t>`` of all tables of a database: brought to the current state of the source, whatever the replica holds.

    Without a dump in the same run it makes one and logs it first.
    """
    names = specs.names

    @dg.multi_asset(
        name=names.of_database(database.name, "load_tables"),
        specs=[specs.table(database, table, "load") for table in database.tables],
        can_subset=True,
        required_resource_keys=names.resources,
        backfill_policy=dg.BackfillPolicy.single_run(),
        pool=names.load_pool(database.name),
    )
    def load_tables(context: dg.AssetExecutionContext) -> Iterator[MaterializeResult]:
        engine, failures = connected_engine(context, names), Failures(context.op_execution_context)
        with as_dagster_failure():
            stood = engine.state(database.name)  # before the first table: others may be undone while it is repaired
        try:
            for table in _selected(context, specs, database, "load"):
                with failures.of(table.name):
                    yield from _repair(context, engine, specs, database, table, stood)
        finally:
            record_held(context.op_execution_context, engine, specs, database, repaired=True)
        failures.raise_any()

    return load_tables


def _repair(
    context: dg.AssetExecutionContext,
    engine: Engine,
    specs: Specs,
    database: CatalogDatabase,
    table: CatalogTable,
    stood: ReplicaState,
) -> Iterator[MaterializeResult]:
    names, key = specs.names, specs.names.table(database.name, table.name, "dump")
    recorder = Recorder(context.op_execution_context, names, database.name, database.partitioned_tables)
    partitions = _partitions(context, specs.table(database, table, "load"))

    def dump() -> str:
        return _dump_first(context, key, _dump(engine, database.name, table, partitions))

    keys = set(context.partition_keys) if _has_partitions(context) else set[str]()
    repaired = engine.repair(database.name, table.name, _dump_of_run(context, key) or dump(), dump, stood)
    report = repaired.load
    if not report.held:
        yield dg.MaterializeResult(
            asset_key=names.table(database.name, table.name, "load"),
            metadata=load_metadata(report, names, database.name),
            data_version=dg.DataVersion(str(report.to_evid)),
        )
    # After the result: Dagster looks up the run's partitions for it, and recording may delete some.
    for done in repaired.events:
        recorder.record(done if report.held else _without_repaired(done, table.name, keys), done.directory)
    if report.held:
        raise dg.Failure(f"{table.name} {NOT_REPAIRED} {'; '.join(held.reason for held in report.held)}")
    if not table.partition_keys:
        return
    if partitions is None:
        recorder.record(report, repaired.directory)
    elif engine.is_whole(repaired.directory):  # no events bring the rest of the table up
        recorder.record(_without_repaired(report, table.name, keys), repaired.directory)


def _selected(context: dg.AssetExecutionContext, specs: Specs, database: CatalogDatabase, stage: Stage) -> Iterator[CatalogTable]:
    for table in database.tables:
        if specs.names.table(database.name, table.name, stage) in context.selected_asset_keys:
            yield table


def _partitions(context: dg.AssetExecutionContext, spec: dg.AssetSpec) -> tuple[str, ...] | None:
    """Hive names of the run's partitions; None for a whole table: without partitions, or if all known ones are chosen."""
    known = spec.partitions_def
    if known is None or not _has_partitions(context):
        return None
    keys = list(context.partition_keys)
    if len(keys) > 1 and len(keys) == len(known.get_partition_keys(dynamic_partitions_store=context.instance)):
        return None
    return tuple(partition_name(key) for key in keys)


def _has_partitions(context: dg.AssetExecutionContext) -> bool:
    return context.has_partition_key or context.has_partition_key_range


def _without_repaired(events: LoadReport, table: str, keys: set[str]) -> LoadReport:
    """What the events before a repair changed, or the repair itself, without what its run records of chosen partitions."""
    touched: list[Touched] = []
    for one in events.touched:
        if one.source_table != table or one.dropped:
            touched.append(one)
        elif one.partitions or one.dropped_partitions:
            left = tuple(partition for partition in one.partitions if partition_key(partition) not in keys)
            touched.append(replace(one, partitions=left))
    return replace(events, touched=tuple(touched))


def _dump(engine: Engine, database: str, table: CatalogTable, partitions: tuple[str, ...] | None) -> DumpResult:
    with as_dagster_failure():
        return engine.dump(ReplDump(database, table.name), partitions)


def _dump_of_run(context: dg.AssetExecutionContext, key: dg.AssetKey) -> str:
    """Directory of the dump that an earlier step of this run made, or "".

    The entry of that dump is not always the last one: loads log what their events changed here, too, with the dump of these.
    """
    run = context.instance.get_run_record_by_id(context.run.run_id)
    asked = dg.AssetRecordsFilter(asset_key=key, after_timestamp=run.start_time if run else None)
    found = context.instance.fetch_materializations(asked, limit=_MOST_READ).records
    own = (one.asset_materialization for one in found if one.run_id == context.run.run_id)
    return next((text_of(made.metadata, "directory") for made in own if made and is_dump(made)), "")


def _dump_first(context: dg.AssetExecutionContext, key: dg.AssetKey, result: DumpResult) -> str:
    """Logs a dump made here, before the replica: Dagster compares their times."""
    for made in dump_materializations(key, result, context.partition_keys if _has_partitions(context) else (None,)):
        context.log_event(made)
    # Dagster read the dump's state when the step began; compared with that, the replica would be out of date at once.
    context.get_step_execution_context().wipe_input_asset_version_info(key)
    return result.directory
