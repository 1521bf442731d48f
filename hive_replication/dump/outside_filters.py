"""What a dump leaves out since it lies outside the partition filters of the policy, counted by table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from hive_replication.dump.source import Source
from hive_replication.events.events_of_policy import LogEvent
from hive_replication.events.partition_filters import left_out
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.table_kinds import is_view
from hive_replication.policy.scope import PartitionFilters


@dataclass
class OutsideFilters:
    """Counts partitions outside the filters.

    Args:
        filters: of the dump's database.
        database: its name.
        includes: whether a table's name belongs to the dump.
    """

    filters: PartitionFilters
    database: str
    includes: Callable[[str], bool]
    _found: Counter[str] = field(default_factory=Counter[str])

    def count_event(self, event: LogEvent) -> bool:
        """Counts those of an event; whether it is an event of the dump that says nothing but of such partitions."""
        ours = event.filter is not None and event.row.database == self.database and self.includes(event.row.table)
        if ours and (number := left_out(event.decoded, event.filter)):
            self._found[event.row.table] += number
        return ours and event.outside

    def count_tables(self, source: Source, names: Iterable[str]) -> None:
        """Counts those of tables, as they are now; a table that is gone by now, or that is not shown any more, has none."""
        for name in names:
            with suppress(MetastoreError):
                if self.filters.of(name) is not None and not self._is_view(source, name):
                    shown = len(source.metastore.partition_names(self.database, name))
                    self._found[name] += source.metastore.partition_count(self.database, name) - shown

    def _is_view(self, source: Source, name: str) -> bool:
        """Whether a table is shown as a view: one that is materialized may have partitions nevertheless."""
        table = source.metastore.table(self.database, name) if source.metastore.views_of_materialized else None
        return table is not None and is_view(table)

    def left_out(self) -> Mapping[str, str]:
        """By table, how much is left out and why."""
        filters = {name: self.filters.of(name) for name in self._found if self._found[name] > 0}
        return {
            name: f"{self._found[name]} partitions are left out: they are outside its partition filter {found.text}"
            for name, found in sorted(filters.items())
            if found is not None
        }
