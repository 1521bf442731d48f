"""The shell's words: which command they name, and back to the text of a statement."""

from __future__ import annotations

import re
from collections.abc import Sequence

_TAKE_A_VALUE = ("--config", "--log-format")
_QUOTES = "`'\""  # in the order of choice: between the first nothing is special
_PLAIN = re.compile(r"[\w./:=%#+,@~-]+")


def command_of(argv: Sequence[str]) -> int | None:
    """Position of the first word that is no option of ``hive-repl`` itself, None where there is none."""
    position = 0
    while position < len(argv):
        word = argv[position]
        if not word.startswith("-"):
            return position
        position += 2 if word in _TAKE_A_VALUE else 1
    return None


def arrange(argv: Sequence[str]) -> list[str]:
    """Spells the command as it is registered: a statement starts with ``REPL`` in any case and may be one quoted argument."""
    position = command_of(argv)
    if position is None:
        return list(argv)
    first, *rest = argv[position].split(maxsplit=1) or [""]
    if first.upper() != "REPL":
        return list(argv)
    return [*argv[:position], "REPL", *rest, *argv[position + 1 :]]


def statement(words: Sequence[str]) -> str:
    """The text of a statement for the parser.

    A lone first argument with blanks is a quoted statement and stays as it is; a later word with blanks or quotes was
    protected from the shell (a path) and is quoted again.
    """
    head, *tail = words or [""]
    return " ".join([head, *map(_quoted, tail)])


def _quoted(word: str) -> str:
    if _PLAIN.fullmatch(word):
        return word
    mark = next((mark for mark in _QUOTES if mark not in word), _QUOTES[0])
    return f"{mark}{word}{mark}"
