"""``plan``: what a load would do, as a table or as a report; ``approve``: that a planned window may be loaded."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hive_replication.cli.commands.statements import Words
from hive_replication.cli.completion import databases
from hive_replication.cli.output import json_text
from hive_replication.cli.progress import shown
from hive_replication.cli.settings import Config, Json, settings
from hive_replication.cli.words import statement
from hive_replication.errors import BadRequest
from hive_replication.units import when

if TYPE_CHECKING:
    from hive_replication.plans import PlanReport

Form = Literal["json", "markdown", "html"]
Format = Annotated[
    Form | None, typer.Option("--format", help="Of the report; by default as the ending of --output says.", show_default=False)
]
Output = Annotated[
    Path | None, typer.Option("--output", metavar="FILE", help="Write the report to a file.", show_default=False, dir_okay=False)
]
Name = Annotated[str, typer.Argument(metavar="DB", help="Name on the source.", autocompletion=databases, show_default=False)]
Window = Annotated[str | None, typer.Argument(metavar="[WINDOW]", help="e.g. 170-1400 or bootstrap-170", show_default=False)]
_ENDINGS: dict[str, Form] = {".json": "json", ".md": "markdown", ".html": "html", ".htm": "html"}


def plan(
    context: typer.Context,
    words: Words = None,
    form: Format = None,
    output: Output = None,
    config: Config = None,
    json: Json = False,
) -> None:
    """Shows what a REPL LOAD would do; changes nothing.

    The operations of each lane in order with their files, what is in the way, why events would be skipped, and how long it may
    take. Takes a whole REPL LOAD statement, or what follows its LOAD: [<db>[.<table>]] FROM <dir> [TO <evid>].
    """
    from hive_replication.statements import ReplLoad, parse

    text = statement(words or [])
    parsed = parse(text if text[:5].upper().strip() == "REPL" else f"REPL LOAD {text}")
    if not isinstance(parsed, ReplLoad):
        raise BadRequest("only a REPL LOAD has a plan to show")
    wanted = _form(form, output)
    from hive_replication.load.command import plan_load
    from hive_replication.plans import figures, plan_report
    from hive_replication.plans.rows import COLUMNS

    chosen = settings(context, config, json)
    connection = chosen.connect()
    with shown() as progress:
        planned = plan_load(connection.target, parsed, connection.store, source=connection.source.metastore)
        report = plan_report(connection.target, planned, progress=progress)
    if wanted is not None:
        _write(_text(report, wanted), output)
    if wanted is None or (output and chosen.json):
        parts = [[row.cells for row in report.rows if bool(row.reason) == left] for left in (False, True)]
        for cells in filter(None, parts) if chosen.output.terminal else [[row.cells for row in report.rows]]:
            chosen.output.table(COLUMNS, cells, report.data())
        chosen.output.remark(*(f"{name}: {value}" for name, value in figures(report)))


def _form(form: Form | None, output: Path | None) -> Form | None:
    """The format of the report, or None for a table.

    Raises:
        BadRequest: a file is named whose format is not known.
    """
    if form is None and output is not None:
        form = _ENDINGS.get(output.suffix.lower())
        if form is None:
            raise BadRequest(f"the format of {output} is not known: end its name with .html, .md or .json, or give --format")
    return form


def _text(report: PlanReport, form: Form) -> str:
    from hive_replication.plans import as_html, as_markdown

    if form == "json":
        return json_text(report.data()) + "\n"
    return as_html(report) if form == "html" else as_markdown(report)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        print(text, end="")
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadRequest(f"cannot write {output}: {error.strerror}") from error
    print(f"{output} written", file=sys.stderr)


def approve(context: typer.Context, name: Name, window: Window = None, config: Config = None, json: Json = False) -> None:
    """Approves the window that was planned for a database, or shows which one waits.

    For policies with approval: nothing of a window is loaded before. The sensor starts its load with the next tick. To reject a
    window, pause the database.
    """
    from hive_replication.plans.approval import Approvals
    from hive_replication.process import user

    chosen = settings(context, config, json)
    policy = chosen.policy()
    if not policy.approval:
        raise BadRequest("windows are loaded without approval: the policy does not set approval")
    approvals, target = Approvals.of(policy), policy.target_of(name.lower())
    if window is not None:
        found = approvals.approve(target, window, user())
        chosen.output.remark(f"{window} of {name} is approved: {found.summary}")
        chosen.output.table((), (), {"approved": window})
        return
    waits = approvals.waiting(target)
    rows = [(waits.window, when(waits.planned), waits.summary, waits.directory, waits.approved)] if waits else []
    data = [{"window": row[0], "planned": row[1], "plan": row[2], "dump": row[3], "approved": row[4]} for row in rows]
    chosen.output.table(("window", "planned", "plan", "dump", "approved"), rows, data)
