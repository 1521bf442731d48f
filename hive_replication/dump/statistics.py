"""Statistics of dumped tables and partitions: of columns, read and folded, and the count of files (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from hive_replication.events import event_records as r
from hive_replication.events.files import FileRef
from hive_replication.metastore.statistics import ACCURATE, ENGINE, FILES, claimed, with_claims
from hive_replication.metastore.types import ColumnStatistics, ColumnStatisticsObj, Partition, Table, columns_of, copy_of

Thing = TypeVar("Thing", Table, Partition)


def with_statistics(thing: Thing, columns: Iterable[ColumnStatisticsObj]) -> Thing:
    """A table or partition with its column statistics, as Hive 4 itself keeps them there (``colStats``)."""
    found = list(columns)
    made = copy_of(thing)
    made.colStats = ColumnStatistics(statsObj=found) if found else None
    return made


def statistics_of(thing: Table | Partition) -> list[ColumnStatisticsObj]:
    """The column statistics that a dumped table or partition carries."""
    return list(thing.colStats.statsObj) if thing.colStats else []


def with_kept_statistics(after: Thing, before: Thing) -> Thing:
    """A table or partition after an ALTER, with the statistics that it had before.

    Hive deletes those of columns that are renamed, retyped or gone, and no event tells of it.
    """
    ours, theirs = ({(name.lower(), kind.lower()) for name, kind, _ in columns_of(thing)} for thing in (before, after))
    gone = {name for name, _ in ours - theirs}
    return with_statistics(after, (one for one in statistics_of(before) if one.colName.lower() not in gone))


def changed_statistics(thing: Thing, event: r.UpdateStatistics | r.DeleteStatistics) -> Thing:
    """A table or partition after an event of its column statistics; folding the event twice does no harm."""
    if isinstance(event, r.UpdateStatistics) and event.engine != ENGINE:
        return thing
    columns = {one.colName: one for one in statistics_of(thing)}
    parameters = dict(thing.parameters or {})
    if isinstance(event, r.UpdateStatistics):
        columns |= {one.colName: one for one in event.columns}
        parameters.pop(ACCURATE, None)
        parameters |= {ACCURATE: event.accurate} if event.accurate else {}
    else:
        gone = {event.column} if event.column else set(columns)
        columns = {name: one for name, one in columns.items() if name not in gone}
        parameters = with_claims(parameters, claimed(parameters) - gone)
    made = with_statistics(thing, columns.values())
    made.parameters = parameters
    return made


def names_all(files: Sequence[FileRef], new: Table | Partition) -> bool:
    """Whether an event names all files of a new managed table or partition: some, and as many as its metastore counted.

    Hive names none in sub-directories, but counts them. A count of none is not believed: its DDL claims that without a look.
    """
    return bool(files) and (new.parameters or {}).get(FILES) == str(len(files))
