"""Carries out a group of operations on partitions of one table with one read and one metastore call.

The call changes all partitions or none. A group that failed may be carried out again, one operation at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain
from typing import cast

from hive_replication.errors import Refused, ReplicationError
from hive_replication.load.apply.change_data import file_names, merged_image, with_data
from hive_replication.load.apply.insert_events import ChangedData, write_insert_events
from hive_replication.load.apply.lane_placement import LanePlacement
from hive_replication.load.apply.renames import clear_destination, rename_partitions
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.call_groups import Change
from hive_replication.load.replica.fingerprint import with_fingerprint
from hive_replication.load.replica.name_mapping import object_name, point_at
from hive_replication.load.replica.state import is_ours, object_id
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.target_boundary import TargetBoundary
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.types import Partition, Table, copy_of, directory_of


class PartitionChanges:
    """Changes partitions in one target database.

    Args:
        target: the target side.
        database: its database.
        source: identity of the source, recorded on every replica.
        boundary: of the database.
        check: raises if the lock is lost; called again where files were copied or moved since an operation began.
    """

    def __init__(self, target: Target, database: str, source: str, boundary: TargetBoundary, check: Callable[[], None]) -> None:
        self._boundary, self._check = boundary, check
        self._target, self._metastore, self._database, self._source = target, target.metastore, database, source

    def carry_out(self, lane: LanePlacement, numbers: Sequence[int]) -> None:
        """Carries out operations of one kind on different partitions of one table.

        Args:
            lane: the placed lane.
            numbers: of its operations.

        Raises:
            Refused: the table is not our replica.
            ReplicationError: it failed.
        """
        operations = [lane.lane.operations[number] for number in numbers]
        match operations[0]:
            case op.AddPartitions(table=table):
                self._add(table, lane, numbers)
            case op.DropPartitions(table=table):
                self._drop(table, chain.from_iterable(one.names for one in cast("list[op.DropPartitions]", operations)))
            case op.RenamePartition(table=table):
                self._rename(table, cast("list[op.RenamePartition]", operations))
            case op.AlterPartitions(table=table) | op.ReplaceData(table=table) | op.AppendData(table=table):
                self._change(table, lane, numbers)
            case other:
                raise AssertionError(f"no way to carry out {other.kind}")

    def _add(self, table: str, lane: LanePlacement, numbers: Sequence[int]) -> None:
        our_table(self._metastore, self._database, table, self._source)
        images: list[Partition] = []
        for number in numbers:
            for new in cast("op.AddPartitions", lane.lane.operations[number]).added:
                image = copy_of(new.image)
                point_at(image.sd, lane.directories[number, new.name])
                images.append(with_fingerprint(image, file_names(new.content)))
        self._metastore.add_partitions(self._database, table, images)

    def _drop(self, table: str, partitions: Iterable[str]) -> None:
        our_table(self._metastore, self._database, table, self._source)
        names = list(partitions)
        if next(self._metastore.partitions(self._database, table, names), None) is not None:
            self._metastore.drop_partitions(self._database, table, names, delete_data=False)

    def _rename(self, name: str, operations: Sequence[op.RenamePartition]) -> None:
        table = our_table(self._metastore, self._database, name, self._source)
        found = self._found(table, chain.from_iterable((one.old, one.new) for one in operations))
        renames: list[tuple[str, Partition]] = []
        for one in operations:
            if one.old not in found and object_id(found.get(one.new)) == one.evid:
                continue  # done before the group failed
            current = self._there(found, table, one.old)
            clear_destination(self._target, table, f"{directory_of(table)}/{one.new}", one.evid)
            renames.append((one.old, merged_image(one.image, current, current.sd.location)))
        rename_partitions(self._metastore, table, renames)

    def _change(self, name: str, lane: LanePlacement, numbers: Sequence[int]) -> None:
        table = our_table(self._metastore, self._database, name, self._source)
        operations = [cast("Change", lane.lane.operations[number]) for number in numbers]
        found = self._found(table, chain.from_iterable(one.partitions for one in operations))

        added: list[ChangedData] = []

        def changed(numbered: tuple[int, Change]) -> list[tuple[Partition, Partition]]:
            number, operation = numbered
            if isinstance(operation, op.AlterPartitions):
                there = [(self._there(found, table, key), image) for key, image in operation.images]
                return [(current, merged_image(image, current, current.sd.location)) for current, image in there]
            key = number, operation.partition
            current, shown = self._there(found, table, operation.partition), self._shown(table, operation.partition)
            place, mode = lane.directories[key], lane.modes[key]
            like, storage = lane.places.get(key), self._target.storage
            image = with_data(storage, self._boundary, current, operation, shown, place, mode, like, self._check)
            added.append(ChangedData(operation, mode, current, image))
            return [(current, image)]

        changes = self._target.storage.threads.map(changed, zip(numbers, operations, strict=True))
        pairs = list(chain.from_iterable(changes))
        images = [image for current, image in pairs if image != current]
        if images:
            self._check()
            write_insert_events(self._target, table, added)
            self._metastore.alter_partitions(self._database, name, images)

    def _found(self, table: Table, names: Iterable[str]) -> dict[str, Partition]:
        return by_name(table, self._metastore.partitions(self._database, table.tableName, names))

    def _there(self, found: Mapping[str, Partition], table: Table, name: str) -> Partition:
        if name not in found:
            raise ReplicationError(f"the target partition {self._shown(table, name)} went away during the load")
        return found[name]

    def _shown(self, table: Table, partition: str) -> str:
        return object_name(self._database, table.tableName, partition)


def our_table(metastore: Metastore, database: str, name: str, source: str) -> Table:
    """Reads a replica from the target's metastore.

    Args:
        metastore: the target's.
        database: target database.
        name: of the table.
        source: identity of the source, recorded on every replica.

    Raises:
        ReplicationError: it does not exist any more.
        Refused: it is not a replica of this source.
    """
    table = metastore.table(database, name)
    if table is None:
        raise ReplicationError(f"the target table {object_name(database, name)} went away during the load")
    require_ours(table, source)
    return table


def require_ours(table: Table, source: str) -> None:
    """Makes sure that a table is a replica of a source.

    Raises:
        Refused: it is not a replica of this source.
    """
    if not is_ours(table, source):
        shown = object_name(table.dbName, table.tableName)
        raise Refused(f"the target table {shown} is not a replica of this source: rename or drop it there")
