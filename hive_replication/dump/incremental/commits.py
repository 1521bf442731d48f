"""Transactions in an incremental dump: those that ended and wrote to the database, each commit with the files that it wrote.

The log names for every end of a transaction the databases that it wrote to; ends of others are left out, and so are beginnings:
a transaction that is about to write to a table allocates a write id of the table, which is an event of its own. Where the table
was dropped since, the end does not name its database: it is of those whose write ids the transaction got.

Of transactions that stand for those of another source the log does not name the right databases. Of a database that is a replica
itself all ends are taken: ending a transaction that the target does not have does nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from urllib.parse import unquote

from hive_replication.acid.directories import AcidDirectory, base_name
from hive_replication.dump.beginnings import Beginnings, Passed
from hive_replication.dump.format.record_types import EventRecord, FileGroup
from hive_replication.dump.incremental.present_location import Lookup, PresentLocations
from hive_replication.dump.incremental.unnoted_writes import UnnotedWrites
from hive_replication.dump.source import Source
from hive_replication.dump.source_boundary import SourceBoundary
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.events.events_of_policy import LogEvent, ends_transaction
from hive_replication.events.files import FileRef
from hive_replication.events.transactions import (
    ENDS,
    AbortTransaction,
    CommitTransaction,
    TransactionEvent,
    TransactionWrite,
)
from hive_replication.logs import about
from hive_replication.metastore.transactions import WriteEvent
from hive_replication.metastore.types import NotificationEvent
from hive_replication.storage import paths

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class TransactionReader:
    """Reads what ended transactions wrote to one database.

    Args:
        source: the source side.
        locations: present locations of the database's objects.
        includes: whether a table's name belongs to the dump.
        boundary: what may be read of the database.
        replica: whether the database is a replica, so that its transactions may stand for those of another source.
    """

    source: Source
    locations: PresentLocations
    includes: Callable[[str], bool]
    boundary: SourceBoundary
    replica: bool = False

    @property
    def database(self) -> str:
        """The source database."""
        return self.locations.database

    @cached_property
    def _beginnings(self) -> Beginnings:
        return Beginnings(self.source.opened_in_log, self.database, self.replica)

    @cached_property
    def _unnoted(self) -> UnnotedWrites:
        return UnnotedWrites(self.source, self.locations, self.boundary)

    def note(self, event: NotificationEvent) -> None:
        """Takes notice of an event of the dump, before those after it are recorded: it may begin transactions."""
        if self.source.acid:
            self._beginnings.note(event)

    def record(self, event: LogEvent) -> EventRecord | None:
        """The end of a transaction as an event of the database; None of other events, and of transactions of other databases.

        Raises:
            MissingEvents: the log no longer tells what the transaction wrote.
        """
        if not self.source.acid or event.row.type not in ENDS:
            return None
        named, passed = ends_transaction(event, self.database, replica=self.replica), Passed()
        untold = isinstance(event.event, CommitTransaction) and not event.event.databases
        if isinstance(event.event, TransactionEvent):
            named = named or self._beginnings.may_be_of(event.event, self.source.unnamed_ends)
            passed = self._beginnings.passed(event.event.transaction)
        if not named and not untold:
            return None
        row = replace(event.row, database=self.database)
        if not isinstance(event.event, CommitTransaction):
            return None if self._is_open(event) else EventRecord(row)
        found = self.source.metastore.write_events(event.event.transaction, self.database)
        if not named and not found:
            return None
        self._beginnings.require(event.event, passed.opened, some=bool(found))
        writes = [one for one in found if self.includes(one.table) and not one.view]
        groups = (*_groups(writes, replica=self.replica), *self._without_note(event.event, passed, found))
        return EventRecord(row, groups, writes=self._written(writes, event.evid))

    def _without_note(self, commit: CommitTransaction, passed: Passed, found: Iterable[WriteEvent]) -> Iterator[FileGroup]:
        """What stands for writes that nobody noted; a load notes none where it makes a table anew."""
        allocated = () if self.replica else self._beginnings.allocated(commit, passed, {one.table for one in found})
        return self._unnoted.groups(commit, (one for one in allocated if self.includes(one.table)))

    def _written(self, writes: list[WriteEvent], evid: int) -> tuple[TransactionWrite, ...]:
        """What a commit wrote, () where that cannot be read: then the load holds the tables that the record names."""
        table, problem = next(((one.table, one.problem) for one in writes if one.problem), ("", ""))
        try:
            if not problem:
                truncates = [self._truncates(one, evid) for one in writes]
                pairs = zip(writes, truncates, strict=True)
                return tuple(TransactionWrite(one.table, one.partition, one.write_id, emptied) for one, emptied in pairs)
        except Unreachable:
            raise
        except ReplicationError as error:
            problem = str(error)
        extra = about(self.database, table, evid)
        _LOG.warning("what the transaction wrote cannot be read: the load holds its tables: %s", problem, extra=extra)
        return ()

    def _is_open(self, event: LogEvent) -> bool:
        """Whether an abort names an open transaction: Hive's own loads log the id that the transaction has at their source."""
        ended = event.event.transaction if self.replica and isinstance(event.event, AbortTransaction) else None
        return ended is not None and not self.source.metastore.ended([ended])

    def _truncates(self, write: WriteEvent, evid: int) -> bool:
        """Whether an overwrite left no file, but a base that hides what was there.

        Raises:
            _Untold: that base may have been there: a later one has taken its place.
        """
        if write.files or not write.location:
            return False
        names = self._directories(Lookup(write.location, write.table, write.partition, evid))
        if base_name(write.write_id) in names:
            return True
        if _cleaned(names, write.write_id):
            what = f"{self.database}.{write.table}/{write.partition}".rstrip("/")
            raise _Untold(f"a later base of {what} took the place of what event {evid} left there, which may have emptied it")
        return False

    def _directories(self, lookup: Lookup) -> list[str]:
        """Those of an object where it lies now; none of one that is gone."""
        storage, place = self.source.storage, self.locations.find([lookup])[lookup]
        while place.location is not None:
            try:
                names = [paths.name(one.uri.rstrip("/")) for one in storage.ls(place.location) if one.is_dir]
            except FileNotFoundError:
                names = []
            before, place = place, self.locations.find([lookup])[lookup]
            if place == before:
                return names
        return []


def _cleaned(names: Iterable[str], write_id: int) -> bool:
    """Whether what a transaction left may have been deleted since: there is a later base, and nothing that it made needless."""
    parsed = [one for one in map(AcidDirectory.parsed, names) if one is not None]
    later = [one.last for one in parsed if one.kind == "base" and one.last >= write_id]
    return bool(later) and not any(one.last <= min(later) for one in parsed if one.kind != "base" or one.last < write_id)


class _Untold(ReplicationError):
    """Nothing tells any more what a transaction did."""


def _groups(writes: Iterable[WriteEvent], *, replica: bool) -> Iterable[FileGroup]:
    """The files of each table and partition; a transaction of several statements may have written to one more than once."""
    found: dict[tuple[str, str], dict[FileRef, None]] = {}
    for one in writes:
        files = (_as_stored(FileRef.from_message(text), one.location, replica=replica) for text in one.files)
        found.setdefault((one.table, one.partition), {}).update(dict.fromkeys(files))
    return (FileGroup(partition, tuple(files), table=table) for (table, partition), files in found.items())


def _as_stored(file: FileRef, location: str | None, *, replica: bool) -> FileRef:
    """The file by its path: of a replicated commit Hive notes an encoded URI (``Path.toUri``), of all others the path as it is.

    Args:
        file: of a write.
        location: of what was written to.
        replica: whether its commits are replicated ones; in an opened replica some are, whose places tell.
    """
    plain = unquote(file.uri)
    encoded = replica or (f"{location}/" in plain and f"{location}/" not in file.uri)
    return replace(file, uri=plain) if encoded else file
