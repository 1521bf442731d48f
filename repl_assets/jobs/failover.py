"""The job that takes the steps of a failover, as ``hive-repl failover`` does; each one is started by an operator."""

# No postponed annotations here: Dagster compares those of contexts as types.
from collections.abc import Mapping
from typing import Any

import dagster as dg

from hive_replication import (
    FailoverStatus,
    failover_finish,
    failover_plan,
    failover_reverse,
    failover_rollback,
    failover_start,
    failover_status,
)
from hive_replication.errors import BadRequest
from hive_replication.failover import role_of
from hive_replication.markdown import table
from hive_replication.process import acting_as
from hive_replication.progress import LoggedProgress
from hive_replication.units import duration
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import DATABASE_TAG, POLICY_TAG
from repl_assets.catalog.specs import Specs
from repl_assets.recording.metadata import role_metadata
from repl_assets.steps.engine import Engine, as_dagster_failure, connected_engine
from repl_assets.typed import single_op_job

_STEPS = ("plan", "start", "finish", "rollback", "reverse")
_STEP = dg.Enum("FailoverStep", [dg.EnumValue(step) for step in _STEPS])


def failover_job(specs: Specs, database: CatalogDatabase) -> dg.JobDefinition:
    """``failover_<db>``: by default it plans and changes nothing; the target is opened only by a run whose step is ``finish``."""
    names = specs.names

    @dg.op(
        name=names.local(f"failover_{database.name}__step"),
        config_schema={
            "step": dg.Field(_STEP, default_value="plan", description="plan, start, finish, rollback; reverse for the way back"),
            "drop": dg.Field(bool, default_value=False, description="With reverse: drop what only the old source has"),
        },
        required_resource_keys=names.resources,
        out=dg.Out(dg.Nothing),
    )
    def failover(context: dg.OpExecutionContext) -> None:
        engine = connected_engine(context, names)
        step, drop = str(context.op_config["step"]), bool(context.op_config["drop"])
        with as_dagster_failure(), acting_as(engine.by):
            found, metadata = _taken(engine, database.name, step, drop=drop)
        role = role_metadata(role_of(specs.policy, found.phase, database.name))
        shown = {"step": step, "by": engine.by, "state": found.phase, **role, **metadata}
        key = names.database(database.name, "load")
        context.log_event(dg.AssetObservation(key, metadata=shown, description=f"failover {step} by {engine.by}"))

    return single_op_job(
        failover,
        name=names.local(f"failover_{database.name}"),
        description=f"Plans a failover of {database.name}, or takes the step that its configuration names.",
        tags={POLICY_TAG: names.policy, DATABASE_TAG: database.name},
    )


def _taken(engine: Engine, database: str, step: str, *, drop: bool) -> tuple[FailoverStatus, Mapping[str, Any]]:
    """Takes a step; where the failover stands then, and what the step says."""
    if drop and step != "reverse":
        raise BadRequest(f"drop belongs to the step reverse: the step {step} drops nothing")
    connection, policy, progress = engine.connection, engine.connection.source.policy, LoggedProgress(engine.log)
    match step:
        case "plan":
            found = failover_plan(policy, database)
            rows = [(one.name, one.what, "unknown" if one.seconds is None else duration(one.seconds)) for one in found.steps]
            lost = found.status.problem or len(found.status.not_replicated)
            steps = dg.MetadataValue.md(table(("step", "what", "takes"), rows, len(rows), len(rows)))
            return found.status, {"steps": steps, "events that would be lost now": lost, "held": len(found.held)}
        case "start":
            done = failover_start(connection, database, copier=engine.copier, progress=progress)
            return done.status, {"transactions aborted": len(done.aborted), "seconds": dict(done.seconds)}
        case "reverse":
            back = failover_reverse(connection, database, drop=drop, copier=engine.copier, progress=progress)
            figures = {"bytes copied": back.bytes_copied, "tables that differed": len(back.different), "held": len(back.held)}
            return failover_status(policy, database), figures
        case _:
            return (failover_finish if step == "finish" else failover_rollback)(policy, database), {}
