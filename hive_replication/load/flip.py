"""Carrying out one operation on the target's metastore, after its files are copied and proven.

Locations are read again from the metastore before each change; each change sets the object's state id in the same call.
Directories that nothing points at any more stay where they are, for readers on their way: :mod:`hive_replication.load.retention`.
"""

from __future__ import annotations

from typing import TypeVar

from hive_replication.copy.tasks import CopyFailure, CopyTask
from hive_replication.copy.threads import ThreadCopier
from hive_replication.errors import Refused, ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.load import operations as op
from hive_replication.load.mapping import placed as point_at
from hive_replication.load.place import Mode, Placed
from hive_replication.load.renames import make_room, rename_partition, rename_table
from hive_replication.load.stamp import stamped
from hive_replication.load.state import PREFIX, is_ours
from hive_replication.load.target import Target
from hive_replication.load.translation import keep_translation
from hive_replication.metastore.statistics import claimed, with_claims
from hive_replication.metastore.types import Partition, Table, copy_of, directory_of

Thing = TypeVar("Thing", Table, Partition)


class Flipper:
    """Carries out operations in one target database.

    Args:
        target: the target side.
        database: its database.
        source: identity of the source, which every replica carries.
    """

    def __init__(self, target: Target, database: str, source: str) -> None:
        self._target, self._metastore, self._storage = target, target.metastore, target.storage
        self._database, self._source = database, source

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
            case op.ReplaceData() | op.AppendData():
                key = number, operation.partition
                self._change_data(operation, lane.directories[key], lane.modes[key])
            case op.CustomOperation():
                operation.carry_out(self._target, self._database)
            case _:
                self._flip_partitions(lane, number, operation)

    def _flip_partitions(self, lane: Placed, number: int, operation: op.Operation) -> None:
        match operation:
            case op.AddPartitions():
                self._add_partitions(operation, {name: lane.directories[number, name] for name, _ in operation.contents})
            case op.AlterPartitions():
                self._alter_partitions(operation)
            case op.RenamePartition():
                self._rename_partition(operation)
            case op.DropPartitions():
                self._drop_partitions(operation)
            case _:
                raise AssertionError(f"no way to carry out {operation.kind}")

    def _table(self, name: str) -> Table:
        table = self._metastore.table(self._database, name)
        if table is None:
            raise ReplicationError(f"the target table {op.object_name(self._database, name)} went away during the load")
        if not is_ours(table, self._source):
            shown = op.object_name(self._database, name)
            raise Refused(f"the target table {shown} is not a replica of this source: rename or drop it there")
        return table

    def _partition(self, table: str, name: str) -> Partition:
        part = next(iter(self._metastore.partitions(self._database, table, [name])), None)
        if part is None:
            raise ReplicationError(
                f"the target partition {op.object_name(self._database, table, name)} went away during the load"
            )
        return part

    def _create_table(self, operation: op.CreateTable, directory: str | None) -> None:
        image = copy_of(operation.image)
        if directory is not None:
            point_at(image.sd, directory)
        self._metastore.create_table(stamped(image, _names(operation.content)))

    def _alter_table(self, operation: op.AlterTable) -> None:
        current = self._table(operation.table)
        self._metastore.alter_table(self._database, operation.table, _merged(operation.image, current, current.sd.location))

    def _rename_table(self, operation: op.RenameTable) -> None:
        current = self._table(operation.table)
        place = f"{directory_of(current).rpartition('/')[0]}/{operation.image.tableName}"
        make_room(self._target, current, place, operation.evid)
        rename_table(self._metastore, current, _merged(operation.image, current, current.sd.location))
        new = operation.image.tableName
        moved = self._table(new)
        settled = _merged(moved, moved, moved.sd.location)
        if settled != moved:  # the metastore moved the data nevertheless: the parameter path follows
            self._metastore.alter_table(self._database, new, settled)

    def _drop_table(self, operation: op.DropTable) -> None:
        if self._metastore.table(self._database, operation.table) is not None:
            self._table(operation.table)
            self._metastore.drop_table(self._database, operation.table, delete_data=False)

    def _add_partitions(self, operation: op.AddPartitions, directories: dict[str, str]) -> None:
        images: list[Partition] = []
        for new in operation.added:
            image = copy_of(new.image)
            point_at(image.sd, directories[new.name])
            images.append(stamped(image, _names(new.content)))
        self._metastore.add_partitions(self._database, operation.table, images)

    def _alter_partitions(self, operation: op.AlterPartitions) -> None:
        images: list[Partition] = []
        for name, image in operation.images:
            current = self._partition(operation.table, name)
            images.append(_merged(image, current, current.sd.location))
        self._metastore.alter_partitions(self._database, operation.table, images)

    def _rename_partition(self, operation: op.RenamePartition) -> None:
        table, current = self._table(operation.table), self._partition(operation.table, operation.old)
        make_room(self._target, table, f"{directory_of(table)}/{operation.new}", operation.evid)
        rename_partition(self._metastore, table, operation.old, _merged(operation.image, current, current.sd.location))

    def _drop_partitions(self, operation: op.DropPartitions) -> None:
        if next(self._metastore.partitions(self._database, operation.table, operation.names), None) is not None:
            self._metastore.drop_partitions(self._database, operation.table, operation.names, delete_data=False)

    def _change_data(self, operation: op.ReplaceData | op.AppendData, directory: str, mode: Mode) -> None:
        table = self._table(operation.table)
        current = self._partition(operation.table, operation.partition) if operation.partition else table
        live = directory_of(current)
        flips = mode in ("replace", "union")
        if mode == "append":
            self._append(directory, live, operation)
        elif flips:
            self._storage.mkdirs(directory)
        if mode == "union":
            self._join(directory, live, operation)
        location = directory if flips else current.sd.location
        image = operation.image
        files = _names(operation.content) if mode == "replace" else list(self._storage.named_files(str(location)))
        if isinstance(current, Partition):
            merged = _merged(image if isinstance(image, Partition) else current, current, location, changes_data=mode != "same")
            changed = stamped(merged, files)
            if changed != current:
                self._metastore.alter_partitions(self._database, operation.table, [changed])
        else:
            wanted = _merged(image if isinstance(image, Table) else current, current, location, changes_data=mode != "same")
            altered = stamped(wanted, files)
            if altered != current:
                self._metastore.alter_table(self._database, operation.table, altered)

    def _join(self, staged: str, live: str, operation: op.ReplaceData | op.AppendData) -> None:
        """Copies the live files beside the staged ones, so that all become visible at once (policy ``append: atomic``)."""
        shown = op.object_name(self._database, operation.table, operation.partition)
        tasks: list[CopyTask] = []
        for name, status in self._storage.named_files(live).items():
            checksum = self._storage.checksum(status.uri)
            file = FileRef(status.uri, checksum.value if checksum else "")
            tasks.append(CopyTask(file, f"{staged}/{name}", operation.evid, shown, status.size))
        for answer in ThreadCopier(self._storage, self._storage).copy(tasks):
            if isinstance(answer, CopyFailure):
                raise ReplicationError(answer.reason)

    def _append(self, staged: str, live: str, operation: op.ReplaceData | op.AppendData) -> None:
        """Gives each staged file its name in the live directory, one after another."""
        for file in operation.content.files:
            source, place = f"{staged}/{file.relative}", f"{live}/{file.relative}"
            if not self._storage.exists(source):
                continue  # in place already, as the placement saw
            if not self._storage.exists(place):
                self._storage.rename(source, place)
            elif self._storage.checksum(source) == self._storage.checksum(place):
                self._storage.delete(source)
            else:
                raise ReplicationError(f"{place} exists on the target with other content than event {operation.evid} adds")
        self._storage.delete(staged, recursive=True)  # empty now, or holding what a killed copy left unfinished


def _merged(image: Thing, current: Thing, location: str | None, *, changes_data: bool = False) -> Thing:
    """An image with the location given, keeping what only the target knows of the object.

    Statistics of columns are claimed to be accurate only where both claim it, and none of changed data.
    """
    merged = copy_of(image)
    point_at(merged.sd, location)
    kept = {key: value for key, value in (current.parameters or {}).items() if key.startswith(PREFIX)}
    claims = frozenset[str]() if changes_data else claimed(image.parameters) & claimed(current.parameters)
    merged.parameters = with_claims(kept | (merged.parameters or {}), claims)
    if isinstance(merged, Table) and isinstance(current, Table):
        keep_translation(merged, current)
    return stamped(merged)


def _names(content: op.Content) -> list[str]:
    return [file.relative for file in content.files]
