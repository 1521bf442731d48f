"""A transactional table on one side as readers see it now: its files and, if these differ, its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from hive_replication.acid.rows import Kind, Rows, kind_of, rows_of
from hive_replication.acid.write_ids import WriteIds
from hive_replication.dump.bootstrap.acid_snapshot import SnapshotListing
from hive_replication.dump.listing import Lister
from hive_replication.events.files import FileRef
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.table_kinds import is_insert_only
from hive_replication.metastore.types import Partition, Table
from hive_replication.storage import Storage


@dataclass(frozen=True, slots=True)
class Reading:
    """The rows of a table or partition that are to be added up; picklable, so that Spark executors can do it.

    Args:
        storage: the storage with its data.
        write_ids: what the reader sees.
        kind: how the files are read.
        files: those that the reader needs.
    """

    storage: Storage
    write_ids: WriteIds
    kind: Kind
    files: tuple[FileRef, ...]

    def rows(self) -> Rows:
        """Adds them up.

        Raises:
            ValueError: a file is not of its format.
            FileNotFoundError: one is gone; ReplicationErrors likewise where it cannot be read.
        """
        found = [(file.relative, partial(self.storage.read, file.uri)) for file in self.files]
        return rows_of(found, self.kind, self.write_ids)


@dataclass(frozen=True)
class Seen:
    """A table in the snapshot of a reader that starts now.

    Args:
        storage: the storage with its data.
        listing: lists what the reader needs.
        insert_only: whether it is an insert-only table.
        write_ids: what the reader sees.
    """

    storage: Storage
    listing: SnapshotListing
    insert_only: bool
    write_ids: WriteIds

    @classmethod
    def now(cls, metastore: Metastore, storage: Storage, lister: Lister, database: str, table: Table) -> Seen:
        """Asks a side's metastore."""
        name = table.tableName.lower()
        write_ids = metastore.write_ids(database, [name])[name]
        listing = SnapshotListing(storage, lister, metastore.hidden_transactions)
        return cls(storage, listing, is_insert_only(table), write_ids)

    def files(self, thing: Table | Partition) -> tuple[FileRef, ...]:
        """The files that the reader needs of the table or of a partition, by the names that a replica gives them."""
        (files,) = self.listing.many(self.write_ids, [thing.sd.location])
        return files

    def many(self, things: Iterable[Table | Partition]) -> list[tuple[FileRef, ...]]:
        """Those of several, in order."""
        return self.listing.many(self.write_ids, [thing.sd.location for thing in things])

    def reading(self, thing: Table | Partition, files: tuple[FileRef, ...]) -> Reading | None:
        """Of the rows in such files; None where their format cannot be read here."""
        kind = kind_of(thing.sd.inputFormat or "", insert_only=self.insert_only)
        return None if kind is None else Reading(self.storage, self.write_ids, kind, files)

    def rows(self, thing: Table | Partition, files: tuple[FileRef, ...]) -> Callable[[], Rows] | None:
        """The same, added up when called."""
        reading = self.reading(thing, files)
        return reading and reading.rows
