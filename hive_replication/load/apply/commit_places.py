"""Where the files of commits go if the table or partition is created by the same lane (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hive_replication.events.files import FileRef
from hive_replication.events.name_changes import name_after, name_before
from hive_replication.load.operations.base import Operation
from hive_replication.load.operations.transactions import ReplayCommit


def directory_in_lane(
    operations: Sequence[Operation], directories: Mapping[tuple[int, str], str], table: str, partition: str
) -> str:
    """The directory of a table or partition that operations create; "" if they do not create it.

    Args:
        operations: in order.
        directories: of their contents, by number of the operation and partition name.
        table: its name after them.
        partition: its name after them, "" for the table itself.
    """
    for number, one in reversed(list(enumerate(operations))):
        former = name_before((table, partition), one.name_changes)
        if former is None:
            return directories.get((number, partition), "")
        table, partition = former
    return ""


def files_of_commits(operations: Iterable[Operation], table: str, partition: str | None = None) -> dict[str, FileRef]:
    """Files that commits add to a new table or partition, by their paths in its directory.

    Args:
        operations: in order.
        table: name of the table before them.
        partition: name of the partition before them, None for the table with all of its partitions.
    """
    found: dict[str, FileRef] = {}
    for one in operations:
        for write in one.written if isinstance(one, ReplayCommit) else ():
            if write.table == table and partition in (None, write.partition):
                below = f"{write.partition}/" if partition is None and write.partition else ""
                found |= {f"{below}{file.relative}": file for file in write.content.files}
        table, name = name_after((table, partition or ""), one.name_changes)
        partition = name or partition
    return found
