"""The jobs that pause a database and let it continue, as ``hive-repl pause`` and ``hive-repl resume`` do."""

# No postponed annotations here: Dagster compares those of contexts as types.
import dagster as dg

from hive_replication import operate
from hive_replication.errors import ReplicationError
from hive_replication.lag import MOST_EVENTS, lag
from hive_replication.process import acting_as
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import DATABASE_TAG, POLICY_TAG, UP_TO_DATE
from repl_assets.catalog.specs import Specs
from repl_assets.checks.up_to_date import answer
from repl_assets.steps.engine import Engine, as_dagster_failure, connected_engine
from repl_assets.typed import log_evaluation, single_op_job


def pause_job(specs: Specs, database: CatalogDatabase) -> dg.JobDefinition:
    """``pause_<db>``: the sensors ask for no loads of the database until it is resumed."""
    names = specs.names

    @dg.op(
        name=names.local(f"pause_{database.name}__sensors"),
        config_schema={"why": dg.Field(str, default_value="", description="Shown to everybody until it is resumed")},
        required_resource_keys=names.resources,
        out=dg.Out(dg.Nothing),
    )
    def pause(context: dg.OpExecutionContext) -> None:
        engine = connected_engine(context, names)
        with as_dagster_failure(), acting_as(engine.by):
            operate.pause(engine.connection, database.name, str(context.op_config["why"]))
        _observe(context, engine, specs, database, "pause")

    return single_op_job(
        pause,
        name=names.local(f"pause_{database.name}"),
        description=f"Stops the sensors from loading {database.name}; a load that runs is completed.",
        tags={POLICY_TAG: names.policy, DATABASE_TAG: database.name},
    )


def resume_job(specs: Specs, database: CatalogDatabase) -> dg.JobDefinition:
    """``resume_<db>``: the sensors load the database again."""
    names = specs.names

    @dg.op(
        name=names.local(f"resume_{database.name}__sensors"),
        required_resource_keys=names.resources,
        out=dg.Out(dg.Nothing),
    )
    def resume(context: dg.OpExecutionContext) -> None:
        engine = connected_engine(context, names)
        with as_dagster_failure(), acting_as(engine.by):
            operate.resume(engine.connection, database.name)
        _observe(context, engine, specs, database, "resume")

    return single_op_job(
        resume,
        name=names.local(f"resume_{database.name}"),
        description=f"Lets the sensors load {database.name} again after a pause.",
        tags={POLICY_TAG: names.policy, DATABASE_TAG: database.name},
    )


def _observe(context: dg.OpExecutionContext, engine: Engine, specs: Specs, database: CatalogDatabase, action: str) -> None:
    """Says on the database's page whether it is paused now; the lag sensor would, too, but not at once."""
    key, connection = specs.names.database(database.name, "load"), engine.connection
    metadata = {"action": action, "by": engine.by}
    try:
        found = lag(connection.source, connection.target, database.name, most_events=MOST_EVENTS)
    except ReplicationError as error:  # a source that does not answer is a reason to pause
        context.log.warning("the %s is done; how far the database is cannot be told now: %s", action, error)
    else:
        metadata["stopped by an operator"] = found.stopped or "no"
        fields = answer(found, specs.names, specs.policy.lag_target_seconds)
        log_evaluation(context, dg.AssetCheckEvaluation(asset_key=key, check_name=UP_TO_DATE, **fields))
    context.log_event(dg.AssetObservation(key, metadata=metadata, description=f"{action} by {engine.by}"))
