"""A target in memory that carries out operations: a simple interpreter that does not use the code under test."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from hive_replication.events.files import FileRef
from hive_replication.load.operations import kinds as op
from hive_replication.load.replica.name_mapping import NameMapping
from hive_replication.load.replica.state import CHECKPOINT, LAST_ID, SOURCE, ReplicaState, object_id
from hive_replication.load.replica.target_partitions import TargetPartitions
from hive_replication.load.replica.target_view import TargetView
from hive_replication.metastore.types import Partition, Table
from tests.model import ROOT, Files, Source, State, partition_image, table_image

TARGET = "hdfs://dst/w/db.db"
MAPPING = NameMapping("uuid/db", "db", "db", ROOT, TARGET, ("hdfs://src/",))


def _contents(files: Iterable[FileRef]) -> Files:
    return {file.relative: file.checksum for file in files}


@dataclass
class Target:
    """The target's metastore and storage; an operation that the real ones would refuse fails the test.

    Args:
        repaired: a repair may set objects that stand at its event already.
    """

    tables: dict[str, Table] = field(default_factory=dict)
    partitions: dict[tuple[str, str], Partition] = field(default_factory=dict)
    files: dict[tuple[str, str], Files] = field(default_factory=dict)
    repaired: bool = False

    @classmethod
    def replica(cls, source: Source, state_id: Callable[[], int]) -> Target:
        """A replica of the source as it is, each object with a state id of its own."""
        made = cls()
        for name, tab in source.tables.items():
            image = table_image(name, tab)
            made.tables[name] = MAPPING.new_table(image, state_id())
            made.files[name, ""] = {} if tab.partitioned else dict(source.storage[tab.location])
            for key, part in tab.parts.items():
                made.partitions[name, key] = MAPPING.new_partition(partition_image(name, key, part), image, name, state_id())
                made.files[name, key] = dict(source.storage[part.location])
        return made

    def copy(self) -> Target:
        """What is in the maps is never changed, only replaced."""
        return Target(dict(self.tables), dict(self.partitions), dict(self.files), self.repaired)

    def view(self, state: ReplicaState) -> TargetView:
        return TargetView(state, dict(self.tables), dict(self.partitions))

    def state(self) -> State:
        return {
            name: (
                int(table.parameters["version"]),
                bool(table.partitionKeys),
                self.files[name, ""],
                {
                    key: (int(part.parameters["version"]), self.files[name, key])
                    for (owner, key), part in self.partitions.items()
                    if owner == name
                },
            )
            for name, table in self.tables.items()
        }

    def ids(self) -> dict[tuple[str, str], int]:
        tables = {(name, ""): object_id(table) for name, table in self.tables.items()}
        return tables | {key: object_id(part) for key, part in self.partitions.items()}

    def apply(self, operation: op.Operation) -> None:
        name = operation.table
        if isinstance(operation, op.CreateTable):
            assert name not in self.tables, f"{operation} meets a table"
            assert operation.image.tableName == name
            self.tables[name] = operation.image
            self.files[name, ""] = _contents(operation.content.files)
        else:
            assert name in self.tables, f"{operation} has no table"
            self._change(operation)

    def _change(self, operation: op.Operation) -> None:
        name = operation.table
        match operation:
            case op.AlterTable():
                self._raise(self.tables[name], operation.image)
                self.tables[name] = operation.image
            case op.RenameTable():
                self._rename(operation)
            case op.DropTable():
                del self.tables[name]
                for key in [key for key in self.partitions if key[0] == name]:
                    del self.partitions[key]
                for key in [key for key in self.files if key[0] == name]:
                    del self.files[key]
            case op.ReplaceData() | op.AppendData():
                self._content(operation)
            case op.CustomOperation():
                pass  # constraints and statistics are no part of this model
            case _:
                self._change_partitions(operation)

    def _rename(self, operation: op.RenameTable) -> None:
        old, new = operation.table, operation.image.tableName
        assert new not in self.tables, f"{operation} meets a table"
        self._raise(self.tables.pop(old), operation.image)
        self.tables[new] = operation.image
        for key in [key for key in self.partitions if key[0] == old]:
            self.partitions[new, key[1]] = self.partitions.pop(key)
        for key in [key for key in self.files if key[0] == old]:
            self.files[new, key[1]] = self.files.pop(key)

    def _change_partitions(self, operation: op.Operation) -> None:
        name = operation.table
        match operation:
            case op.AddPartitions():
                for new in operation.added:
                    assert (name, new.name) not in self.partitions, f"{operation} meets {new.name}"
                    self.partitions[name, new.name] = new.image
                    self.files[name, new.name] = _contents(new.content.files)
            case op.AlterPartitions():
                for key, image in operation.images:
                    self._raise(self.partitions[name, key], image)
                    self.partitions[name, key] = image
            case op.RenamePartition():
                assert (name, operation.new) not in self.partitions, f"{operation} meets a partition"
                self._raise(self.partitions.pop((name, operation.old)), operation.image)
                self.partitions[name, operation.new] = operation.image
                self.files[name, operation.new] = self.files.pop((name, operation.old))
            case op.DropPartitions():
                for key in operation.names:
                    del self.partitions[name, key]
                    del self.files[name, key]
            case _:
                raise AssertionError(operation)

    def _content(self, operation: op.ReplaceData | op.AppendData) -> None:
        key = operation.table, operation.partition
        new = _contents(operation.content.files)
        if isinstance(operation, op.AppendData):
            for file, checksum in new.items():
                assert self.files[key].get(file, checksum) == checksum, f"{operation} meets another {file}"
            new = self.files[key] | new
        self.files[key] = new
        if operation.partition:
            self._raise(self.partitions[key], operation.image)
            self.partitions[key] = operation.image  # type: ignore[assignment]
        else:
            self._raise(self.tables[operation.table], operation.image)
            self.tables[operation.table] = operation.image  # type: ignore[assignment]

    def _raise(self, before: Table | Partition, after: Table | Partition) -> None:
        assert after.parameters[SOURCE] == MAPPING.source
        risen = int(after.parameters[LAST_ID]) - object_id(before)
        ends = before.parameters.get(CHECKPOINT) != after.parameters.get(CHECKPOINT)  # what belongs to a table is of another dump
        assert risen > 0 or ((self.repaired or ends) and risen == 0), "a state id does not rise"


def present(view: TargetView, table: str = "t") -> TargetPartitions:
    """The partitions of a table in a view, as a load reads them."""
    found = {name: part for (owner, name), part in view.partitions.items() if owner == table}
    return TargetPartitions(found, lambda names: {name: found[name] for name in names})
