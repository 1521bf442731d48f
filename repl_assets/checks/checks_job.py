"""Checks of databases in overflow, and the job that runs all checks of a policy, by schedule or by hand."""

# No postponed annotations here: Dagster compares those of contexts as types.
import warnings
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager

import dagster as dg

from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.markdown import link
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import AFTER_OTHERS, NO_STRAYS, POLICY_TAG, Names, partition_name
from repl_assets.catalog.specs import Specs
from repl_assets.checks.examiner import Examiner
from repl_assets.checks.findings import EvaluationKey, Finding, last_failure
from repl_assets.checks.no_strays import find_no_strays
from repl_assets.checks.table_checks import TableCheck, enabled_checks
from repl_assets.recording.metadata import asset_url, markdown_table
from repl_assets.steps.engine import Engine, as_dagster_failure, connected_engine
from repl_assets.typed import log_evaluation, single_op_job


def overflow_checks(specs: Specs, database: CatalogDatabase) -> Iterator[dg.AssetChecksDefinition]:
    """The checks of tables of a database in overflow: each table is a partition with a result of its own."""
    for check in enabled_checks(specs.policy):
        yield _overflow_check(specs, database, check)


def _overflow_check(specs: Specs, database: CatalogDatabase, check: TableCheck) -> dg.AssetChecksDefinition:
    names = specs.names
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dg.PreviewWarning)  # checks with partitions are in preview
        spec = dg.AssetCheckSpec(
            check.name,
            asset=names.tables(database.name),
            description=f"{check.description} Each table has an answer of its own.",
            blocking=check.name in specs.policy.checks.blocking,
            partitions_def=names.table_partitions(database.name),
        )

    @dg.multi_asset_check(
        name=names.of_database(database.name, check.name),
        specs=[spec],
        can_subset=True,
        required_resource_keys=names.resources,
    )
    def examine(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        engine = connected_engine(context, names)
        examiner = Examiner(engine.connection, specs.policy, database.name)
        if not context.has_partition_key:  # started by hand, of all tables
            errors: list[str] = []
            with as_dagster_failure():
                answers = list(_evaluate(engine, examiner, names, check, _replicated_tables(engine, database) or (), errors))
            # Dagster takes no result of a check with partitions in a run without one, but events of it.
            for answer in (*answers, _summary(answers).evaluation(EvaluationKey(spec.key))):
                log_evaluation(context.op_execution_context, answer)
            _require_answers(errors)
            return
        table = partition_name(context.partition_key)
        repair = bool(context.run.asset_selection)
        key = EvaluationKey.of(names, database.name, table, check.name)
        if repair and check.spark and last_failure(context.instance, key) is None:
            return
        with as_dagster_failure():
            finding = check.find_in_table(examiner, table)
        if finding is not None:
            yield finding.result(key)

    return examine


def checks_job_name(names: Names) -> str:
    """Name of the job that runs all checks of tables and databases."""
    return names.local("checks")


def checks_job(specs: Specs, databases: Sequence[CatalogDatabase]) -> dg.JobDefinition:
    """``checks``: runs the policy's checks of all tables that Dagster shows, one after another, and looks for strays."""
    names = specs.names

    @dg.op(
        name=names.local("checks__all"),
        required_resource_keys=names.resources,
        pool=names.local("checks"),
        out=dg.Out(dg.Nothing),
    )
    def checks(context: dg.OpExecutionContext) -> Iterator[dg.Output[None]]:
        engine = connected_engine(context, names)
        answers: list[dg.AssetCheckEvaluation] = []
        errors: list[str] = []
        with as_dagster_failure():
            for answer in (one for database in databases for one in _evaluate_database(engine, specs, database, errors)):
                log_evaluation(context, answer)
                answers.append(answer)
        failed = [answer for answer in answers if not answer.passed]
        rows = [(_link(one), one.check_name, one.description or "") for one in failed]
        yield dg.Output(
            None,
            metadata={
                "checks passed": len(answers) - len(failed),
                "checks not passed": len(failed),
                "not passed": markdown_table(("table", "check", "what"), rows, len(rows)),
            },
        )
        _require_answers(errors)

    return single_op_job(
        checks,
        name=checks_job_name(names),
        description=f"Answers the checks of all tables of policy {names.policy}, and looks for strays.",
        tags={POLICY_TAG: names.policy, **AFTER_OTHERS},
    )


def _evaluate_database(
    engine: Engine, specs: Specs, database: CatalogDatabase, errors: list[str]
) -> Iterator[dg.AssetCheckEvaluation]:
    """Runs a database's checks; those that fail to run are added to ``errors``."""
    tables: list[str] | None = None
    with _noted(engine, f"every check of {database.name}", errors):
        tables = _replicated_tables(engine, database)
    if tables is None:
        return
    examiner = Examiner(engine.connection, specs.policy, database.name)
    for check in enabled_checks(specs.policy):
        answers: list[dg.AssetCheckEvaluation] = []
        for answer in _evaluate(engine, examiner, specs.names, check, tables, errors):
            answers.append(answer)
            yield answer
        if database.overflow:
            yield _summary(answers).evaluation(EvaluationKey(dg.AssetCheckKey(specs.names.tables(database.name), check.name)))
    if NO_STRAYS in specs.policy.checks.run:
        with _noted(engine, f"{NO_STRAYS} of {database.name}", errors):
            yield find_no_strays(examiner).evaluation(EvaluationKey.of_database(specs.names, database.name, NO_STRAYS))


@contextmanager
def _noted(engine: Engine, what: str, errors: list[str]) -> Generator[None]:
    """Adds what has no answer to ``errors``, so that others are answered; but where a server does not answer."""
    try:
        yield
    except Unreachable:
        raise
    except ReplicationError as error:
        engine.log.warning("%s has no answer: %s", what, error)
        errors.append(f"{what}: {error}")


def _require_answers(errors: Sequence[str]) -> None:
    if errors:
        raise dg.Failure(f"{len(errors)} checks have no answer: {errors[0]}")


def _evaluate(
    engine: Engine, examiner: Examiner, names: Names, check: TableCheck, tables: Sequence[str], errors: list[str]
) -> Iterator[dg.AssetCheckEvaluation]:
    for table in tables:
        with _noted(engine, f"{check.name} of {examiner.database}.{table}", errors):
            if finding := check.find_in_table(examiner, table):
                yield finding.evaluation(EvaluationKey.of(names, examiner.database, table, check.name))


def _summary(answers: Sequence[dg.AssetCheckEvaluation]) -> Finding:
    """The result of a check for all tables of a database in overflow."""
    failed = [answer for answer in answers if not answer.passed]
    rows = [(_link(one), one.description or "") for one in failed]
    table = {"not passed": markdown_table(("table", "what"), rows, len(rows))} if rows else {}
    return Finding({"tables": len(answers), "tables not passed": len(failed), **table}, passed=not failed)


def _replicated_tables(engine: Engine, database: CatalogDatabase) -> list[str] | None:
    """Tables of the replica that Dagster shows, and those that it lacks; None where there is no finished replica."""
    shown = {table.name for table in database.tables}
    if engine.state(database.name).applied is None:
        return None
    tables = sorted({*engine.tables(database.name), *engine.lacking(database.name)})
    return [table for table in tables if database.overflow or table in shown]


def _link(answer: dg.AssetCheckEvaluation) -> str:
    return link(answer.partition or answer.asset_key.path[-1], asset_url(answer.asset_key, answer.partition))
