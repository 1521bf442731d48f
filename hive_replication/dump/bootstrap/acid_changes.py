"""What others do to transactional tables while these are dumped, and waiting until none of their transactions is open."""

from __future__ import annotations

import time
from collections.abc import Iterator, Set
from dataclasses import dataclass

from hive_replication.dump.bootstrap.table_reader import ObjectReader
from hive_replication.dump.source import Source
from hive_replication.errors import ReplicationError
from hive_replication.events import event_records as r
from hive_replication.events.events_of_policy import LogEvent, ends_transaction, notifications
from hive_replication.events.redumps import why_redump
from hive_replication.events.transactions import Compaction
from hive_replication.metastore.table_kinds import is_transactional

_LOOK_AGAIN = 0.5  # seconds
_NEVER = float("inf")


@dataclass(frozen=True)
class Changes:
    """Events of transactional tables of a dump of objects under way.

    Args:
        source: the source side.
        reader: what was read so far.
    """

    source: Source
    reader: ObjectReader

    def are_any(self, after: int, until: int, names: Set[str]) -> bool:
        """Whether any event of a range is of the tables, or ends a transaction that may have written to them."""
        database = self.reader.scope.database
        return any(self._concerned(one, names) or ends_transaction(one, database) for one in self._events(after, until))

    def of(self, after: int, until: int, names: Set[str]) -> set[str]:
        """Which of the tables the events of a range concern."""
        return {table for one in self._events(after, until) for table in self._concerned(one, names)}

    def of_files(self, after: int, until: int, names: Set[str]) -> set[str]:
        """Tables with events of a range that take files from what readers saw before it: listed since, some may have been absent.

        Whatever writes beside these files has a later write id, and no partition is read that comes later.
        """
        found = set[str]()
        for one in self._events(after, until):
            if (tables := self._concerned(one, names)) and self._takes_files(one):
                found |= tables
        return found

    def _events(self, after: int, until: int) -> Iterator[LogEvent]:
        most = self.source.policy.max_message_bytes
        return map(LogEvent, notifications(self.source.metastore, after, until, most, self.reader.scope.database))

    def _concerned(self, event: LogEvent, names: Set[str]) -> set[str]:
        """The dump's transactional tables that an event may be of; all of them where the database goes."""
        row = event.row
        if row.database != self.reader.scope.database:
            return set()
        if not row.table:
            return set(names) if row.type == "DROP_DATABASE" else set()
        tables = {row.table}
        if row.type == "ALTER_TABLE":  # a rename is logged under one of its names, and of an unreadable one nobody knows them
            if event.event is None:
                return set(names)
            tables |= set(event.event.names)
        return {table for table in tables if table in names or self._was_transactional(table)}

    def _was_transactional(self, table: str) -> bool:
        """Whether the dump has it as such: it may be gone since."""
        record = self.reader.writer.table(table) if table in self.reader.reads else None
        return record is not None and is_transactional(record.table)

    def _takes_files(self, event: LogEvent) -> bool:
        change = event.event
        match change:
            case None | r.DropDatabase() | r.DropTable() | r.DropPartition() | Compaction():  # which the cleaner follows
                return True
            case r.AlterTable():
                return change.rename or change.relocated or change.truncate or bool(why_redump(change))
            case r.AlterPartition():
                return change.truncate or any(self._is_moved(change.table, one) for one in change.changes)
            case _:
                return bool(why_redump(change))

    def _is_moved(self, table: str, change: r.ChangedPartition) -> bool:
        part = self.reader.writer.partition(table, change.before_name)
        return change.rename or (part is not None and part.partition.sd.location != change.after.sd.location)


class Waiting:
    """Waits for open transactions, then does what the policy says.

    Args:
        source: the source side.
        database: whose transactions.
    """

    def __init__(self, source: Source, database: str) -> None:
        self._source, self._database, self._settings = source, database, source.policy.acid
        self._until, self._aborted = _NEVER, False

    def begin_anew(self) -> None:
        """The tables were listed: those that come from now on have all the time that the policy gives them."""
        self._until, self._aborted = _NEVER, False

    def wait(self, tables: list[str]) -> None:
        """Waits a little.

        Args:
            tables: that have open transactions.

        Raises:
            ReplicationError: that was long enough, and the transactions are not to be aborted, or cannot be.
        """
        if self._until == _NEVER:
            self._until = time.monotonic() + self._settings.open_txn_timeout
        if time.monotonic() < self._until:
            time.sleep(_LOOK_AGAIN)
            return
        writers = self._source.metastore.writers(self._database, tables)
        if self._aborted or self._settings.at_timeout == "fail" or not writers:
            known = ", ".join(map(str, sorted(writers))) or "none that holds a lock"
            raise ReplicationError(
                f"transactions that write to tables of {self._database} ({', '.join(tables)}) did not end within "
                f"{self._settings.open_txn_timeout:g} s; open now: {known}. Let them end, or set acid.at_timeout to abort"
            )
        self._source.metastore.abort(writers)
        self._aborted, self._until = True, time.monotonic() + 10
