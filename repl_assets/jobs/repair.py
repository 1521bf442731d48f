"""The job that repairs a table or some of its partitions, for sensors and for tables without assets of their own."""

# No postponed annotations here: Dagster compares those of contexts as types.
from collections.abc import Iterable, Mapping
from typing import Any

import dagster as dg

from hive_replication.errors import BadRequest
from hive_replication.health.advice import why_left_held
from hive_replication.load.replica.ownership import refuse_undone
from hive_replication.load.replica.state import ReplicaState
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import DATABASE_TAG, POLICY_TAG, Names, metastore_tags
from repl_assets.catalog.specs import Specs
from repl_assets.checks.examiner import Examiner
from repl_assets.checks.findings import EvaluationKey, last_failure, with_failed
from repl_assets.checks.not_held import record_held
from repl_assets.checks.table_checks import TableCheck, enabled_checks
from repl_assets.steps.engine import Engine, as_dagster_failure, connected_engine
from repl_assets.steps.repair import NOT_REPAIRED, Failures, repair_table
from repl_assets.typed import log_evaluation, single_op_job


def repair_job_name(names: Names, database: str) -> str:
    """Name of a database's repair job."""
    return names.local(f"repair_{database}")


def repair_request(
    names: Names, database: str, table: str, partitions: Iterable[str], *, run_key: str, checks: Iterable[str] = ()
) -> dg.RunRequest:
    """A run of the job for partitions of a table (all where none is named), and for checks of it afterwards.

    It ends no undo that was asked for before it begins, and repairs nothing that is paused then, or where nobody has approved it.
    """
    config = {"table": table, "partitions": list(partitions), "checks": list(checks), "unless_undone": True}
    return dg.RunRequest(
        run_key=run_key,
        job_name=repair_job_name(names, database),
        run_config={"ops": {_op_name(names, database): {"config": config}}},
        tags={POLICY_TAG: names.policy, DATABASE_TAG: database},
    )


def _op_name(names: Names, database: str) -> str:
    return names.local(f"repair_{database}__partitions")


def _asked(config: Mapping[str, Any], enabled: Iterable[TableCheck]) -> tuple[str, tuple[str, ...], list[TableCheck]]:
    """The table, its partitions and checks that the job's configuration names; a table as Hive has it, whatever its case there.

    Raises:
        BadRequest: it names partitions or checks without their table, or a check that the policy does not enable.
    """
    table, partitions = str(config["table"]).strip().lower(), tuple(map(str, config["partitions"]))
    checks = {check.name: check for check in enabled}
    wanted = list(map(str, config["checks"]))
    if not table and (partitions or wanted):
        raise BadRequest("the configuration names partitions or checks: name their table, too")
    if unknown := [name for name in wanted if name not in checks]:
        raise BadRequest(f"the policy enables no check {', '.join(unknown)} of tables; it enables {', '.join(checks) or 'none'}")
    return table, partitions, [check for name, check in checks.items() if name in wanted]


def _repair_held(
    context: dg.OpExecutionContext, engine: Engine, names: Names, database: CatalogDatabase, state: ReplicaState
) -> None:
    """Repairs the tables that are held, as the job does where its configuration names none: no undo ends that nobody named."""
    target = engine.target_name(database.name)
    left = {name: why_left_held(state, name, database.name, target) for name in sorted(state.held)}
    for name, why in left.items():
        if why:
            context.log.warning("%s is not repaired: %s", name, why)
    held = [name for name, why in left.items() if not why]
    if not held:
        context.log.info(
            "no table of %s is held that this job repairs: name a table in its configuration to repair it all the same",
            database.name,
        )
    failures = Failures(context)
    for table in held:
        with failures.of(table):
            repair_table(context, engine, names, database, state, table)
    failures.raise_any()


def _require_no_approval(specs: Specs, database: CatalogDatabase, table: str) -> None:
    """Fails where nothing is loaded that no operator has seen: what a sensor has found is no event of an approved window."""
    if specs.policy.approval:
        raise dg.Failure(
            f"{table} differs from the source, and is repaired only by hand, since the policy asks for approval: materialize "
            f"{table}, or hive-repl repair {database.name}.{table}"
        )


def _require_not_stopped(engine: Engine, database: CatalogDatabase, state: ReplicaState, table: str) -> None:
    """Fails where an operator paused the database, or undid it or the table, maybe while the run waited for its turn.

    Then none has asked for the repair, or for the undo's end.
    """
    name, target = database.name, engine.target_name(database.name)
    with as_dagster_failure():
        refuse_undone(state, target)
    if state.paused:
        again = f"once it is resumed (hive-repl resume {name}), materialize {table}, or hive-repl repair {name}.{table}"
        raise dg.Failure(f"{table} {NOT_REPAIRED} {name} was paused {state.paused}, before this repair began: {again}")
    if state.stands_with_undo(table):
        raise dg.Failure(f"{table} {NOT_REPAIRED} {why_left_held(state, table, name, target)}")


def repair_job(specs: Specs, database: CatalogDatabase) -> dg.JobDefinition:
    """``repair_<db>``: dumps partitions of a table (all where none is named) as they are now, and replaces what differs."""
    names = specs.names

    @dg.op(
        name=_op_name(names, database.name),
        config_schema={
            "table": dg.Field(str, default_value="", description="The table; where it is empty, all that are held but undone"),
            "partitions": dg.Field([str], default_value=[], description="Of the table; where none is named, all"),
            "checks": dg.Field([str], default_value=[], description="Checks of the table to run again after the repair"),
            "unless_undone": dg.Field(
                bool, default_value=False, description="Fail where it was undone, is paused, or needs approval"
            ),
        },
        required_resource_keys=names.resources,
        pool=names.load_pool(database.name),
        out=dg.Out(dg.Nothing),
    )
    def repair(context: dg.OpExecutionContext) -> None:
        with as_dagster_failure():
            table, partitions, checks = _asked(context.op_config, enabled_checks(specs.policy))
        engine = connected_engine(context, names)
        with as_dagster_failure():
            state = engine.state(database.name)
        try:
            if context.op_config["unless_undone"]:
                _require_not_stopped(engine, database, state, table)
                _require_no_approval(specs, database, table)
            if not table:
                _repair_held(context, engine, names, database, state)
                return
            repair_table(context, engine, names, database, state, table, partitions)
        finally:
            record_held(context, engine, specs, database, repaired=True)
        examiner = Examiner(engine.connection, specs.policy, database.name)
        for check in checks:
            key = EvaluationKey.of(names, database.name, table, check.name)
            again = with_failed(partitions or None, last_failure(context.instance, key))
            with as_dagster_failure():
                answer = check.find(examiner, table, again).evaluation(key, again)
            log_evaluation(context, answer)

    return single_op_job(
        repair,
        name=repair_job_name(names, database.name),
        description=f"Dumps partitions of one table of {database.name} as they are now and replaces in the replica what differs.",
        tags={POLICY_TAG: names.policy, DATABASE_TAG: database.name} | metastore_tags(specs.policy),
    )
