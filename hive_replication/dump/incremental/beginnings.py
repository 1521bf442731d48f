"""Whether the source's log still has the beginning of a transaction, and so all that was noted of it since.

Hive notes what a transaction writes when it is written, and deletes that note when it is as old as an event may be: before the
event of the commit. So a commit of which nothing is noted has written nothing only if the log reaches back to its beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from hive_replication.errors import MissingEvents
from hive_replication.events.decoders_by_event_type import UnreadableMessage, decode, notification
from hive_replication.events.transactions import AllocateWriteIds, opened_by
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import NotificationEvent

_FEW, _MOST = 100, 1000  # events a call, going back


@dataclass(frozen=True)
class Beginnings:
    """Beginnings of transactions in a source's log; for threads.

    Args:
        metastore: the source's.
        database: lower-case name.
    """

    metastore: Metastore
    database: str
    _noted: dict[int, int] = field(default_factory=dict[int, int])

    def note(self, event: NotificationEvent) -> None:
        """Keeps which transactions an event of the dump opens, until they are asked for or passed."""
        opened = _opened(event) if event.eventType == "OPEN_TXN" else range(0)
        if opened.stop - opened.start <= _MOST:  # Hive opens no more at once
            self._noted.update(dict.fromkeys(opened, event.eventId))

    def passed(self, transaction: int) -> int:
        """A transaction ends: the event that opened it, as far as it is noted; else 0."""
        return self._noted.pop(transaction, 0)

    def require(self, transaction: int, begun: int, evid: int) -> None:
        """Makes sure that what a transaction wrote would be noted; called after the metastore was asked for that.

        Args:
            transaction: the source's id of it.
            begun: what :meth:`passed` has answered.
            evid: of its commit.

        Raises:
            MissingEvents: the log begins after the transaction, or after it got its write ids of the database.
        """
        if begun and self.metastore.event(begun) is not None:
            return
        if not any(self._begins(one, transaction) for one in self._before(evid)):
            raise MissingEvents(
                f"what transaction {transaction} wrote to {self.database!r}, which event {evid} commits, is no longer known: "
                "it was open for longer than the source's log lasts (metastore.event.db.listener.timetolive); hive-repl recover "
                "compares the replica with its source and bootstraps again what differs"
            )

    def _before(self, evid: int) -> Iterator[NotificationEvent]:
        """The events before one, the latest first, as far as the log reaches back."""
        most = _FEW
        while evid > 1:
            after = max(0, evid - 1 - most)
            page = self.metastore.events_left(after, evid - 1)
            yield from reversed(page)
            if not page or page[0].eventId > after + 1:
                return
            evid, most = after + 1, min(4 * most, _MOST)

    def _begins(self, event: NotificationEvent, transaction: int) -> bool:
        if event.eventType == "OPEN_TXN":
            return transaction in _opened(event)
        if event.eventType != "ALLOC_WRITE_ID_EVENT" or (event.dbName or "").lower() != self.database:
            return False
        with suppress(UnreadableMessage):
            said = decode(notification(event))
            return isinstance(said, AllocateWriteIds) and any(transaction == one for one, _ in said.write_ids)
        return False


def _opened(event: NotificationEvent) -> range:
    return opened_by(notification(event).message)
