"""Transactions in an incremental dump: those that ended and wrote to the database, each commit with the files that it wrote.

The log names for every end of a transaction the databases that it wrote to; ends of others are left out, and so are beginnings:
that a transaction is about to write to a table is told by the event that gives it its write id there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from hive_replication.acid.directories import base_name
from hive_replication.dump.records import EventRecord, FileGroup
from hive_replication.dump.source import Source
from hive_replication.events.files import FileRef
from hive_replication.events.records import Notification
from hive_replication.events.transactions import TYPES, TransactionWrite, claimed, concerns, transaction_of
from hive_replication.metastore.transactions import WriteEvent


@dataclass(frozen=True)
class TransactionReader:
    """Reads what ended transactions wrote to one database.

    Args:
        source: the source side.
        database: source database.
        includes: whether a table's name belongs to the dump.
    """

    source: Source
    database: str
    includes: Callable[[str], bool]

    def record(self, row: Notification) -> EventRecord | None:
        """The end of a transaction as an event of the database; None of other events, and of transactions of other databases."""
        if row.type not in TYPES or not self.source.acid or not concerns(row, self.database):
            return None
        if row.type == "ABORT_TXN":
            return EventRecord(claimed(row, self.database))
        found = self.source.metastore.write_events(transaction_of(row), self.database)
        writes = [one for one in found if self.includes(one.table) and not one.view]
        told = [TransactionWrite(one.table, one.partition, one.write_id, self._emptied(one)) for one in writes]
        return EventRecord(claimed(row, self.database, told), tuple(_groups(writes)))

    def _emptied(self, write: WriteEvent) -> bool:
        """Whether an overwrite left no file, but a base that hides what was there."""
        base = f"{write.location}/{base_name(write.write_id)}"
        return bool(write.location) and not write.files and self.source.storage.exists(base)


def _groups(writes: Iterable[WriteEvent]) -> Iterable[FileGroup]:
    """The files of each table and partition; a transaction of several statements may have written to one more than once."""
    found: dict[tuple[str, str], dict[FileRef, None]] = {}
    for one in writes:
        found.setdefault((one.table, one.partition), {}).update(dict.fromkeys(map(FileRef.from_message, one.files)))
    return (FileGroup(partition, tuple(files), table=table) for (table, partition), files in found.items())
