"""``plan``: what a load would do, as a table or as a report."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from hive_replication.cli.commands.repl import Words
from hive_replication.cli.output import json_text
from hive_replication.cli.progress import shown
from hive_replication.cli.result_fields import plan_data
from hive_replication.cli.settings import Config, Json, settings
from hive_replication.cli.words import statement
from hive_replication.errors import BadRequest
from hive_replication.logs import printable_lines

if TYPE_CHECKING:
    from hive_replication import PlanReport

Form = Literal["json", "markdown", "html"]
Format = Annotated[
    Form | None, typer.Option("--format", help="Of the report; by default as the ending of --output says.", show_default=False)
]
Output = Annotated[
    Path | None, typer.Option("--output", metavar="FILE", help="Write the report to a file.", show_default=False, dir_okay=False)
]
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

    The operations of each lane in order with their files, conflicts, why events would be skipped, and the estimated time.

    Takes a whole REPL LOAD statement, or what follows its LOAD: [<db>[.<table>]] FROM <dir> [TO <evid>].
    """
    from hive_replication.statements import ReplLoad, parse

    text = statement(words or [])
    parsed = parse(text if text[:5].upper().strip() == "REPL" else f"REPL LOAD {text}")
    if not isinstance(parsed, ReplLoad):
        raise BadRequest("only a REPL LOAD has a plan to show")
    wanted = _form(form, output)
    from hive_replication import plan as plan_of
    from hive_replication.plans import figures
    from hive_replication.plans.plan_rows import COLUMNS

    chosen = settings(context, config, json)
    with shown() as progress:
        report = plan_of(chosen.connect(), parsed.directory, parsed.name, to_evid=parsed.to_evid, progress=progress)
    if wanted is not None:
        _write(_text(report, wanted), output)
    if wanted is None or (output and chosen.json):
        parts = [[row.cells for row in report.rows if bool(row.reason) == left] for left in (False, True)]
        for cells in filter(None, parts) if chosen.output.terminal else [[row.cells for row in report.rows]]:
            chosen.output.table(COLUMNS, cells, plan_data(report))
        chosen.output.remark(*(f"{name}: {value}" for name, value in figures(report)))


def _form(form: Form | None, output: Path | None) -> Form | None:
    """The format of the report, or None for a table.

    Raises:
        BadRequest: a file is named whose format is not known, or whose folder is not there.
    """
    if output is not None and not output.parent.is_dir():
        raise BadRequest(f"cannot write {output}: there is no folder {output.parent}")
    if form is None and output is not None:
        form = _ENDINGS.get(output.suffix.lower())
        if form is None:
            raise BadRequest(f"the format of {output} is not known: end its name with .html, .md or .json, or give --format")
    return form


def _text(report: PlanReport, form: Form) -> str:
    from hive_replication.plans import as_html, as_markdown

    if form == "json":
        return json_text(plan_data(report)) + "\n"
    return as_html(report) if form == "html" else as_markdown(report)


def _write(text: str, output: Path | None) -> None:
    if output is None:
        print(printable_lines(text), end="")
        return
    try:
        output.write_text(text, encoding="utf-8")
    except OSError as error:
        raise BadRequest(f"cannot write {output}: {error.strerror}") from error
    print(f"{output} written", file=sys.stderr)
