"""The conditions that a partition filter is made of, and when they hold (pure)."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

#: Value of a partition column for rows that have none.
DEFAULT_PARTITION: Final = "__HIVE_DEFAULT_PARTITION__"


def _like(found: object, pattern: object) -> bool:
    """Of SQL; to the metastore of Hive 3 the pattern is a regular expression."""
    first, *rest = (re.escape(part).replace("_", ".") for part in str(pattern).split("%"))
    # Each part but the last where it stands first: without trying others, which takes long where there are many.
    middle = "".join(f"(?>.*?{part})" for part in rest[:-1]) + "".join(f".*{part}" for part in rest[-1:])
    return re.fullmatch(first + middle, str(found), re.DOTALL) is not None


_OPERATORS: Final[Mapping[str, Callable[..., bool]]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "LIKE": _like,
}
_INTEGERS: Final = ("tinyint", "smallint", "int", "bigint")
_TEXTS: Final = ("string", "varchar", "char")
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")


@dataclass(frozen=True, slots=True)
class Comparison:
    """One column against a value, by an operator of SQL."""

    column: str
    how: str
    value: str | int

    def includes(self, values: Mapping[str, str]) -> bool:
        """Whether it holds for a partition's values by column."""
        text = values.get(self.column)
        if text is None or text == DEFAULT_PARTITION:
            return text == self.value and self.how == "="
        try:
            return _OPERATORS[self.how](int(text) if isinstance(self.value, int) else text, self.value)
        except ValueError:  # no number
            return False

    def why_unfit(self, types: Mapping[str, str]) -> str:
        """Why it says nothing of a table whose partition columns have these types, or ""."""
        if self.column not in types:
            return f"{self.column} is none of its partition columns"
        kind = types[self.column].partition("(")[0]
        if isinstance(self.value, int):
            fits = kind in _INTEGERS and self.how != "LIKE"
        else:
            is_date = kind == "date" and self.how != "LIKE" and _DATE.fullmatch(self.value)
            fits = kind in _TEXTS or is_date or self.value == DEFAULT_PARTITION
        return "" if fits else f"{self.column} of type {kind} is not compared by {self.how} with {self.value!r}"


@dataclass(frozen=True, slots=True)
class Junction:
    """Several conditions joined by AND, or by OR."""

    every: bool
    parts: tuple[Condition, ...]

    def includes(self, values: Mapping[str, str]) -> bool:
        """Whether all of them hold, or one does."""
        return (all if self.every else any)(one.includes(values) for one in self.parts)

    def why_unfit(self, types: Mapping[str, str]) -> str:
        """Why one of them says nothing of a table, or ""."""
        return next(filter(None, (one.why_unfit(types) for one in self.parts)), "")


Condition = Comparison | Junction
