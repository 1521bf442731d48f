"""Carrying out one operation on the target's metastore, after its files are copied and proven.

Locations are read again from the metastore before each change; each change sets the object's state id in the same call.
Directories that nothing points at any more stay where they are, for readers on their way: :mod:`hive_replication.load.retention`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from hive_replication.load import operations as op
from hive_replication.load.flip_data import merged, names_of, with_data
from hive_replication.load.flip_partitions import PartitionFlipper, our_table, require_ours
from hive_replication.load.mapping import placed as point_at
from hive_replication.load.place import Mode, Placed
from hive_replication.load.renames import make_room, rename_table
from hive_replication.load.stamp import stamped
from hive_replication.load.statistics import SetStatistics, set_together
from hive_replication.load.target import Target
from hive_replication.metastore.types import Table, copy_of, directory_of


class Flipper:
    """Carries out operations in one target database.

    Args:
        target: the target side.
        database: its database.
        source: identity of the source, which every replica carries.
    """

    def __init__(self, target: Target, database: str, source: str) -> None:
        self._target, self._metastore, self._database, self._source = target, target.metastore, database, source
        self._partitions = PartitionFlipper(target, database, source)

    def flip(self, lane: Placed, number: int) -> None:
        """Carries out one operation of a placed lane.

        Raises:
            Refused: an object in the way is not our replica.
            ReplicationError: it failed.
        """
        operation = lane.lane.operations[number]
        match operation:
            case op.CreateTable():
                self._create_table(operation, lane.directories.get((number, "")))
            case op.AlterTable():
                self._alter_table(operation)
            case op.RenameTable():
                self._rename_table(operation)
            case op.DropTable():
                self._drop_table(operation)
            case op.ReplaceData() | op.AppendData() if not operation.partition:
                self._change_data(operation, lane.directories[number, ""], lane.modes[number, ""])
            case op.CustomOperation():
                operation.carry_out(self._target, self._database)
            case _:
                self.flip_together(lane, [number])

    def flip_together(self, lane: Placed, numbers: Sequence[int]) -> None:
        """Carries out operations of a group of :mod:`~hive_replication.load.groups`, with as few calls as the metastore takes.

        Raises:
            Refused: the table is not our replica.
            ReplicationError: it failed; all of it may be carried out again.
        """
        operations = [lane.lane.operations[number] for number in numbers]
        if isinstance(operations[0], SetStatistics):
            set_together(self._target, self._database, cast("list[SetStatistics]", operations))
        else:
            self._partitions.flip(lane, numbers)

    def _create_table(self, operation: op.CreateTable, directory: str | None) -> None:
        image = copy_of(operation.image)
        if directory is not None:
            point_at(image.sd, directory)
        self._metastore.create_table(stamped(image, names_of(operation.content)))

    def _alter_table(self, operation: op.AlterTable) -> None:
        current = self._table(operation.table)
        self._metastore.alter_table(self._database, operation.table, merged(operation.image, current, current.sd.location))

    def _rename_table(self, operation: op.RenameTable) -> None:
        current = self._table(operation.table)
        place = f"{directory_of(current).rpartition('/')[0]}/{operation.image.tableName}"
        make_room(self._target, current, place, operation.evid)
        rename_table(self._metastore, current, merged(operation.image, current, current.sd.location))
        new = operation.image.tableName
        moved = self._table(new)
        settled = merged(moved, moved, moved.sd.location)
        if settled != moved:  # the metastore moved the data nevertheless: the parameter path follows
            self._metastore.alter_table(self._database, new, settled)

    def _drop_table(self, operation: op.DropTable) -> None:
        current = self._metastore.table(self._database, operation.table)
        if current is not None:
            require_ours(current, self._source)
            self._metastore.drop_table(self._database, operation.table, delete_data=False)

    def _change_data(self, operation: op.ReplaceData | op.AppendData, directory: str, mode: Mode) -> None:
        current = self._table(operation.table)
        shown = op.object_name(self._database, operation.table)
        changed = with_data(self._target.storage, current, operation, shown, directory, mode)
        if changed != current:
            self._metastore.alter_table(self._database, operation.table, changed)

    def _table(self, name: str) -> Table:
        return our_table(self._metastore, self._database, name, self._source)
