"""Arguments that several commands take."""

from __future__ import annotations

from typing import Annotated

import typer

from hive_replication.cli.completion import databases, objects

#: Seconds for which an option may let wait: Python cannot sleep for ever.
LONGEST = 10**9

SourceDatabase = Annotated[
    str, typer.Argument(metavar="DB", help="Name on the source.", autocompletion=databases, show_default=False)
]
SourceObject = Annotated[
    str, typer.Argument(metavar="DB[.TABLE]", help="Name on the source.", autocompletion=objects, show_default=False)
]
CompareOnly = Annotated[bool, typer.Option("--dry-run", help="Compare only; change nothing.", show_default=False)]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Only show what would be done.", show_default=False)]
