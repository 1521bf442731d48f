"""Following tables and partitions through many operations (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hive_replication.events.name_changes import NameChange, ObjectName


@dataclass
class _Origin:
    """A table's name before the trail, and those of partitions that differ; "" where there was none."""

    table: str
    partitions: dict[str, str] = field(default_factory=dict[str, str])


class NamesTrail:
    """Follows tables and partitions from change to change, back to the names that they had before all of them."""

    def __init__(self) -> None:
        self._tables: dict[str, _Origin] = {}

    def before(self, table: str, partition: str = "") -> ObjectName:
        """Names of a table and a partition before all changes; "" for what was not there."""
        origin = self._origin(table)
        return origin.table, origin.partitions.get(partition, partition)

    def follow(self, changes: Iterable[NameChange]) -> None:
        """Takes in what an operation does to names."""
        for change in changes:
            if any(change.tables):
                self._follow_table(*change.tables)
                continue
            if change.before is not None:
                origins = self._origin(change.before[0]).partitions
                former = origins.get(change.before[1], change.before[1])
                origins[change.before[1]] = ""
            else:
                former = ""
            if change.after is not None:
                self._origin(change.after[0]).partitions[change.after[1]] = former

    def gone(self, table: str, partition: str) -> bool:
        """Whether a partition of this name was dropped, or renamed, by the changes."""
        return self._origin(table).partitions.get(partition) == ""

    def _follow_table(self, before: str, after: str) -> None:
        origin = self._origin(before) if before else _Origin("")
        if before:
            self._tables[before] = _Origin("")
        if after:
            self._tables[after] = origin

    def _origin(self, table: str) -> _Origin:
        return self._tables.setdefault(table, _Origin(table))
