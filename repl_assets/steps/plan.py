"""Plans of loads: the report of a plan, and whether a window is approved as it was planned."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import dagster as dg

from hive_replication.errors import BadRequest, Refused
from hive_replication.load.command import plan_load
from hive_replication.load.replica.policy_scope import changed
from hive_replication.plans import PlanReport, as_html, as_markdown, plan_report
from hive_replication.plans.approval import Approvals, PlannedWindow, more_than_applied, steps
from hive_replication.progress import LoggedProgress
from hive_replication.statements import ReplLoad
from hive_replication.units import count, duration, size
from repl_assets.catalog.keys import Window
from repl_assets.catalog.specs import Specs
from repl_assets.recording.metadata import text_of
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


def dump_to_load(
    specs: Specs, engine: Engine, database: str, window: Window, made: Callable[[], dg.AssetMaterialization]
) -> tuple[dg.AssetMaterialization, bool]:
    """The dump that a run loads, and whether that is the dump of an approved window.

    Where the policy asks for approval, only what was approved before is loaded without one: a held lane catches up, or an
    operator repeats a window. Whether it is no more than that says the dump, not the window that it was made for: after a gap,
    for example, it is of the database as it is now.

    Args:
        specs: of the policy.
        engine: connected.
        database: source database.
        window: of the run.
        made: the latest dump of the window.

    Raises:
        Failure: the window or its dump is not approved, its load would now do more than was planned, or its dump is gone.
    """
    if not specs.policy.approval:
        return made(), False
    with as_dagster_failure():
        state, planned = engine.state(database), Approvals.of(specs.policy).waiting(engine.target_name(database))
    if planned is not None and planned.window == str(window) and planned.approved:
        return _as_approved(specs, engine, database, planned), True
    if state.applied is None or window.end > state.applied or changed(state, engine.connection.source, database):
        raise dg.Failure(
            f"the window {window} of {database} is not approved: materialize {database}__approval, "
            f"or hive-repl approve {database} {window}"
        )
    dump = made()
    with as_dagster_failure():
        more = more_than_applied(engine.connection.target, engine.connection.store, state, text_of(dump.metadata, "directory"))
    if more:
        raise dg.Failure(
            f"the dump of the window {window} of {database} is not approved, and {more}: materialize {database}__dump and "
            f"{database}__plan of the window, then {database}__approval and {database}__load; or repair the tables that are held"
        )
    return dump, False


def _as_approved(specs: Specs, engine: Engine, database: str, planned: PlannedWindow) -> dg.AssetMaterialization:
    """The dump of an approved window, if its load does no more than was planned."""
    approvals, target = Approvals.of(specs.policy), engine.target_name(database)
    with as_dagster_failure():
        try:
            plan = _plan(engine, database, planned.directory, planned.kind)
        except (BadRequest, Refused):  # no try loads this dump: it is dumped and planned anew
            approvals.withdraw(target, planned.window)
            raise
        added = sorted(set(steps(plan)) - set(planned.steps))
        if added:
            approvals.withdraw(target, planned.window)
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
