"""Plans before loads: the job that plans a database's next window, and the assets of policies whose windows are approved."""

# No postponed annotations here: Dagster compares those of contexts as types.
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import dagster as dg

from hive_replication.load.command import plan_load
from hive_replication.plans import PlanReport, as_html, as_markdown, plan_report
from hive_replication.plans.approval import Approvals, PlannedWindow, steps
from hive_replication.statements import ReplDump, ReplLoad
from hive_replication.units import count, duration, size
from repl_assets.catalog import CatalogDatabase
from repl_assets.keys import POLICY_TAG, Window
from repl_assets.specs import Specs
from repl_assets.windows import dump_of, window_of, work_of
from repl_assets.work import LoggedProgress, Work, failures

_ROWS = 50  # of a table in metadata; the HTML report has more


@dataclass(frozen=True)
class WrittenPlan:
    """A plan with its report.

    Args:
        report: what the load would do.
        metadata: for Dagster, the report as Markdown among it.
    """

    report: PlanReport
    metadata: dict[str, Any]

    @property
    def summary(self) -> str:
        """One line for operators."""
        done, files = sum(self.report.operations.values()), sum(self.report.files.values())
        about = duration(self.report.estimate.seconds)
        return f"{count(done, 'operation')}, {count(files, 'file')} ({size(self.report.bytes)}), about {about}"


def plan_job(specs: Specs, database: CatalogDatabase) -> dg.JobDefinition:
    """``plan_<db>``: dumps what a window up to now would bring, and reports what its load would do."""
    names = specs.names

    @dg.op(name=names.local(f"plan_{database.name}__report"), required_resource_keys={names.connection}, out=dg.Out(dg.Nothing))
    def plan(context: dg.OpExecutionContext) -> None:
        work = work_of(context, names)
        with failures():
            state, current = work.state(database.name), work.connection.source.metastore.current_event_id()
            window = Window(state.applied, max(current, state.applied or 0))
            dump = work.dump(ReplDump(database.name, None, window.start, window.end if window.start is not None else None))
        written = _written(work, database.name, str(window), dump.directory, dump.header.kind)
        context.log_event(dg.AssetObservation(names.database(database.name, "load"), metadata=written.metadata))
        context.log.info("the load of %s would do: %s", window, written.summary)

    @dg.job(
        name=names.local(f"plan_{database.name}"),
        description=f"Reports what the next load of {database.name} would do; changes nothing on the target.",
        tags={POLICY_TAG: names.policy},
    )
    def job() -> None:
        plan()

    return job


def approval_assets(specs: Specs, database: CatalogDatabase) -> Iterator[dg.AssetsDefinition]:
    """``<db>__plan`` and ``<db>__approval`` where the policy asks for approval; else none."""
    if specs.policy.approval:
        yield _plan_asset(specs, database)
        yield _approval_asset(specs, database)


def approved_dump(specs: Specs, work: Work, database: str, window: Window) -> dg.AssetMaterialization | None:
    """The dump that a window's load may take, as it was planned and approved; None where no approval is needed.

    What lies behind the replica was approved before: it is a held lane that catches up, or is repeated by hand.

    Raises:
        Failure: the window is not approved, or its load would do something now that was not planned.
    """
    target = work.target_name(database)
    with failures():
        applied = work.state(database).applied
        if not specs.policy.approval or (applied is not None and window.end <= applied):
            return None
        approvals = Approvals.of(specs.policy)
        planned = approvals.waiting(target)
    if planned is None or planned.window != str(window) or not planned.approved:
        raise dg.Failure(
            f"the window {window} of {database} is not approved: materialize {database}__approval, "
            f"or hive-repl approve {database} {window}"
        )
    with failures():
        plan = _plan(work, database, planned.directory, planned.kind)
        more = sorted(set(steps(plan)) - set(planned.steps))
        if more:
            approvals.withdraw(target, str(window))
    if more:
        raise dg.Failure(f"the plan has changed since it was approved, and is made anew: also {'; '.join(more[:5])}")
    metadata = {"directory": dg.MetadataValue.path(planned.directory), "kind": planned.kind, "events": planned.events}
    return dg.AssetMaterialization(specs.names.database(database, "dump"), metadata=metadata)


def _plan_asset(specs: Specs, database: CatalogDatabase) -> dg.AssetsDefinition:
    names = specs.names

    @dg.multi_asset(
        name=names.local(f"{database.name}__plan"),
        specs=[specs.database(database, "plan")],
        required_resource_keys={names.connection},
    )
    def plan(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        window = str(window_of(context))
        dump = dump_of(context, names.database(database.name, "dump"), window)
        work = work_of(context, names)
        directory, kind = (str(dump.metadata[name].value) for name in ("directory", "kind"))
        written = _written(work, database.name, window, directory, kind)
        events = int(str(dump.metadata["events"].value))
        waits = PlannedWindow(window, directory, kind, events, time.time(), written.summary, steps(written.report.plan))
        with failures():
            Approvals.of(specs.policy).wait(work.target_name(database.name), waits)
        return dg.MaterializeResult(metadata=written.metadata)

    return plan


def _approval_asset(specs: Specs, database: CatalogDatabase) -> dg.AssetsDefinition:
    names, target = specs.names, specs.policy.target_of(database.name)

    @dg.multi_asset(name=names.local(f"{database.name}__approval"), specs=[specs.database(database, "approval")])
    def approval(context: dg.AssetExecutionContext) -> dg.MaterializeResult:
        with failures():
            planned = Approvals.of(specs.policy).approve(target, str(window_of(context)), f"run {context.run.run_id[:8]}")
        return dg.MaterializeResult(metadata={"approved": planned.summary, "dump": dg.MetadataValue.path(planned.directory)})

    return approval


def _plan(work: Work, database: str, directory: str, kind: str) -> Any:
    connection, statement = work.connection, ReplLoad(directory, work.target_name(database))
    repair = kind == "bootstrap" and work.state(database).applied is not None  # as the load will
    return plan_load(connection.target, statement, connection.store, repair=repair, source=connection.source.metastore)


def _written(work: Work, database: str, window: str, directory: str, kind: str) -> WrittenPlan:
    """Plans a dump and writes the report beside the dumps."""
    target = work.connection.target
    with failures():
        report = plan_report(target, _plan(work, database, directory, kind), progress=LoggedProgress(work.log))
        html = as_html(report, window=window)
        keep = target.policy.retention_seconds
        uri = Approvals.of(target.policy).report(work.target_name(database), window, html, keep_seconds=keep)
    metadata = {
        "plan": dg.MetadataValue.md(as_markdown(report, window=window, most_rows=_ROWS)),
        "report": dg.MetadataValue.path(uri),
        "operations": sum(report.operations.values()),
        "files": sum(report.files.values()),
        "to copy (MB)": round(report.bytes / 1e6, 6),
        "estimated duration (s)": round(report.estimate.seconds, 1),
    }
    return WrittenPlan(report, metadata)
