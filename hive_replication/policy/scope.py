"""Which tables a policy includes, and which of their partitions (pure).

Patterns are those of a shell, or regular expressions between slashes, which match a whole name: ``/t[0-9]+/``. A replica keeps
the same as a text: by it a load sees that the policy has changed.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from fnmatch import fnmatchcase
from typing import TypeVar

from hive_replication.bounded_json import parsed
from hive_replication.errors import BadRequest
from hive_replication.policy.partition_filter import PartitionFilter
from hive_replication.policy.wrong_setting import WrongSetting
from hive_replication.regular_expressions import require_expression

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PartitionFilters:
    """The filters of a database's tables, by patterns of their names: the first that matches is a table's."""

    texts: tuple[tuple[str, str], ...] = ()

    @classmethod
    def read(cls, texts: Iterable[tuple[str, str]]) -> PartitionFilters:
        """Pairs of a pattern and a filter.

        Raises:
            ValueError: a pattern or a filter is none.
        """
        made = cls(tuple((str(pattern), PartitionFilter.parse(str(text)).text) for pattern, text in texts))
        valid_patterns(tuple(pattern for pattern, _ in made.texts))
        return made

    def of(self, table: str) -> PartitionFilter | None:
        """The filter of a table; None where all of its partitions are replicated."""
        return next((PartitionFilter.parse(text) for pattern, text in self.texts if matches(table, [pattern])), None)


@dataclass(frozen=True, slots=True)
class PolicyScope:
    """The settings that decide which tables are replicated. Patterns match as Hive's names do, whatever their case.

    Args:
        tables: patterns of the tables that are replicated.
        exclude: patterns of those that are not; these win.
        metadata_only: whether data is left out.
        acid: whether transactional tables are replicated where data is.
        filters: which partitions are.
        materialized_views: whether materialized views are replicated, as ordinary views.
    """

    tables: tuple[str, ...] = ("*",)
    exclude: tuple[str, ...] = ()
    metadata_only: bool = False
    acid: bool = True
    filters: PartitionFilters = PartitionFilters()
    materialized_views: bool = False

    def includes(self, table: str) -> bool:
        """Whether a table's name belongs to the policy; exclusion wins (as in Hive's table-level policies)."""
        return matches(table, self.tables) and not matches(table, self.exclude)

    @property
    def transactions(self) -> bool:
        """Whether transactional tables are replicated: they are not without data."""
        return self.acid and not self.metadata_only

    def takes_in(self, table: str, before: PolicyScope) -> bool:
        """Whether a table's name belongs to it and did not before, or only without its data or with other partitions."""
        more = (before.metadata_only and not self.metadata_only) or self.filters.of(table) != before.filters.of(table)
        return self.includes(table) and (more or not before.includes(table))

    @property
    def text(self) -> str:
        """As JSON, the same for all ways to write the same lists."""
        plain = asdict(self) | {"tables": _folded(self.tables), "exclude": _folded(self.exclude), "filters": self.filters.texts}
        for name in ("filters", "materialized_views"):
            if not plain[name]:  # as earlier versions wrote it
                del plain[name]
        return json.dumps(plain, separators=(",", ":"), sort_keys=True)

    @classmethod
    def parse(cls, text: str) -> PolicyScope:
        """Reads :attr:`text`.

        Raises:
            BadRequest: it is no such text.
        """
        try:
            value = parsed(text.encode())
            lists = {name: valid_patterns(tuple(map(str, value[name]))) for name in ("tables", "exclude")}
            filters = PartitionFilters.read(value.get("filters", ()))
            metadata_only, acid, views = bool(value["metadata_only"]), bool(value["acid"]), bool(value.get("materialized_views"))
            return cls(**lists, metadata_only=metadata_only, acid=acid, filters=filters, materialized_views=views)
        except (ValueError, KeyError, TypeError) as error:
            raise BadRequest(f"{text[:100]!r} does not say which tables a replica was made with") from error


def of_expressions(include: str, exclude: str = "") -> PolicyScope:
    """The tables of two regular expressions; without the second one none is left out."""
    return PolicyScope((f"/{include}/",), (f"/{exclude}/",) if exclude else ())


def valid_patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """The patterns, if those between slashes are regular expressions.

    Raises:
        ValueError: one is none.
    """
    for pattern in filter(_is_expression, patterns):
        try:
            require_expression(pattern[1:-1])
        except BadRequest as error:
            raise ValueError(str(error)) from error
    return patterns


def closed_patterns(patterns: tuple[str, ...]) -> tuple[str, ...]:
    """The patterns, if none has a slash in front alone; not for texts that replicas keep, where earlier versions took such.

    Raises:
        ValueError: one has: as a shell pattern it matches no table, so that ``exclude`` would leave nothing out.
    """
    for pattern in patterns:
        if pattern.startswith("/") and not _is_expression(pattern):
            raise ValueError(f"{pattern!r} has no slash at its end, as a regular expression has: for a name's / write [/]")
    return patterns


def valid_keys(values: dict[str, T]) -> dict[str, T]:
    """Values by databases, if the patterns among those are some.

    Raises:
        ValueError: one is between slashes and no regular expression, or has a slash in front alone.
    """
    closed_patterns(valid_patterns(tuple(values)))
    return values


def valid_filters(filters: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """Partition filters by pattern of tables, by databases in lower case.

    Raises:
        ValueError: a pattern or a filter is none, or a database stands twice.
    """
    for of_tables in filters.values():
        PartitionFilters.read(of_tables.items())
    return by_lower_name(filters)


def closed_filters(filters: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """The filters, if no pattern of tables has a slash in front alone, and see :func:`valid_keys` for those of databases.

    Raises:
        ValueError: one has.
    """
    for of_tables in filters.values():
        closed_patterns(tuple(of_tables))
    return valid_keys(filters)


def without_tables(tables: tuple[str, ...], exclude: tuple[str, ...]) -> list[WrongSetting]:
    """What is wrong with patterns by which no table is replicated."""
    if not tables:
        return [WrongSetting(("tables",), "tables is empty, so that no table is replicated: leave it out if all are meant")]
    said = "exclude has *, which leaves out all tables, so that none is replicated: take it out"
    return [WrongSetting(("exclude",), said)] if "*" in exclude else []


def matches(name: str, patterns: Iterable[str]) -> bool:
    """Whether a name matches one of some patterns; Hive's names have no case."""
    return any(_matches(name, pattern) for pattern in patterns)


def _matches(name: str, pattern: str) -> bool:
    if _is_expression(pattern):
        return re.fullmatch(pattern[1:-1], name, re.IGNORECASE) is not None
    return fnmatchcase(name.lower(), pattern.lower())


def _is_expression(pattern: str) -> bool:
    return len(pattern) > 1 and pattern.startswith("/") and pattern.endswith("/")


def _folded(patterns: Iterable[str]) -> list[str]:
    return sorted({pattern if _is_expression(pattern) else pattern.lower() for pattern in patterns})


def in_lower_case(name: str) -> str:
    """A name of a database, or a pattern; a regular expression stays as it is: its D is another class than its d."""
    return name if _is_expression(name) else name.lower()


def by_lower_name(values: Mapping[str, T]) -> dict[str, T]:
    """Values by names of databases in lower case.

    Raises:
        ValueError: a name is there twice.
    """
    folded: dict[str, T] = {}
    for name, value in values.items():
        if (lower := in_lower_case(name)) in folded:
            raise ValueError(f"{lower!r} is named twice: Hive's names have no case")
        folded[lower] = value
    return folded
