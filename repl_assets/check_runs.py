"""Checks apart from loads: of tables that are partitions of one asset, and of all tables of a policy by its schedule."""

# No postponed annotations here: Dagster compares those of contexts as types.
import warnings
from collections.abc import Iterator, Sequence

import dagster as dg

from hive_replication.errors import ReplicationError, Unreachable
from repl_assets.catalog import CatalogDatabase
from repl_assets.checks import last_failure, strays_found
from repl_assets.keys import POLICY_TAG, Names, partition_name
from repl_assets.reporting import asset_url, markdown_table
from repl_assets.specs import Specs
from repl_assets.table_checks import Examiner, Finding, Place, TableCheck, checks_of
from repl_assets.work import Work, failures
from repl_assets.worker import tag_run


def overflow_checks(specs: Specs, database: CatalogDatabase) -> Iterator[dg.AssetChecksDefinition]:
    """The checks of tables of a database in overflow: a table is a partition, with an answer of its own."""
    for check in checks_of(specs.policy):
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
        name=names.local(f"{database.name}__{check.name}"),
        specs=[spec],
        can_subset=True,
        required_resource_keys={names.connection},
    )
    def examine(context: dg.AssetCheckExecutionContext) -> Iterator[dg.AssetCheckResult]:
        work = Work.of(getattr(context.resources, names.connection), context.log)
        examiner = Examiner(work.connection, specs.policy, database.name)
        if not context.has_partition_key:  # started by hand, of all tables
            with failures():
                answers = list(_of_tables(work, specs, database, check, _present(work, database)))
            # Dagster takes no result of a check with partitions in a run without one, but events of it.
            for answer in (*answers, _together(answers).evaluation(Place(spec.key))):
                context.op_execution_context.log_event(answer)  # type: ignore[arg-type] (it takes more than it says)
            return
        table = partition_name(context.partition_key)
        repair = bool(context.run.asset_selection)
        if repair and check.spark and last_failure(context.instance, Place.of(names, database.name, table, check)) is None:
            return
        with failures():
            finding = check.answered(examiner, table)
        if finding is not None:
            yield finding.result(spec)

    return examine


def checks_job_name(names: Names) -> str:
    """Name of the job that answers all checks of tables and databases."""
    return names.local("checks")


def checks_job(specs: Specs, databases: Sequence[CatalogDatabase]) -> dg.JobDefinition:
    """``checks``: answers the policy's checks of all tables that Dagster shows, one after another, and looks for strays."""
    names = specs.names

    @dg.op(
        name=names.local("checks__all"),
        required_resource_keys={names.connection},
        pool=names.local("checks"),
        out=dg.Out(dg.Nothing),
    )
    def checks(context: dg.OpExecutionContext) -> Iterator[dg.Output[None]]:
        tag_run(context)
        work = Work.of(getattr(context.resources, names.connection), context.log)
        answers: list[dg.AssetCheckEvaluation] = []
        errors: list[str] = []
        with failures():
            for answer in (one for database in databases for one in _answers(work, specs, database, errors)):
                context.log_event(answer)  # type: ignore[arg-type] (it takes more than it says)
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
        if errors:
            raise dg.Failure(f"{len(errors)} checks have no answer: {errors[0]}")

    @dg.job(
        name=checks_job_name(names),
        description=f"Answers the checks of all tables of policy {names.policy}, and looks for strays.",
        tags={POLICY_TAG: names.policy, "dagster/priority": "-10"},
    )
    def job() -> None:
        checks()

    return job


def _answers(work: Work, specs: Specs, database: CatalogDatabase, errors: list[str]) -> Iterator[dg.AssetCheckEvaluation]:
    """The answers of a database's checks; what has none is told in ``errors``."""
    tables = _present(work, database)
    for check in checks_of(specs.policy):
        answers: list[dg.AssetCheckEvaluation] = []
        for table in tables:
            try:
                for answer in _of_tables(work, specs, database, check, [table]):
                    answers.append(answer)
                    yield answer
            except Unreachable:
                raise
            except ReplicationError as error:
                work.log.warning("%s of %s.%s has no answer: %s", check.name, database.name, table, error)
                errors.append(f"{check.name} of {database.name}.{table}: {error}")
        if database.overflow and tables:
            yield _together(answers).evaluation(Place(dg.AssetCheckKey(specs.names.tables(database.name), check.name)))
    if "no_strays" in specs.policy.checks.run and tables:
        yield strays_found(work.connection, database.name).evaluation(
            Place(dg.AssetCheckKey(specs.names.database(database.name, "load"), "no_strays"))
        )


def _of_tables(
    work: Work, specs: Specs, database: CatalogDatabase, check: TableCheck, tables: Sequence[str]
) -> Iterator[dg.AssetCheckEvaluation]:
    examiner = Examiner(work.connection, specs.policy, database.name)
    for table in tables:
        if finding := check.answered(examiner, table):
            yield finding.evaluation(Place.of(specs.names, database.name, table, check))


def _together(answers: Sequence[dg.AssetCheckEvaluation]) -> Finding:
    """The answer of a check for all tables of a database in overflow."""
    failed = [answer for answer in answers if not answer.passed]
    rows = [(_link(one), one.description or "") for one in failed]
    table = {"not passed": markdown_table(("table", "what"), rows, len(rows))} if rows else {}
    return Finding({"tables": len(answers), "tables not passed": len(failed), **table}, passed=not failed)


def _present(work: Work, database: CatalogDatabase) -> list[str]:
    """Tables of the replica that Dagster shows."""
    shown = {table.name for table in database.tables}
    if work.state(database.name).applied is None:
        return []
    return [table for table in work.tables(database.name) if database.overflow or table in shown]


def _link(answer: dg.AssetCheckEvaluation) -> str:
    return f"[{answer.partition or answer.asset_key.path[-1]}]({asset_url(answer.asset_key, answer.partition)})"
