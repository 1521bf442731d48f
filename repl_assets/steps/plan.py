"""Plans of loads: the report of a plan, and whether a window is approved as it was planned."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import dagster as dg

from hive_replication.errors import BadRequest
from hive_replication.load.command import plan_load
from hive_replication.load.replica.policy_scope import changed
from hive_replication.plans import PlanReport, as_html, as_markdown, plan_report
from hive_replication.plans.approval import Approvals, steps
from hive_replication.progress import LoggedProgress
from hive_replication.statements import ReplLoad
from hive_replication.units import count, duration, size
from repl_assets.catalog.keys import Window
from repl_assets.catalog.specs import Specs
from repl_assets.steps.engine import Engine, as_dagster_failure

_ROWS = 50  # of a table in metadata; the HTML report has more


@dataclass(frozen=True)
class WrittenPlan:
    """The report of a plan, and how Dagster shows it.

    Args:
        report: what the load would do.
        metadata: figures, and the report as Markdown.
    """

    report: PlanReport
    metadata: dict[str, Any]

    @property
    def summary(self) -> str:
        """One line for operators."""
        done, files = sum(self.report.operations.values()), sum(self.report.files.values())
        about = duration(self.report.estimate.seconds)
        return f"{count(done, 'operation')}, {count(files, 'file')} ({size(self.report.bytes)}), about {about}"


def write_plan(engine: Engine, database: str, window: str, directory: str, kind: str) -> WrittenPlan:
    """Plans the load of a dump and writes the report below the dump root."""
    target = engine.connection.target
    with as_dagster_failure():
        report = plan_report(target, _plan(engine, database, directory, kind), progress=LoggedProgress(engine.log))
        html = as_html(report, window=window)
        keep = target.policy.retention_seconds
        uri = Approvals.of(target.policy).report(engine.target_name(database), window, html, keep_seconds=keep)
    metadata = {
        "plan": dg.MetadataValue.md(as_markdown(report, window=window, most_rows=_ROWS)),
        "report": dg.PathMetadataValue(uri),
        "operations": sum(report.operations.values()),
        "files": sum(report.files.values()),
        "to copy (MB)": round(report.bytes / 1e6, 6),
        "estimated duration (s)": round(report.estimate.seconds, 1),
    }
    return WrittenPlan(report, metadata)


def approved_dump(specs: Specs, engine: Engine, database: str, window: Window) -> dg.AssetMaterialization | None:
    """The dump of an approved window, which its load takes; None if no approval is needed.

    A window that the replica has applied was approved before: a held lane catches up, or an operator repeats it. Not where the
    policy takes other tables than the replica was made with: a window that brings no events brings that change.

    Raises:
        Failure: the window is not approved, its load would now do more than was planned, or its dump is gone.
    """
    if not specs.policy.approval:
        return None
    target = engine.target_name(database)
    with as_dagster_failure():
        state = engine.state(database)
        if state.applied is not None and window.end <= state.applied and not changed(state, specs.policy, database):
            return None
        approvals = Approvals.of(specs.policy)
        planned = approvals.waiting(target)
    if planned is None or planned.window != str(window) or not planned.approved:
        raise dg.Failure(
            f"the window {window} of {database} is not approved: materialize {database}__approval, "
            f"or hive-repl approve {database} {window}"
        )
    with as_dagster_failure():
        try:
            plan = _plan(engine, database, planned.directory, planned.kind)
        except BadRequest:  # no try finds the dump again: it is dumped and planned anew
            approvals.withdraw(target, str(window))
            raise
        added = sorted(set(steps(plan)) - set(planned.steps))
        if added:
            approvals.withdraw(target, str(window))
    if added:
        raise dg.Failure(f"the plan has changed since it was approved, and is made again: also {'; '.join(added[:5])}")
    metadata = {"directory": dg.PathMetadataValue(planned.directory), "kind": planned.kind, "events": planned.events}
    return dg.AssetMaterialization(specs.names.database(database, "dump"), metadata=metadata)


def withdraw_loaded(specs: Specs, engine: Engine, database: str, window: Window) -> None:
    """Deletes the plan of a window that its load has finished, so that its approval serves no later load, as after an undo.

    A bootstrap that was loaded in part keeps it: its load comes again.
    """
    with as_dagster_failure():
        applied = engine.state(database).applied
        if applied is not None and window.end <= applied:
            Approvals.of(specs.policy).withdraw(engine.target_name(database), str(window))


def _plan(engine: Engine, database: str, directory: str, kind: str) -> Any:
    connection, statement = engine.connection, ReplLoad(directory, engine.target_name(database))
    repair = engine.repairs(database, kind)
    return plan_load(connection.target, statement, connection.store, repair=repair, source=connection.source.metastore)
