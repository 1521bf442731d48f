"""Operations on column statistics.

A replica never claims statistics to be accurate that the source does not: a change of data ends the claims of its columns, a
change of metadata keeps those that both sides make (``merged_image``), and only statistics of the source begin new ones.

Transactional tables get none: Hive goes by the write id of whoever made the claims, and refuses every later change of parameters
that would touch them without one (``ObjectStore.verifyStatsChangeCtx``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from hive_replication.dump.statistics import statistics_of
from hive_replication.errors import ReplicationError
from hive_replication.load.operations.kinds import CustomOperation
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.load.replica.state import LAST_ID, object_id
from hive_replication.load.replica.target import Target
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.statistics import ACCURATE, are_same, claimed, with_claims
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import ColumnStatisticsObj, Partition, Table, copy_of

Thing = TypeVar("Thing", Table, Partition)
#: By partition ("" for the table) and column.
Found = Mapping[str, Mapping[str, ColumnStatisticsObj]]
#: From the parameters that an object has to those that it is to have.
Change = Callable[[Mapping[str, str]], dict[str, str]]


@dataclass(frozen=True, slots=True)
class Columns:
    """Statistics of one object.

    Args:
        partition: its name, "" for the table itself.
        columns: what is known of columns.
        accurate: value of COLUMN_STATS_ACCURATE on the source with these statistics, "" where it has none.
    """

    partition: str
    columns: tuple[ColumnStatisticsObj, ...]
    accurate: str

    @classmethod
    def of(cls, partition: str, thing: Table | Partition) -> Columns:
        """Those that a dumped table or partition carries."""
        return cls(partition, tuple(statistics_of(thing)), (thing.parameters or {}).get(ACCURATE, ""))


@dataclass(frozen=True, slots=True)
class SetStatistics(CustomOperation):
    """Sets statistics of a table or of its partitions, and claims of them exactly what the source does.

    Args:
        changes: the objects.
        whole: whether these are all statistics that the objects have, so that those of other columns go.
    """

    kind = "SetStatistics"
    changes: tuple[Columns, ...]
    whole: bool = False

    @property
    def partitions(self) -> tuple[str, ...]:
        """Those whose parameters it changes."""
        return tuple(change.partition for change in self.changes if change.partition)

    @property
    def partitions_changed(self) -> tuple[str, ...]:
        """None: their data and descriptions stay."""
        return ()

    @property
    def columns(self) -> frozenset[str]:
        """Names of the columns, of all objects."""
        return frozenset(column.colName for change in self.changes for column in change.columns)

    def carry_out(self, target: Target, database: str) -> None:
        """Writes what differs; then the claims, since the metastore makes its own of what is written."""
        set_together(target, database, [self])


def set_together(target: Target, database: str, operations: Sequence[SetStatistics]) -> None:
    """Carries out operations on different objects of one table, with few calls; repeating it changes nothing.

    Raises:
        ReplicationError: it failed.
    """
    table = _table(target.metastore, database, operations[0].table)
    if is_transactional(table):
        return
    pairs = [(one, change) for one in operations for change in one.changes]
    found = _found(target.metastore, table, [change.partition for _, change in pairs])
    differing: dict[str, list[ColumnStatisticsObj]] = {}
    for one, change in pairs:
        there = found.get(change.partition, {})
        differing[change.partition] = [column for column in change.columns if not are_same(there.get(column.colName), column)]
        kept = {column.colName for column in change.columns}
        for column in sorted(there.keys() - kept) if one.whole else ():
            target.metastore.delete_statistics(database, one.table, change.partition, column)
    target.metastore.set_statistics(database, operations[0].table, differing)
    _update_parameters(target.metastore, table, {change.partition: (one.evid, _with(change.accurate)) for one, change in pairs})


@dataclass(frozen=True, slots=True)
class DeleteStatistics(CustomOperation):
    """Deletes statistics of one column of a table or partition (``column`` "": of all), and the claim of it."""

    kind = "DeleteStatistics"
    partition: str
    column: str

    @property
    def partitions(self) -> tuple[str, ...]:
        """The one whose parameters it changes."""
        return (self.partition,) if self.partition else ()

    @property
    def partitions_changed(self) -> tuple[str, ...]:
        """None: its data and description stay."""
        return ()

    def carry_out(self, target: Target, database: str) -> None:
        """Deletes them; none is fine."""
        table = _table(target.metastore, database, self.table)
        if is_transactional(table):
            return
        found = _found(target.metastore, table, [self.partition]).get(self.partition, {})
        columns = {self.column} if self.column else set(found)
        for column in sorted(columns & found.keys()):
            target.metastore.delete_statistics(database, self.table, self.partition, column)

        def unclaimed(parameters: Mapping[str, str]) -> dict[str, str]:
            return with_claims(parameters, claimed(parameters) - columns)

        _update_parameters(target.metastore, table, {self.partition: (self.evid, unclaimed)})


def _with(accurate: str) -> Change:
    def change(parameters: Mapping[str, str]) -> dict[str, str]:
        others = {key: value for key, value in parameters.items() if key != ACCURATE}
        return others | ({ACCURATE: accurate} if accurate else {})

    return change


def _table(metastore: Metastore, database: str, name: str) -> Table:
    table = metastore.table(database, name)
    if table is None:
        raise ReplicationError(f"the target table {object_name(database, name)} went away during the load")
    return table


def _found(metastore: Metastore, table: Table, names: list[str]) -> Found:
    columns = [column.name for column in table.sd.cols]
    found = metastore.partition_statistics(table.dbName, table.tableName, columns, filter(None, names))
    if "" in names:
        found[""] = metastore.table_statistics(table.dbName, table.tableName, columns)
    return {name: {one.colName: one for one in there} for name, there in found.items()}


def _update_parameters(metastore: Metastore, table: Table, changes: Mapping[str, tuple[int, Change]]) -> None:
    """Gives tables or partitions the parameters that they are to have, and their state id, in one call."""
    if "" in changes:
        current = _table(metastore, table.dbName, table.tableName)
        for altered in _altered(current, *changes[""]):
            metastore.alter_table(table.dbName, table.tableName, altered)
    names = [name for name in changes if name]
    parts = by_name(table, metastore.partitions(table.dbName, table.tableName, names) if names else ())
    altered_parts = [new for name, part in parts.items() for new in _altered(part, *changes[name])]
    if altered_parts:
        metastore.alter_partitions(table.dbName, table.tableName, altered_parts)


def _altered(thing: Thing, evid: int, change: Change) -> Iterator[Thing]:
    parameters = change(thing.parameters or {}) | {LAST_ID: str(max(evid, object_id(thing)))}
    if parameters != thing.parameters:
        altered = copy_of(thing)
        altered.parameters = parameters
        yield altered
