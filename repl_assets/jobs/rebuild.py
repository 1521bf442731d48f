"""The job that rebuilds a replica: a bootstrap of a whole database over the existing replica."""

# No postponed annotations here: Dagster compares those of contexts as types.
import dagster as dg

from hive_replication.statements import ReplDump
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import DATABASE_TAG, POLICY_TAG, Names, Window, metastore_tags
from repl_assets.catalog.specs import Specs
from repl_assets.checks.load_checks import check_results
from repl_assets.checks.not_held import record_held
from repl_assets.recording.metadata import dump_metadata, held_table, window_metadata
from repl_assets.steps.engine import as_dagster_failure, connected_engine
from repl_assets.steps.load import load_dump
from repl_assets.typed import log_evaluation, single_op_job

#: What the failure of a run says, after their number, where all was done but for lanes that are held: their release mends it.
LANES_FAILED = "lanes failed:"


def rebuild_job_name(names: Names, database: str) -> str:
    """Name of a database's rebuild job."""
    return names.local(f"rebuild_{database}")


def rebuild_job(specs: Specs, database: CatalogDatabase) -> dg.JobDefinition:
    """``rebuild_<db>``: a bootstrap of the whole database; what is equal is not replaced."""
    names = specs.names
    dump_key, load_key = (names.database(database.name, stage) for stage in ("dump", "load"))

    @dg.op(
        name=names.local(f"rebuild_{database.name}__dump_and_load"),
        required_resource_keys=names.resources,
        pool=names.load_pool(database.name),
        out=dg.Out(dg.Nothing),
    )
    def rebuild(context: dg.OpExecutionContext) -> None:
        engine = connected_engine(context, names)
        with as_dagster_failure():
            stood = engine.state(database.name)
            current = engine.connection.source.metastore.current_event_id()
            window = str(Window(None, current))
            context.instance.add_dynamic_partitions(str(names.windows.name), [window])
            result = engine.dump(ReplDump(database.name))
        made = dg.AssetMaterialization(dump_key, metadata=dump_metadata(result), partition=window)
        context.log_event(made)
        report = load_dump(context, engine, names, database, made, stood)
        metadata = window_metadata(report, names, database.name, made)
        context.log_event(dg.AssetMaterialization(load_key, metadata=metadata, partition=window))
        for found in check_results(report, names, database.name):
            if found.check_name in specs.policy.checks.run:
                answer = dg.AssetCheckEvaluation(
                    asset_key=load_key, check_name=str(found.check_name), passed=found.passed, metadata=found.metadata
                )
                log_evaluation(context, answer)
        record_held(context, engine, specs, database, repaired=True)
        if report.held:
            raise dg.Failure(f"{len(report.held)} {LANES_FAILED} {report.held[0].reason}", metadata={"held": held_table(report)})

    return single_op_job(
        rebuild,
        name=rebuild_job_name(names, database.name),
        description=f"Dumps the whole database {database.name} and replaces in the replica what differs.",
        tags={POLICY_TAG: names.policy, DATABASE_TAG: database.name} | metastore_tags(specs.policy),
    )
