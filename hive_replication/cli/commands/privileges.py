"""``privileges``: grants on a replica, and the roles that have them, as at the source."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from hive_replication.cli.arguments import SourceDatabase
from hive_replication.cli.settings import Config, Json, settings

if TYPE_CHECKING:
    from hive_replication import PrivilegeReport

Apply = Annotated[bool, typer.Option("--apply", help="Grant and revoke what differs.", show_default=False)]
_COLUMNS = ("change", "what", "on", "whom", "grantor")


def privileges(
    context: typer.Context, name: SourceDatabase, apply: Apply = False, config: Config = None, json: Json = False
) -> None:
    """Compares grants and roles of the metastore with those of the source.

    Shows what would be granted and revoked on the target, as privileges in the policy says; --apply does it. Exit code 1 if
    something differs still.
    """
    from hive_replication import privileges as privileges_of

    chosen = settings(context, config, json)
    report = privileges_of(chosen.connect(), name, apply=apply)
    rows = list(report.rows())
    data = {
        "database": report.database,
        "apply": apply,
        "changes": [dict(zip(_COLUMNS, row, strict=True)) for row in rows],
        "done": dict(report.numbers),
        "problems": list(report.problems),
        "exit_code": report.exit_code,
    }
    chosen.output.table(_COLUMNS, rows, data)
    chosen.output.remark(*_remarks(report, apply=apply))
    raise typer.Exit(report.exit_code)


def _remarks(report: PrivilegeReport, *, apply: bool) -> list[str]:
    done = ", ".join(f"{what}: {number}" for what, number in report.numbers.items())
    if not (report.found or report.problems):
        return [f"grants and roles of {report.database} are as at the source"]
    advice = [] if apply or not report.found else [f"{report.database} is left as it is: --apply grants and revokes this"]
    return [*report.problems, *([f"{report.database}: {done}"] if done else []), *advice]
