"""Bases of transactions that are not committed yet: they are staged where no reader looks, and shown by a rename.

Hive reads the base of a table's lowest open write, too (``AcidUtils.isValidBase``): its own readers wait for the writer's lock,
and a load has none. So the base of an INSERT OVERWRITE or a TRUNCATE lies beside its place, under a hidden name, until all of it
is there and its transaction is about to be committed.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hive_replication.acid.directories import base_name
from hive_replication.events.files import FileRef
from hive_replication.load.layout.directories import staged_base
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.target_boundary import boundary_of
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.transactions import WriteEvent
from hive_replication.metastore.types import directory_of
from hive_replication.storage import AlreadyExists, Storage

# The file that Hive's TRUNCATE writes into the base that it leaves (AcidUtils.MetaDataFile), and what it holds.
_LEFT = "_metadata_acid"
_TRUNCATED = b'{"thisFileVersion":"0","dataFormat":"truncated"}'


@dataclass(frozen=True, slots=True)
class Base:
    """The base of a write to a table or partition of the target.

    Args:
        table: target table name.
        partition: partition name, "" for the table itself.
        write_id: of the table.
        directory: of the table or partition.
    """

    table: str
    partition: str
    write_id: int
    directory: str

    @property
    def place(self) -> str:
        """Where readers look for it."""
        return f"{self.directory}/{base_name(self.write_id)}"

    @property
    def staged(self) -> str:
        """Where it lies until its transaction is committed."""
        return f"{self.directory}/{staged_base(base_name(self.write_id))}"

    def leave_empty(self, storage: Storage, *, shown: bool) -> None:
        """Writes one without rows, as TRUNCATE does: in its place, or staged."""
        storage.write(f"{self.place if shown else self.staged}/{_LEFT}", _TRUNCATED)

    def show(self, storage: Storage) -> None:
        """Gives it its place; nothing where it has that, or was not staged."""
        try:
            storage.rename(self.staged, self.place)
        except FileNotFoundError:
            pass
        except AlreadyExists:  # the files were copied there
            storage.delete(self.staged, recursive=True)

    def exists(self, storage: Storage) -> bool:
        """Whether there is one, staged or in its place."""
        return storage.exists(self.staged) or storage.exists(self.place)

    def delete(self, storage: Storage) -> None:
        """Deletes what there is of it."""
        for directory in (self.place, self.staged):
            storage.delete(directory, recursive=True)

    def noted_empty(self) -> WriteEvent:
        """What the target's metastore is told of one without rows: it notes no write without a file."""
        base = base_name(self.write_id)
        file = FileRef(f"{base}/{_LEFT}", "", "", base)
        return WriteEvent(self.table, self.partition, self.write_id, (file.encode(),))


def bases_of(target: Target, database: str, table: str, partitions: Iterable[str], write_id: int) -> list[Base]:
    """The bases of a write to a table ("") or to partitions of it; none in an object that went away.

    Raises:
        Refused: an object lies outside the directories that the policy allows.
    """
    metastore, boundary, names = target.metastore, boundary_of(target, database), set(partitions)
    found = metastore.table(database, table)
    if found is None:
        return []
    parts = metastore.partitions(database, table, names - {""}) if names - {""} else ()
    things = {**({"": found} if "" in names else {}), **by_name(found, parts)}
    bases = [Base(table, name, write_id, directory_of(one)) for name, one in things.items()]
    for base in bases:
        boundary.require_within(base.directory, object_name(database, table, base.partition))
    return bases
