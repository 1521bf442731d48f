"""Typed values of a target database's parameters, which anybody with rights on it can edit.

A malformed value is refused, with the name of the parameter: what it was is not known, and a guess could skip events.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from hive_replication.bounded_json import parsed
from hive_replication.errors import Refused

#: Event ids and times are Java longs.
MOST = 2**63 - 1
_NUMBER = re.compile(r"[0-9]{1,19}")


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of one database.

    Args:
        database: its name.
        values: by name.
    """

    database: str
    values: Mapping[str, str]

    def text(self, key: str) -> str:
        """A text, "" where it is absent."""
        return self.values.get(key) or ""

    def number(self, key: str) -> int | None:
        """An event id, None where the parameter is absent.

        Raises:
            Refused: it is none.
        """
        return None if key not in self.values else self.number_in(key, self.values[key] or "")

    def starting(self, prefix: str) -> dict[str, str]:
        """The parameters whose names begin so."""
        return {key: value or "" for key, value in self.values.items() if key.startswith(prefix)}

    def number_in(self, key: str, value: str) -> int:
        """The number that a parameter, or a part of one, is.

        Raises:
            Refused: it is none.
        """
        number = number_of(value)
        if number is None:
            raise self.damaged(key, value)
        return number

    def list_in(self, key: str) -> tuple[str, ...]:
        """A list of texts, joined by commas, or as JSON where one has a comma itself.

        Raises:
            Refused: it is none.
        """
        value = self.text(key)
        if not value.startswith("["):
            return tuple(filter(None, value.split(",")))
        try:
            found = parsed(value.encode())
        except ValueError:
            raise self.damaged(key, value) from None
        if not isinstance(found, list) or not all(isinstance(one, str) for one in found):  # pyright: ignore[reportUnknownVariableType]
            raise self.damaged(key, value)
        return tuple(found)  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]

    def damaged(self, key: str, value: str) -> Refused:
        """The error for a malformed parameter."""
        shown = repr(value if len(value) <= 60 else f"{value[:60]}...")
        return Refused(
            f"the parameter {key} of the database {self.database!r} is {shown}, which no load has written: set it back to what "
            "it was, or drop the replica and bootstrap it again"
        )


def as_latin(text: str) -> str:
    """A text as every metastore keeps it: in Hive's schema for MySQL and MariaDB parameters are in Latin-1."""
    return text.encode("latin-1", "backslashreplace").decode("latin-1")


def number_of(value: str) -> int | None:
    """An event id, or None where a text is none."""
    number = int(value) if _NUMBER.fullmatch(value) else None
    return None if number is None or number > MOST else number
