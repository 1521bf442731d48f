"""The job that plans the next window of a database."""

# No postponed annotations here: Dagster compares those of contexts as types.
import dagster as dg

from hive_replication.recover import Gap
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import DATABASE_TAG, POLICY_TAG, Window
from repl_assets.catalog.specs import Specs
from repl_assets.steps.engine import as_dagster_failure, connected_engine
from repl_assets.steps.plan import write_plan
from repl_assets.typed import single_op_job

_RECOVERS = (
    "the next window compares the database with its source, and loads what differs; hive-repl recover {} --dry-run shows it"
)


def plan_job(specs: Specs, database: CatalogDatabase) -> dg.JobDefinition:
    """``plan_<db>``: dumps the window up to now, and reports what its load would do."""
    names = specs.names

    @dg.op(name=names.local(f"plan_{database.name}__report"), required_resource_keys=names.resources, out=dg.Out(dg.Nothing))
    def plan(context: dg.OpExecutionContext) -> None:
        engine = connected_engine(context, names)
        with as_dagster_failure():
            state, current = engine.state(database.name), engine.connection.source.metastore.current_event_id()
            window = Window(state.applied, max(current, state.applied or 0))
            dump = engine.dump_events(database.name, window)
        if isinstance(dump, Gap):
            gap = {"gap": f"{dump.kind}: {dump.reason}", "plan": _RECOVERS.format(database.name)}
            context.log_event(dg.AssetObservation(names.database(database.name, "load"), metadata=gap))
            context.log.info("%s: %s", dump.reason, gap["plan"])
            return
        written = write_plan(engine, database.name, str(window), dump.directory, dump.header.kind)
        context.log_event(dg.AssetObservation(names.database(database.name, "load"), metadata=written.metadata))
        context.log.info("the load of %s would do: %s", window, written.summary)

    return single_op_job(
        plan,
        name=names.local(f"plan_{database.name}"),
        description=f"Reports what the next load of {database.name} would do; changes nothing on the target.",
        tags={POLICY_TAG: names.policy, DATABASE_TAG: database.name},
    )
