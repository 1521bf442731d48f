"""Which tables and partitions a list of operations changed (pure)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from hive_replication.events.records import is_function
from hive_replication.load import operations as op
from hive_replication.load.opening import OpenTransactions
from hive_replication.load.report import Commit, Touched
from hive_replication.load.transactions import AbortTransaction, AllocateWriteIds, CommitTransaction

_NO_DATA = (AbortTransaction, AllocateWriteIds, CommitTransaction, OpenTransactions)


@dataclass
class _Table:
    evid: int = 0
    partitions: dict[str, bool] = field(default_factory=dict[str, bool])
    dropped: bool = False
    commits: list[Commit] = field(default_factory=list[Commit])


def touched_tables(operations: Iterable[op.Operation], source_table: str | None, target_table: str | None) -> tuple[Touched, ...]:
    """Sums up operations by table, under the names that the tables have at the end.

    Args:
        operations: in the order they were carried out.
        source_table: the source's name of the one table of a table-level load, else None.
        target_table: its name on the target, else None.
    """
    tables: dict[str, _Table] = {}
    for operation in operations:
        if isinstance(operation, CommitTransaction):
            _add_writes(tables, operation)
        if is_function(operation.table) or isinstance(operation, _NO_DATA):
            continue
        table = tables.setdefault(operation.table, _Table())
        table.evid = max(table.evid, operation.evid)
        match operation:
            case op.CreateTable():
                tables[operation.table] = _Table(operation.evid)
            case op.DropTable():
                tables[operation.table] = _Table(operation.evid, dropped=True)
            case op.RenameTable():
                tables[operation.image.tableName] = table
                tables[operation.table] = _Table(operation.evid, dropped=True)
            case op.DropPartitions():
                table.partitions |= dict.fromkeys(operation.names, False)
            case op.RenamePartition():
                table.partitions |= {operation.old: False, operation.new: True}
            case op.AlterPartitions():
                table.partitions |= {name: True for name, _ in operation.images}
            case _:
                table.partitions |= {name: True for name, _ in operation.contents if name}
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
        for name, table in sorted(tables.items())
    )


def _add_writes(tables: dict[str, _Table], operation: CommitTransaction) -> None:
    for one in operation.written:
        table = tables.setdefault(one.table, _Table())
        table.evid = max(table.evid, operation.evid)
        table.partitions |= {one.partition: True} if one.partition else {}
        table.commits.append(Commit(one.partition, one.write_id, operation.transaction, operation.evid))
