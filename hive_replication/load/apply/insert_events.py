"""INSERT events of a replica that is a source itself: added files change no location, so no other event tells of them.

An event is written after its files are in place and before the state id rises, so a load that is killed in between writes it
again. The next replica finds such files present.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hive_replication.load.apply.lane_placement import Visibility
from hive_replication.load.operations import kinds as op
from hive_replication.load.replica.fingerprint import same_files
from hive_replication.load.replica.target import Target
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import Partition, Table, directory_of


@dataclass(frozen=True, slots=True)
class ChangedData:
    """A table or partition whose data a load has changed.

    Args:
        operation: the change.
        mode: how it became visible.
        current: the object before it.
        image: the object's image after it.
    """

    operation: op.ReplaceData | op.AppendData
    mode: Visibility
    current: Table | Partition
    image: Table | Partition

    @property
    def added(self) -> bool:
        """Whether files were added where the others stay: by this load, or by an earlier one that was killed after it."""
        return self.mode == "append" or (self.mode == "same" and not same_files(self.current, self.image))


def write_insert_events(target: Target, table: Table, changes: Iterable[ChangedData]) -> None:
    """Writes an INSERT event to the target's log for each table or partition that got files.

    Args:
        target: the target side.
        table: the table.
        changes: of its data or that of its partitions, before their images are written.
    """
    added = [one for one in changes if one.added and one.operation.content.files]
    # Asked now: a dump of the target that begins later lists the files, and one that began before has set the property.
    if added and not is_transactional(table) and target.feeds(table.dbName):
        list(target.storage.threads.map(lambda one: _write(target, table, one), added))


def _write(target: Target, table: Table, change: ChangedData) -> None:
    files, place = change.operation.content.files, directory_of(change.current)
    paths = [f"{place}/{file.relative}" for file in files]
    sums = [target.storage.checksum(path) for path in paths]
    target.metastore.fire_insert_event(
        table.dbName,
        table.tableName,
        values=change.current.values if isinstance(change.current, Partition) else None,
        files=paths,
        checksums=[found.value if found else "" for found in sums],
        subdirectories=[file.subdir for file in files],
        replace=False,
    )
