"""Whether the source's log still has the beginning of a transaction, and so all that was noted of it since.

Hive notes what a transaction writes when it is written, and deletes that note when it is as old as an event may be: before the
event of the commit. So all that a transaction has written is noted only if the log reaches back to its beginning. Nor does its
end name the databases any more whose tables were dropped before it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field

from hive_replication.errors import MissingEvents
from hive_replication.events import event_records as r
from hive_replication.events.decoders_by_event_type import UnreadableMessage, decode, notification
from hive_replication.events.transactions import (
    ENDS,
    AbortTransaction,
    AllocateWriteIds,
    CommitTransaction,
    TransactionEvent,
    opened_by,
)
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import NotificationEvent

_FEW, _MOST = 100, 1000  # events at a time, going back
_FAR = 10_000  # events back for an abort, of which a guess is good enough: most begin a few events before
_KEPT = 10_000  # answers
_TYPES = frozenset({"OPEN_TXN", "ALLOC_WRITE_ID_EVENT"})


@dataclass(frozen=True, slots=True)
class Allocated:
    """A write id of a table that a transaction got.

    Args:
        database, table: lower-case names.
        write_id: the write id.
        evid: of the event that says so.
    """

    database: str
    table: str
    write_id: int
    evid: int


@dataclass(frozen=True, slots=True)
class Passed:
    """What was noted of a transaction that ends.

    Args:
        opened: event that opened it, as far as it is noted; else 0.
        allocated: write ids of the database that it got since.
    """

    opened: int = 0
    allocated: tuple[Allocated, ...] = ()


@dataclass(frozen=True)
class Beginnings:
    """Beginnings of transactions in a source's log; for threads.

    Args:
        log: knows which of them it has.
        database: lower-case name.
        replica: whether it is a replica, of whose transactions the log does not name the right databases.
    """

    log: OpenedInLog
    database: str
    replica: bool = False
    _noted: dict[int, int] = field(default_factory=dict[int, int])
    _writing: dict[int, tuple[Allocated, ...]] = field(default_factory=dict[int, tuple[Allocated, ...]])

    def note(self, event: NotificationEvent) -> None:
        """Keeps which transactions an event of the dump opens, or gives write ids of the database, until these are passed."""
        if event.eventType == "ALLOC_WRITE_ID_EVENT" and (event.dbName or "").lower() == self.database:
            for transaction, one in _allocated(event):
                self._writing[transaction] = (*self._writing.get(transaction, ()), one)
        opened = _opened(event)
        if opened.stop - opened.start <= _MOST:  # Hive opens no more at once
            self._noted.update(dict.fromkeys(opened, event.eventId))

    def passed(self, transaction: int) -> Passed:
        """A transaction ends: what is noted of it."""
        return Passed(self._noted.pop(transaction, 0), self._writing.pop(transaction, ()))

    def may_be_of(self, ended: TransactionEvent, unnamed: UnnamedEnds) -> bool:
        """Whether a transaction whose end does not name the database got write ids of it, before it is passed.

        Nothing is looked for where the dump has its beginning, nor for a commit: a metastore of many databases has too many. An
        abort that is taken for one of a database which it is not of does nothing there.

        Args:
            ended: the end.
            unnamed: looks for the beginning of an abort.
        """
        if ended.transaction in self._noted or ended.transaction in self._writing:
            return ended.transaction in self._writing
        return isinstance(ended, AbortTransaction) and unnamed.begun(ended).may_be_of(self.database)

    def follow(self, event: NotificationEvent) -> None:
        """Takes an event of a log that is only looked through for what is missing.

        The metastore is asked about those transactions alone that began before it.

        Raises:
            MissingEvents: it is a commit, and what it wrote to the database is no longer known.
        """
        self.note(event)
        said = _decoded(event) if event.eventType in ENDS else None
        begun = isinstance(said, TransactionEvent) and self.passed(said.transaction).opened
        if begun or self.replica or not isinstance(said, CommitTransaction) or not said.concerns(self.database):
            return
        self.require(said, some=bool(self.log.metastore.write_events(said.transaction, self.database)))

    def require(self, commit: CommitTransaction, begun: int = 0, *, some: bool = False) -> None:
        """Makes sure that all that a transaction wrote would be noted, of which the metastore was asked.

        Args:
            commit: of it. One that does not name the database, as none of Hive 4.0 does, is taken for one that wrote nothing.
            begun: the event that opened it, as far as it is noted; else 0.
            some: whether the metastore knows of something that it wrote to the database: what it wrote before may be forgotten.

        Raises:
            MissingEvents: the log begins after the transaction, or, where nothing is known of, after it got its write ids of the
                database.
        """
        transaction, evid = commit.transaction, commit.evid
        if self.replica or not (some or self.database in (commit.databases or ())):
            return
        if begun and (some or self.log.metastore.event(begun) is not None):
            return
        if self.log.has(transaction, evid):
            return
        found = begun_in(self.log.metastore, transaction, evid)
        if found.opened or not (some or found.may_be_purged_of(self.database)):
            return
        raise MissingEvents(
            f"what transaction {transaction} wrote to {self.database!r}, which event {evid} commits, is no longer known: it was "
            "open for longer than the source's log lasts (metastore.event.db.listener.timetolive); hive-repl recover compares "
            "the replica with its source and bootstraps again what differs"
        )

    def allocated(self, commit: CommitTransaction, passed: Passed, known: Container[str]) -> tuple[Allocated, ...]:
        """The write ids of the database that a transaction got, of tables that it is not known to have written to.

        Where it began before the dump, the log is asked, unless something is known: who notes any write notes all of them.

        Args:
            commit: of it. One that does not name the database is not looked for.
            passed: what is noted of it.
            known: names of tables that it wrote to.
        """
        found = passed.allocated
        if not (passed.opened or known) and self.database in (commit.databases or ()):
            found = begun_in(self.log.metastore, commit.transaction, commit.evid).allocated
        return tuple(one for one in found if one.database == self.database and one.table not in known)


@dataclass(frozen=True)
class OpenedInLog:
    """Which transactions were opened in what a source's log still has: none before its first one, since their ids ascend.

    So long ones need not be looked for, each back from its end; for threads.

    Args:
        metastore: the source's.
    """

    metastore: Metastore
    _first: list[int] = field(default_factory=list[int])

    def has(self, transaction: int, evid: int) -> bool:
        """Whether it has the beginning of a transaction.

        Args:
            transaction: the source's id of it.
            evid: of its end.
        """
        event = next(filter(None, map(self.metastore.event, tuple(self._first))), None)
        if event is None or not _opened(event):  # the log is cleaned meanwhile
            event = next(filter(_opened, self.metastore.events_left(0, evid - 1)), None)
            self._first[:] = [] if event is None else [event.eventId]
        return event is not None and _opened(event).start <= transaction


@dataclass(frozen=True, slots=True)
class Begun:
    """What the log has of a transaction before its end.

    Args:
        allocated: write ids of tables that it got.
        opened: whether it was opened in it, so that these are all.
    """

    allocated: tuple[Allocated, ...]
    opened: bool

    @property
    def databases(self) -> frozenset[str]:
        """Lower-case names of those of whose tables it got write ids."""
        return frozenset(one.database for one in self.allocated)

    def may_be_of(self, database: str) -> bool:
        """Whether it may have got write ids of a database."""
        return not self.opened or database in self.databases

    def may_be_purged_of(self, database: str) -> bool:
        """Whether what was noted of it in a database may be gone."""
        return not self.opened and database not in self.databases


@dataclass(frozen=True)
class UnnamedEnds:
    """Beginnings of transactions of which the message of the end does not name a database; for threads.

    Such a one wrote nothing there, or its tables were dropped since. Each failed statement is one, and every database asks for
    it: the answer is kept. How far it is looked for is bounded: an abort that is taken for one of a database which it is not of
    does nothing there.

    Args:
        metastore: the source's.
    """

    metastore: Metastore
    _known: dict[int, Begun] = field(default_factory=dict[int, Begun])

    def begun(self, event: TransactionEvent) -> Begun:
        """What the log has of it before its end, as far as it was looked for."""
        found = self._known.get(event.evid)
        if found is None:
            found = begun_in(self.metastore, event.transaction, event.evid, _FAR)
            if len(self._known) >= _KEPT:
                self._known.clear()
            self._known[event.evid] = found
        return found


def begun_in(metastore: Metastore, transaction: int, evid: int, most: int | None = None) -> Begun:
    """Looks for the beginning of a transaction, back from the event of its end.

    Args:
        metastore: the source's.
        transaction: the source's id of it.
        evid: of its end.
        most: events to look at; None for all that the log has.
    """
    found = list[Allocated]()
    for event in _before(metastore, evid, 0 if most is None else max(0, evid - 1 - most)):
        if transaction in _opened(event):
            return Begun(tuple(found), opened=True)
        if event.eventType == "ALLOC_WRITE_ID_EVENT":
            found += (allocated for one, allocated in _allocated(event) if one == transaction)
    return Begun(tuple(found), opened=False)


def _allocated(event: NotificationEvent) -> Iterator[tuple[int, Allocated]]:
    """The write ids that ALLOC_WRITE_ID_EVENT tells of, by transaction."""
    said = _decoded(event)
    if isinstance(said, AllocateWriteIds):
        for transaction, write_id in said.write_ids:
            yield transaction, Allocated(said.database, said.table, write_id, said.evid)


def _before(metastore: Metastore, evid: int, after: int) -> Iterator[NotificationEvent]:
    """The beginnings among the events of ``(after, evid)``, the latest first, as far as the log reaches back."""
    most = _FEW
    while evid > after + 1:
        start = max(after, evid - 1 - most)
        first, found = 0, list[NotificationEvent]()
        for event in metastore.events_left(start, evid - 1):
            first = first or event.eventId
            if event.eventType in _TYPES:  # others may be large
                found.append(event)
        yield from reversed(found)
        if first != start + 1:
            return
        evid, most = start + 1, min(4 * most, _MOST)


def _decoded(event: NotificationEvent) -> r.Event | None:
    try:
        return decode(notification(event))
    except UnreadableMessage:
        return None


def _opened(event: NotificationEvent) -> range:
    return opened_by(notification(event).message) if event.eventType == "OPEN_TXN" else range(0)
