"""Markdown of texts that others wrote: names, comments, queries, reasons. Nothing in them may become markup.

All Markdown that Dagster shows, and that reports have, is made here: a text could otherwise draw an image from a foreign address
in an operator's browser, show a link as something else, or end the block that it stands in.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import islice

_SPECIAL = re.compile(r"[\\`*\[\]<>|~&#!]|(?<!\w)_+|_+(?!\w)")  # underscores within a word mean nothing
_SPACE = re.compile(r"[^\S\u00a0]+")
_LINE_START = re.compile(r"^([-+=]|\d+(?=[.)]))")  # a list, or the line that makes the one above a heading
_TICKS = re.compile("`+")


class Markdown(str):
    """Text that is Markdown already, such as a link made by :func:`link`."""

    __slots__ = ()


def escaped(value: object) -> Markdown:
    """A text that shows as it stands, on one line; Markdown stays as it is."""
    if isinstance(value, Markdown):
        return value
    text = _SPACE.sub(" ", str(value)).strip()
    return Markdown(_SPECIAL.sub(lambda match: "".join(f"\\{mark}" for mark in match[0]), text))


def paragraph(text: str) -> Markdown:
    """A text of several lines that shows as it stands, lines kept."""
    lines = (_line(line) for line in text.strip().splitlines())
    return Markdown("\\\n".join(line for line in lines if line))


def _line(line: str) -> str:
    shown = escaped(line)
    start = _LINE_START.match(shown)
    if start is None:
        return shown
    return f"{start[0]}\\{shown[start.end() :]}" if start[0].isdigit() else f"\\{shown}"


def code_block(text: str, language: str = "") -> Markdown:
    """A block of code, which nothing in the text ends."""
    fence = "`" * max(3, _longest(text) + 1)
    return Markdown(f"{fence}{language}\n{text}\n{fence}")


def link(text: object, path: str) -> Markdown:
    """A link to a path whose special characters are escaped as in a URL."""
    return Markdown(f"[{escaped(text)}]({path.replace('(', '%28').replace(')', '%29').replace(' ', '%20')})")


def table(head: Sequence[str], rows: Iterable[Sequence[object]], total: int, most: int) -> Markdown:
    """A table of at most ``most`` rows, with the number of those left out.

    Args:
        head: names of columns, of ours.
        rows: of cells.
        total: how many rows there are.
        most: how many are shown.
    """
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    lines += ["| " + " | ".join(map(escaped, row)) + " |" for row in islice(rows, most)]
    if total > most:
        lines.append(f"\n… and {total - most} more")
    return Markdown("\n".join(lines))


def _longest(text: str) -> int:
    return max((len(found) for found in _TICKS.findall(text)), default=0)
