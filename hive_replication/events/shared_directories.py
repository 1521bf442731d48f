"""Directories of partitions that an event fills or empties, and whether others may have them, too (pure).

Which ones have them only the source's metastore knows: ``dump/incremental/shared_directories.py`` asks it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from hive_replication.events import event_records as r
from hive_replication.metastore.table_kinds import is_external, is_transactional
from hive_replication.metastore.types import Partition, Table


@dataclass(frozen=True, slots=True)
class Change:
    """One partition to which an event may bring files, or whose files it takes away.

    Args:
        table: its table.
        name: its name.
        location: its directory.
        created: when it was created, 0 where the event does not tell.
        takes: whether what lay there goes, also from partitions inside of it.
    """

    table: Table
    name: str
    location: str
    created: int
    takes: bool = False

    @property
    def may_be_shared(self) -> bool:
        """Whether others may have its directory.

        A managed partition at Hive's plain path has it alone, unless another one was put there by hand: for those that follow
        Hive's rule, which are most of all, no partition is read.
        """
        plain = f"{(self.table.sd.location or '').rstrip('/')}/{self.name}"
        return not is_transactional(self.table) and (is_external(self.table) or self.location.rstrip("/") != plain)


def shared_changes(event: r.Event | None) -> Iterator[Change]:
    """Partitions to which an event may bring files, and those that it empties, at directories that others may have."""
    return (one for one in _changes(event) if one.may_be_shared)


def _changes(event: r.Event | None) -> Iterator[Change]:
    match event:
        case r.AddPartition():
            for added in event.partitions:
                yield _change(event.table_object, added.name, added.partition)
        case r.Insert(partition=partition) if partition is not None:
            yield _change(event.table_object, event.partition_name, partition, takes=event.replace)
        case r.AlterPartition(truncate=True):
            for one in event.changes:
                yield _change(event.table_object, one.after_name, one.after, takes=True)
        case _:
            pass


def _change(table: Table, name: str, partition: Partition, *, takes: bool = False) -> Change:
    return Change(table, name, partition.sd.location or "", partition.createTime or 0, takes)
