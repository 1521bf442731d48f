"""The names that a lane's objects have on the target before the lane (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from hive_replication.load import operations as op
from hive_replication.load.transactions import CommitTransaction


@dataclass
class _Origin:
    """The name that the target has a table under before the lane, and those of partitions that differ; "" where it has none."""

    table: str
    partitions: dict[str, str] = field(default_factory=dict[str, str])


class Origins:
    """Follows the names of a lane's objects from operation to operation, back to what the target has before all of them."""

    def __init__(self) -> None:
        self._tables: dict[str, _Origin] = {}

    def of(self, table: str, partition: str = "") -> tuple[str, str]:
        """Names of a table and a partition on the target before the lane; "" for what was not there."""
        origin = self._origin(table)
        return origin.table, origin.partitions.get(partition, partition)

    def pass_by(self, operation: op.Operation) -> None:
        """The names after an operation."""
        match operation:
            case op.RenameTable():
                self._tables[operation.image.tableName] = self._origin(operation.table)
                self._tables[operation.table] = _Origin("")
            case op.CreateTable() | op.DropTable():
                self._tables[operation.table] = _Origin("")
            case op.RenamePartition():
                partitions = self._origin(operation.table).partitions
                partitions |= {operation.new: partitions.get(operation.old, operation.old), operation.old: ""}
            case op.AddPartitions():
                self._origin(operation.table).partitions.update(dict.fromkeys((new.name for new in operation.added), ""))
            case op.DropPartitions():
                self._origin(operation.table).partitions.update(dict.fromkeys(operation.names, ""))
            case _:
                pass

    def dropped(self, table: str, partition: str) -> bool:
        """Whether the lane has dropped, or renamed away, a partition of this name."""
        return self._origin(table).partitions.get(partition) == ""

    def _origin(self, table: str) -> _Origin:
        return self._tables.setdefault(table, _Origin(table))


def getting_data(operation: op.Operation) -> Iterator[tuple[str, str]]:
    """Table and partition ("" for the table) of the objects that an operation gives data, by the names at that moment."""
    match operation:
        case op.AddPartitions():
            yield operation.table, ""
        case op.ReplaceData() | op.AppendData():
            yield operation.table, operation.partition
        case CommitTransaction():
            yield from ((one.table, one.partition) for one in operation.written)
        case _:
            pass
