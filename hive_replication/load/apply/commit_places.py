"""Tables and partitions that a lane creates itself: where the files of its commits go (pure)."""

from __future__ import annotations

from collections.abc import Iterable

from hive_replication.events.files import FileRef
from hive_replication.events.name_changes import NameChange
from hive_replication.load.operations.base import Operation
from hive_replication.load.operations.transactions import ReplayCommit

#: Number of an operation in its lane, and partition name ("" for the table).
DataKey = tuple[int, str]


class CreatedInLane:
    """Follows what a lane creates from operation to operation, so that a late commit finds it without looking at all before."""

    def __init__(self) -> None:
        self._keys: dict[str, dict[str, DataKey]] = {}

    def key(self, table: str, partition: str) -> DataKey | None:
        """The operation that created a table or partition, with its name then; None if the lane has not created it."""
        return self._keys.get(table, {}).get(partition)

    def follow(self, number: int, changes: Iterable[NameChange]) -> None:
        """Takes in what an operation does to names.

        Args:
            number: of the operation.
            changes: of names, in order.
        """
        for change in changes:
            old, new = change.tables
            if old or new:
                keys = self._keys.pop(old, {}) if old else {"": (number, "")}
                self._keys |= {new: keys} if new else {}
                continue
            created = None if change.after is None else (number, change.after[1])
            key = created if change.before is None else self._keys.get(change.before[0], {}).pop(change.before[1], None)
            if change.after is not None and key is not None:
                self._keys.setdefault(change.after[0], {})[change.after[1]] = key


def files_of_commits(operations: Iterable[Operation]) -> dict[DataKey, dict[str, FileRef]]:
    """Files that commits add to what the lane creates, by their paths in its directory; a table's with those of its partitions.

    Args:
        operations: of the lane, in order.
    """
    created, found = CreatedInLane(), dict[DataKey, dict[str, FileRef]]()
    for number, one in enumerate(operations):
        for write in one.written if isinstance(one, ReplayCommit) else ():
            below = f"{write.partition}/" if write.partition else ""
            for partition, prefix in {"": below, write.partition: ""}.items():
                if (key := created.key(write.table, partition)) is not None:
                    found.setdefault(key, {}).update({f"{prefix}{file.relative}": file for file in write.content.files})
        created.follow(number, one.name_changes)
    return found
