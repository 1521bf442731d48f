"""Carries out one operation on the target's metastore, after its files are copied and proven.

Locations are read again from the metastore before each change; each change sets the object's state id in the same call.
Directories that no location points at any more stay in place for running queries: see ``load.retention.sweep``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import cast

from hive_replication.load.apply.change_data import file_names, merged_image, with_data
from hive_replication.load.apply.change_partitions import PartitionChanges, our_table, require_ours
from hive_replication.load.apply.commit_places import DataKey
from hive_replication.load.apply.insert_events import ChangedData, write_insert_events
from hive_replication.load.apply.lane_placement import LanePlacement
from hive_replication.load.apply.renames import clear_destination, rename_table
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.columns import SetColumns
from hive_replication.load.operations.constraints import DropConstraint, SetConstraints
from hive_replication.load.operations.left_open import end_replayed
from hive_replication.load.operations.mark_left import MarkLeft
from hive_replication.load.operations.statistics import DeleteStatistics, SetStatistics, set_together
from hive_replication.load.operations.transactions import policy_of
from hive_replication.load.replica.drops import drop_table, vacate
from hive_replication.load.replica.fingerprint import to_be_moved, with_fingerprint
from hive_replication.load.replica.hive4_translation import undo_translation
from hive_replication.load.replica.managed_location import require_open
from hive_replication.load.replica.name_mapping import object_name, point_at
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.target_boundary import TargetBoundary
from hive_replication.metastore.names import table_directory
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import Table, copy_of, directory_of

#: Operations that know nothing of the source, and change a table that somebody may have made anew since the plan.
_OF_REPLICAS = (SetColumns, SetConstraints, DropConstraint, SetStatistics, DeleteStatistics, MarkLeft)


class TableChanges:
    """Carries out operations in one target database.

    Args:
        target: the target side.
        database: its database.
        source: identity of the source, recorded on every replica.
        boundary: of the database.
        check: raises if the lock is lost; called again where files were copied or moved since an operation began.
    """

    def __init__(self, target: Target, database: str, source: str, boundary: TargetBoundary, check: Callable[[], None]) -> None:
        self._target, self._metastore, self._database, self._source = target, target.metastore, database, source
        self._boundary, self._check = boundary, check
        self._partitions = PartitionChanges(target, database, source, boundary, check)
        self._ending = Lock()  # of two tables that go at once, each would leave to the other what wrote to both

    def carry_out(self, lane: LanePlacement, number: int) -> None:
        """Carries out one operation of a placed lane.

        Raises:
            Refused: an object of that name is not our replica.
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
                self._change_data(operation, lane, (number, ""))
            case op.CustomOperation():
                if isinstance(operation, _OF_REPLICAS):
                    self._require_ours(operation.table)
                operation.carry_out(self._target, self._database)
            case _:
                self.carry_out_together(lane, [number])

    def carry_out_together(self, lane: LanePlacement, numbers: Sequence[int]) -> None:
        """Carries out operations of a group of ``load.plan.call_groups``, with as few calls as the metastore takes.

        Raises:
            Refused: the table is not our replica.
            ReplicationError: it failed; all of it may be carried out again.
        """
        operations = [lane.lane.operations[number] for number in numbers]
        if isinstance(operations[0], SetStatistics):
            self._require_ours(operations[0].table)
            set_together(self._target, self._database, cast("list[SetStatistics]", operations))
        else:
            self._partitions.carry_out(lane, numbers)

    def _create_table(self, operation: op.CreateTable, directory: str | None) -> None:
        image = copy_of(operation.image)
        if directory is not None:
            point_at(image.sd, directory)
        if self._metastore.features.major < 4:
            undo_translation(image)
        require_open(self._metastore, image)
        if is_transactional(image):
            with self._ending:
                vacate(self._metastore, image, lambda: self._end_transactions(operation.table) if operation.ends else None)
        self._metastore.create_table(with_fingerprint(image, file_names(operation.content)))

    def _alter_table(self, operation: op.AlterTable) -> None:
        current = self._table(operation.table)
        self._metastore.alter_table(self._database, operation.table, merged_image(operation.image, current, current.sd.location))

    def _rename_table(self, operation: op.RenameTable) -> None:
        current = self._table(operation.table)
        place = f"{directory_of(current).rpartition('/')[0]}/{table_directory(operation.image.tableName)}"
        clear_destination(self._target, current, place, operation.evid)
        image = merged_image(operation.image, current, current.sd.location)
        rename_table(self._metastore, current, to_be_moved(image) if is_transactional(current) else image)
        new = operation.image.tableName
        moved = self._table(new)
        image = merged_image(moved, moved, moved.sd.location)
        if image != moved:  # the metastore moved the data nevertheless: set the parameter path
            self._metastore.alter_table(self._database, new, image)

    def _drop_table(self, operation: op.DropTable) -> None:
        current = self._require_ours(operation.table)
        if current is not None and operation.ends and is_transactional(current):
            with self._ending:
                self._check()
                self._end_transactions(operation.table)
                drop_table(self._metastore, current)
        elif current is not None:
            drop_table(self._metastore, current)

    def _end_transactions(self, table: str) -> None:
        """Ends what stands for transactions of the source that wrote to a table alone, before that is found no more."""
        end_replayed(self._target, self._database, policy_of(self._source, self._database), self._check, only=table)

    def _change_data(self, operation: op.ReplaceData | op.AppendData, lane: LanePlacement, key: DataKey) -> None:
        current = self._table(operation.table)
        shown, directory, mode = object_name(self._database, operation.table), lane.directories[key], lane.modes[key]
        place = lane.places.get(key)
        storage, boundary = self._target.storage, self._boundary
        changed = with_data(storage, boundary, current, operation, shown, directory, mode, place, self._check)
        if changed != current:
            self._check()
            write_insert_events(self._target, current, [ChangedData(operation, mode, current, changed)])
            self._metastore.alter_table(self._database, operation.table, changed)

    def _require_ours(self, name: str) -> Table | None:
        """The table of that name, which is a replica if there is one."""
        current = self._metastore.table(self._database, name)
        if current is not None:
            require_ours(current, self._source)
        return current

    def _table(self, name: str) -> Table:
        return our_table(self._metastore, self._database, name, self._source)
