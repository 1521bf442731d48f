"""Which tables a policy includes (pure).

A replica keeps the same as a text: by it a load sees that the policy has changed.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase

from hive_replication.errors import BadRequest


@dataclass(frozen=True, slots=True)
class PolicyScope:
    """The settings that decide which tables are replicated. Patterns match as Hive's names do, whatever their case.

    Args:
        tables: shell patterns of the tables that are replicated.
        exclude: shell patterns of those that are not; these win.
        metadata_only: whether data is left out.
        acid: whether transactional tables are replicated.
    """

    tables: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    metadata_only: bool = False
    acid: bool = True

    def includes(self, table: str) -> bool:
        """Whether a table's name belongs to the policy; exclusion wins (as in Hive's table-level policies)."""
        return matches(table, self.tables) and not matches(table, self.exclude)

    def takes_in(self, table: str, before: PolicyScope) -> bool:
        """Whether a table's name belongs to it and did not before, or only without its data."""
        return self.includes(table) and (not before.includes(table) or (before.metadata_only and not self.metadata_only))

    @property
    def text(self) -> str:
        """As JSON, the same for all ways to write the same lists."""
        folded = {"tables": _folded(self.tables), "exclude": _folded(self.exclude)}
        return json.dumps(asdict(self) | folded, separators=(",", ":"), sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> PolicyScope:
        """Reads :attr:`text`.

        Raises:
            BadRequest: it is no such text.
        """
        try:
            value = json.loads(text)
            lists = {name: tuple(map(str, value[name])) for name in ("tables", "exclude")}
            return cls(**lists, metadata_only=bool(value["metadata_only"]), acid=bool(value["acid"]))
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BadRequest(f"{text[:100]!r} does not say which tables a replica was made with") from error


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name matches one of some shell patterns; Hive's names have no case."""
    return any(fnmatchcase(name.lower(), pattern.lower()) for pattern in patterns)


def _folded(patterns: Iterable[str]) -> list[str]:
    return sorted({pattern.lower() for pattern in patterns})
