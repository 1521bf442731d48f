"""The notification log: reading it without missing anything, and adding INSERT events to it."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import accumulate, repeat
from typing import TypeVar

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import (
    FireEventRequest,
    FireEventRequestData,
    InsertEventRequestData,
    NotificationEventRequest,
)
from thrift.Thrift import TApplicationException

from hive_replication.errors import MissingEvents
from hive_replication.logs import about
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.hive2_insert import fire_insert
from hive_replication.metastore.server import Calls
from hive_replication.metastore.types import NotificationEvent

_LOG = logging.getLogger(__name__)

T = TypeVar("T")


class _Twice(MissingEvents):
    """Two events have one id: a metastore whose writers do not wait for each other gave it twice."""


def consecutive(events: Iterable[NotificationEvent], after: int) -> Iterator[NotificationEvent]:
    """Passes events on as long as each has the id that follows the one before (Hive's ids are dense).

    Args:
        events: in the order of the log.
        after: the id before the first.

    Raises:
        MissingEvents: ids are left out, or one comes twice.
    """
    for event in events:
        if event.eventId > after + 1:
            raise MissingEvents(f"the notification log lacks the events {after + 1} to {event.eventId - 1}; {_RECOVERY}")
        if event.eventId <= after:
            raise _Twice(f"the notification log has event {event.eventId} again after event {after}; {_RECOVERY}")
        yield event
        after = event.eventId


_RECOVERY = "hive-repl recover compares the replica with its source and bootstraps again what differs"
_LOOK_AGAIN = 0.5  # seconds
_FIRST = 50  # events of a first page: how large they are is not known before; an ADD_PARTITION of 1,000 partitions has 1.6 MB
_FEW = 10  # events that a metastore can answer with, however large they are
_PAGE = 16 << 20  # bytes of messages
_STEP = 4  # how many times as many events as the page before may be asked for, and how many times fewer after a lost answer


class NotificationLog(Calls):
    """The notification log of a metastore."""

    def current_event_id(self) -> int:
        """Id of the newest event ever written, also after the log was purged; 0 before the first."""
        return self._of_log("get_current_notification_id", lambda client: client.get_current_notificationEventId().eventId)

    def _of_log(self, what: str, do: Callable[[Client], T]) -> T:
        """A call about the log: to an account that may not read it the metastore says no more than that of an internal error."""
        try:
            return self.call(what, do)
        except MetastoreError as error:
            if not isinstance(error.__cause__, TApplicationException):
                raise
            name = self.access.known_as
            raise MetastoreError(
                f"{error}: if the account {name} may not read the notification log, set "
                "hive.metastore.event.db.notification.api.auth=false at the metastore, or in its core-site.xml "
                f"hadoop.proxyuser.{name}.hosts to this host"
            ) from error

    def events(
        self, after: int, until: int | None = None, *, batch: int = 1000, patience: float = 3.0
    ) -> Iterator[NotificationEvent]:
        """The events with ids above ``after``, ascending, up to ``until`` or to the newest at the time of the call.

        Args:
            after: an event id; 0 for the beginning of the log.
            until: last event id wanted; it need not exist yet, then the newest is the last.
            batch: the most events of a call; where their messages are large, it asks for fewer.
            patience: seconds for which an event that is missing is looked for again: a Hive 3.1 metastore may commit it after a
                later one.

        Raises:
            MissingEvents: an event was purged, is left out or comes twice, or the log ends before ``after`` (a restored or
                another metastore). What comes before the hole is passed on first.
        """
        newest = self.current_event_id()
        if newest < after:
            raise MissingEvents(f"the notification log of {self.uri} ends at event {newest}, before event {after}: it is another "
                                f"log, or its metastore was restored from an older state; {_RECOVERY}")  # fmt: skip
        last = newest if until is None else min(until, newest)
        begun = time.monotonic()
        while after < last:
            missing = None
            try:
                for event in consecutive(self._pages(after, last, batch), after):
                    after, begun = event.eventId, time.monotonic()
                    yield event
            except _Twice:
                raise  # read again from here, the log would not show the other one
            except MissingEvents as error:
                missing = error
            if missing is None and after < last:
                missing = MissingEvents(f"the notification log of {self.uri} lacks the events {after + 1} to {last}; {_RECOVERY}")
            if missing is not None and time.monotonic() - begun >= patience:
                raise missing
            if missing is not None:
                _LOG.debug("an event is missing and is looked for again: %s", missing, extra=about(evid=after))
                time.sleep(_LOOK_AGAIN)

    def event(self, evid: int) -> NotificationEvent | None:
        """One event; None where the log has it no longer, or not yet."""
        page = self._page(evid - 1, 1) if evid > 0 else []
        return page[0] if page and page[0].eventId == evid else None

    def events_left(self, after: int, until: int) -> Iterator[NotificationEvent]:
        """What the log still has of the events of ``(after, until]``, ascending; ids may be left out."""
        return self._pages(after, until, max(1, until - after))

    def fire_insert_event(
        self,
        db: str,
        table: str,
        *,
        values: Sequence[str] | None,
        files: Sequence[str],
        checksums: Sequence[str],
        replace: bool,
        subdirectories: Sequence[str] = (),
    ) -> None:
        """Tells the metastore of an INSERT, as Hive's own driver does after writing (``hive.metastore.dml.events``).

        It is not repeated when the connection is lost, since a second event could not be distinguished from another INSERT.

        Args:
            db: database of the table.
            table: its name.
            values: values of the partition, or None for a table without partitions.
            files: URIs of the new files.
            checksums: for each file, lowercase hex of Hadoop's ``getFileChecksum`` bytes (or "").
            replace: whether they replaced what was there (INSERT OVERWRITE); a metastore of Hive 2 has no place for it.
            subdirectories: for each file, its directory below the table's or partition's (or "").
        """
        what = f"fire_listener_event {db}.{table}"
        if self.features.major < 3:
            self.call(what, lambda client: fire_insert(client, db, table, values, files, checksums), repeatable=False)
            return
        below = list(subdirectories) if any(subdirectories) else None
        insert = InsertEventRequestData(
            replace=replace, filesAdded=list(files), filesAddedChecksum=list(checksums), subDirectoryList=below
        )
        request = FireEventRequest(
            successful=True,
            data=FireEventRequestData(insertData=insert),
            dbName=db,
            tableName=table,
            partitionVals=None if values is None else list(values),
        )
        self.call(what, lambda client: client.fire_listener_event(request), repeatable=False)

    def _pages(self, after: int, last: int, batch: int) -> Iterator[NotificationEvent]:
        """The events, in pages of about ``_PAGE`` bytes: the metastore holds all of an answer in its memory."""
        size = min(_FIRST, batch)
        while after < last:
            page = self._page(after, size)
            for event in page:
                if event.eventId > last:
                    return
                yield event
            if not page:
                return
            after = page[-1].eventId
            if len(page) < size:  # an answer was lost: no more are asked for, but a metastore that was only away costs little
                batch = min(batch, max(_FEW, len(page)))
            shown = sum(len(event.message or "") for event in page)
            size = max(1, min(batch, _STEP * len(page), _PAGE * len(page) // max(shown, 1)))

    def _page(self, after: int, batch: int) -> list[NotificationEvent]:
        """At most so many events; fewer where the connection is lost, since an answer may be too large for the metastore."""
        sizes = accumulate(repeat(_STEP), lambda size, step: max(1, size // step), initial=batch)

        def ask(client: Client) -> list[NotificationEvent]:
            return client.get_next_notification(NotificationEventRequest(lastEvent=after, maxEvents=next(sizes))).events

        return self._of_log(f"get_next_notification after {after}", ask)
