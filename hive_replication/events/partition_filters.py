"""Events of tables with a partition filter: what they say of partitions inside (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from hive_replication.events import event_records as r
from hive_replication.events import transactions as tx
from hive_replication.metastore.partition_filters import inside
from hive_replication.policy.partition_filter import PartitionFilter


@dataclass(frozen=True, slots=True)
class Outside(r.Event):
    """An event that says nothing but of partitions outside."""


@dataclass(frozen=True, slots=True)
class Entered(r.Event):
    """A partition was renamed into the filter: its files and statistics are not in the log, so its table is dumped whole."""


def within(event: r.Event, found: PartitionFilter) -> r.Event:
    """What an event says of partitions inside a filter. Inside, a partition is gone that is renamed out of it.

    Args:
        event: of a table that has the filter.
        found: the filter.
    """
    match event:
        case r.AddPartition():
            made = replace(event, partitions=tuple(one for one in event.partitions if inside(found, one.name)))
            return made if made.partitions else _outside(event)
        case r.DropPartition():
            made = replace(event, partitions=tuple(name for name in event.partitions if inside(found, name)))
            return made if made.partitions else _outside(event)
        case r.AlterPartition():
            return _altered(event, found)
        case r.Insert(partition_name=name) | r.UpdateStatistics(partition_name=name) | r.DeleteStatistics(partition_name=name):
            return event if not name or inside(found, name) else _outside(event)
        case _:
            return event


def _altered(event: r.AlterPartition, found: PartitionFilter) -> r.Event:
    kept: list[r.ChangedPartition] = []
    for one in event.changes:
        was, stays = inside(found, one.before_name), inside(found, one.after_name)
        if was and stays:
            kept.append(one)
        elif was:  # a rename, the only change of its event
            return r.DropPartition(*_head(event, "DROP_PARTITION"), event.table_object, (one.before_name,))
        elif stays:
            return Entered(*_head(event, event.type))
    return replace(event, changes=tuple(kept)) if kept else _outside(event)


def left_out(event: r.Event | None, found: PartitionFilter | None) -> int:
    """How many partitions outside a filter an event is about."""
    return 0 if found is None else sum(not inside(found, name) for name in partitions_of(event))


def _outside(event: r.Event) -> Outside:
    return Outside(*_head(event, event.type))


def _head(event: r.Event, kind: str) -> tuple[int, int, str, str, str]:
    return event.evid, event.time, kind, event.database, event.table


def partitions_of(event: r.Event | None) -> Iterable[str]:
    """Names of existing partitions, or new ones, that an event is about."""
    match event:
        case r.AddPartition():
            return (added.name for added in event.partitions)
        case r.DropPartition():
            return event.partitions
        case r.AlterPartition():
            return (name for change in event.changes for name in (change.before_name, change.after_name))
        case (
            r.Insert(partition_name=name) | r.UpdateStatistics(partition_name=name) | r.DeleteStatistics(partition_name=name)
        ) if name:
            return (name,)
        case tx.CommitTransaction():
            return (one.partition for one in event.writes if one.partition)
        case _:
            return ()
