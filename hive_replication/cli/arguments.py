"""Arguments that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

from hive_replication.cli.completion import databases, objects
from hive_replication.errors import BadRequest

#: Seconds for which an option may let wait: Python cannot sleep for ever.
LONGEST = 10**9


def database_name(text: str | None) -> str | None:
    """Callback of arguments that name a database: else a table's name, or the empty variable of a script, would pass for one.

    Raises:
        BadRequest: it is no such name.
    """
    from hive_replication.statements.parser import parse_name

    if text is not None and parse_name(text)[1] is not None:
        raise BadRequest(f"{text!r} names a table: this command takes a database")
    return text


SourceDatabase = Annotated[
    str,
    typer.Argument(
        metavar="DB", help="Name on the source.", autocompletion=databases, callback=database_name, show_default=False
    ),
]
SourceObject = Annotated[
    str, typer.Argument(metavar="DB[.TABLE]", help="Name on the source.", autocompletion=objects, show_default=False)
]
CompareOnly = Annotated[bool, typer.Option("--dry-run", help="Compare only; change nothing.", show_default=False)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.", show_default=False)]
