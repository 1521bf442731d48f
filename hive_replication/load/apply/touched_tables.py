"""Tables and partitions that the operations of a load changed (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hive_replication.events.event_records import is_function
from hive_replication.events.name_changes import NameChange
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.open_transactions import Transactional
from hive_replication.load.operations.transactions import ReplayCommit
from hive_replication.load.report import Commit, Touched


@dataclass
class _Table:
    evid: int = 0
    partitions: dict[str, bool] = field(default_factory=dict[str, bool])
    dropped: bool = False
    commits: list[Commit] = field(default_factory=list[Commit])


class TouchedTables:
    """Sums of operations by table, under the final names of the tables."""

    def __init__(self) -> None:
        self._tables: dict[str, _Table] = {}

    def add(self, operations: Iterable[op.Operation]) -> None:
        """Adds operations, those of one table in the order in which they were carried out."""
        for operation in operations:
            _add(self._tables, operation)

    def sums(self, source_table: str | None, target_table: str | None) -> tuple[Touched, ...]:
        """The changes of each table.

        Args:
            source_table: the source's name of the one table of a table-level load, else None.
            target_table: its name on the target, else None.
        """
        return tuple(
            Touched(
                table=name,
                source_table=source_table if source_table and name == target_table else name,
                evid=table.evid,
                partitions=tuple(sorted(part for part, there in table.partitions.items() if there)),
                dropped_partitions=tuple(sorted(part for part, there in table.partitions.items() if not there)),
                dropped=table.dropped,
                commits=tuple(table.commits),
            )
            for name, table in sorted(self._tables.items())
        )


def _add(tables: dict[str, _Table], operation: op.Operation) -> None:
    if isinstance(operation, ReplayCommit):
        _add_writes(tables, operation)
    if is_function(operation.table) or isinstance(operation, Transactional):
        return
    table = tables.setdefault(operation.table, _Table())
    table.evid = max(table.evid, operation.evid)
    for change in operation.name_changes:
        _follow(tables, change, operation.evid)
    there = (*operation.partitions_changed, *(name for name, _ in operation.contents if name))
    if there:
        tables[operation.table].partitions |= dict.fromkeys(there, True)


def _follow(tables: dict[str, _Table], change: NameChange, evid: int) -> None:
    """Applies a name change. A created table is a new one, even if another table had its name before."""
    before, after = change.tables
    if before:
        table = tables.get(before, _Table())
        tables[before] = _Table(evid, dropped=True)
        tables |= {after: table} if after else {}
    elif after:
        tables[after] = _Table(evid)
    else:
        for name, there in ((change.before, False), (change.after, True)):
            if name is not None:
                tables[name[0]].partitions[name[1]] = there


def _add_writes(tables: dict[str, _Table], operation: ReplayCommit) -> None:
    for one in operation.written:
        table = tables.setdefault(one.table, _Table())
        table.evid = max(table.evid, operation.evid)
        table.partitions |= {one.partition: True} if one.partition else {}
        table.commits.append(Commit(one.partition, one.write_id, operation.transaction, operation.evid))
