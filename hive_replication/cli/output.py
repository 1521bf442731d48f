"""Results on stdout: a table on a terminal, tab-separated lines in a pipe, JSON if asked; remarks on stderr."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.table import Table

_FIGURE = re.compile(r"|[0-9][0-9.,]*( \S{1,3})?")  # with its unit, or nothing


@dataclass(frozen=True)
class Output:
    """Where a command's results go.

    Args:
        json: print JSON instead of tables.
    """

    json: bool

    def table(self, columns: Sequence[str], rows: Iterable[Sequence[object]], data: object) -> None:
        """Prints rows, or ``data`` as JSON.

        Args:
            columns: headings, shown on a terminal only.
            rows: cells; None is shown as "".
            data: the same for programs.
        """
        if self.json:
            print_json(data)
        elif sys.stdout.isatty():
            from rich.console import Console

            Console().print(drawn(columns, rows))
        else:
            for row in rows:
                print("\t".join(" ".join(_text(cell).split()) for cell in row))

    def remark(self, *lines: str) -> None:
        """Prints lines for people on stderr; nothing where JSON was asked for."""
        if not self.json:
            for line in lines:
                print(line, file=sys.stderr)

    def notice(self, title: str, columns: Sequence[str], rows: Sequence[Sequence[object]], lines: Iterable[str]) -> None:
        """Shows a table for people on stderr, or as lines; nothing without rows, or where JSON is asked for.

        Args:
            title: of the table.
            columns: headings.
            rows: cells; None is shown as "".
            lines: the same as text.
        """
        if not self.json and rows and sys.stderr.isatty():
            from rich.console import Console

            Console(stderr=True).print(drawn(columns, rows, title))
        elif rows:
            self.remark(*lines)


def drawn(columns: Sequence[str], rows: Iterable[Sequence[object]], title: str | None = None) -> Table:
    """A table for terminals; cells as for :meth:`Output.table`."""
    from rich.table import Table
    from rich.text import Text

    table, shown = Table(title=title, title_justify="left"), [[_text(cell) for cell in row] for row in rows]
    for number, column in enumerate(columns):
        figures = bool(shown) and all(_FIGURE.fullmatch(row[number]) for row in shown)
        # a path that is cut off cannot be copied
        table.add_column(column, overflow="fold", justify="right" if figures else "left")
    for row in shown:
        table.add_row(*map(Text, row))
    return table


def print_json(data: object) -> None:
    """Prints one JSON document on stdout."""
    print(json_text(data))


def json_text(data: object) -> str:
    """One JSON document on one line."""
    return json.dumps(data, ensure_ascii=False)


def _text(cell: object) -> str:
    return "" if cell is None else str(cell)
