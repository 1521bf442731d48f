"""Results on stdout: a table on a terminal, tab-separated lines with bare figures in a pipe, JSON if asked; remarks on stderr."""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hive_replication.logs import printable, printable_lines
from hive_replication.units import Figure

if TYPE_CHECKING:
    from rich.table import Table

_SHORT, _LONG = 14, 12  # characters: a cell up to _SHORT stays on one line if longer ones get _LONG
_SENTENCE = 24  # characters: sentences in a last column that would be narrower go below the table
# What JSON leaves as it is: delete, the second set of control characters, and those that turn the direction of text.
_CONTROLS = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
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
        elif self.terminal:
            from rich.console import Console

            Console().print(drawn(columns, rows))
        else:
            for row in rows:
                print("\t".join(printable(" ".join(_bare(cell).split())) for cell in row))

    def data(self, data: object) -> None:
        """Prints data as JSON where it was asked for: of commands that have no table."""
        if self.json:
            print_json(data)

    @property
    def terminal(self) -> bool:
        """Whether tables are drawn for a person."""
        return not self.json and sys.stdout.isatty()

    def remark(self, *lines: str) -> None:
        """Prints lines for people on stderr; nothing where JSON was asked for."""
        if not self.json:
            for line in lines:
                print(printable_lines(line), file=sys.stderr)

    def failure(self, why: str) -> None:
        """Says why there is no result this time, of a command that goes on: on stderr, or among its JSON.

        Args:
            why: one sentence.
        """
        if self.json:
            print_json({"error": why})
        self.remark(why)

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
    """A table for terminals, without columns that are empty; cells as for :meth:`Output.table`."""
    from rich.table import Table
    from rich.text import Text

    table, shown = Table(title=title, title_justify="left"), [[_text(cell) for cell in row] for row in rows]
    filled = [number for number in range(len(columns)) if not shown or any(row[number] for row in shown)]
    widths = {number: max((len(row[number]) for row in shown), default=0) for number in filled}
    if len(filled) > 2 and widths[filled[-1]] > _SHORT and _room(columns, widths) < _SENTENCE:
        del widths[last := filled.pop()]
        table.caption, table.caption_justify = (
            Text("\n".join(f"{row[filled[0]]}: {row[last]}" for row in shown if row[last])),
            "left",
        )
    needed = sum(3 + (width if width <= _SHORT else _LONG) for width in widths.values())
    for number, width in widths.items():
        cells, short = [row[number] for row in shown], width <= _SHORT and needed < shutil.get_terminal_size().columns
        table.add_column(
            columns[number].replace(" ", "\n") if short else columns[number],
            overflow="fold",  # a path that is cut off cannot be copied
            justify="right" if cells and all(map(_FIGURE.fullmatch, cells)) else "left",
            no_wrap=short,
        )
    for row in shown:
        table.add_row(*(Text(row[number]) for number in filled))
    return table


def _room(columns: Sequence[str], widths: Mapping[int, int]) -> int:
    """Characters that are left for the last of these columns."""
    *others, _ = widths.items()
    words = {number: max(map(len, columns[number].split()), default=0) for number, _ in others}
    taken = sum(3 + max(words[number], width if width <= _SHORT else _LONG) for number, width in others)
    return shutil.get_terminal_size().columns - taken - 4


def print_json(data: object) -> None:
    """Prints one JSON document on stdout."""
    print(json_text(data))


def json_text(data: object) -> str:
    """One JSON document on one line, in which no character steers a terminal."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", json.dumps(data, ensure_ascii=False))


def _plain(cell: object) -> str:
    return "" if cell is None else str(cell)


def _bare(cell: object) -> str:
    """A cell in a pipe: figures without their units, times with their zone."""
    return _plain(cell.value if isinstance(cell, Figure) else cell)


def _text(cell: object) -> str:
    return printable_lines(_plain(cell))
