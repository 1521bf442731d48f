"""The events that wait in a source's log, kept between readings: each event is read once."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from hive_replication.errors import MissingEvents
from hive_replication.events.decoders_by_event_type import notification
from hive_replication.events.event_records import Notification
from hive_replication.events.unpack import MOST_BYTES
from hive_replication.lag.waiting_event import WaitingEvent
from hive_replication.lag.waiting_events import WaitingEvents
from hive_replication.logs import about
from hive_replication.metastore.client import Metastore

_LOG = logging.getLogger(__name__)

_PATIENCE = 3.0  # seconds for an event that a Hive 3.1 metastore commits after later ones
_MOST_FILES = 100_000  # whose names are kept, half a kilobyte each; the sizes of further ones are not looked up
_LONGEST = 20.0  # seconds of a reading that need not be whole: Hive 4.0 may be asked about each commit
_UNREADABLE = 300.0  # seconds until an unreadable part of the log is read again


@dataclass(frozen=True, slots=True)
class Reach:
    """How much of the log is known.

    Args:
        after: event id after which it is known; replicas with a lower applied id are in a gap.
        until: event id up to which it is known.
        problem: why it is not known from an earlier id, or "".
    """

    after: int
    until: int
    problem: str = ""


class WaitingLog:
    """Reads a log, each event once.

    Args:
        metastore: the source's.
        read: what to keep of a row.
        most: events to read at a time, for some seconds at most; None for all.
        most_bytes: that a message may unpack to.
    """

    def __init__(
        self,
        metastore: Metastore,
        read: Callable[[Notification], Iterable[WaitingEvent]],
        most: int | None,
        most_bytes: int = MOST_BYTES,
    ) -> None:
        self._metastore, self._read, self._most, self._most_bytes = metastore, read, most, most_bytes
        self._reach = Reach(0, 0)
        self._lost = (-1, "", 0.0)  # event id, reason, and when it was found
        self._events: dict[str, dict[str, WaitingEvents]] = {}
        self._files = 0

    def events_of(self, database: str) -> Mapping[str, WaitingEvents]:
        """What was kept of a database, by name."""
        return self._events.get(database, {})

    def cover(self, starts: Iterable[int], current: int) -> Reach:
        """Reads the new part of the log, from the lowest readable one of ``starts`` to ``current``.

        Args:
            starts: applied event ids of replicas.
            current: the source's newest event id.
        """
        lost, problem, found = self._lost
        if time.monotonic() - found > _UNREADABLE or current < self._reach.until:
            lost, problem = -1, ""
        wanted = sorted({start for start in starts if start <= current})
        patience = _PATIENCE
        for start in (start for start in wanted if start > lost):
            try:
                self._extend(start, current, patience)
                break
            except MissingEvents as error:
                problem, patience = str(error), 0.0
                _LOG.warning("how far replicas are behind event %d is not known: %s", current, error, extra=about(evid=start))
                self._lost = (start, problem, time.monotonic())
                self._forget(start)
        else:
            self._forget(current)
        self._reach = Reach(self._reach.after, self._reach.until, problem if wanted and wanted[0] < self._reach.after else "")
        return self._reach

    def _forget(self, start: int) -> None:
        self._reach, self._events, self._files = Reach(start, start), {}, 0

    def _extend(self, start: int, current: int, patience: float) -> None:
        if start < self._reach.after or start > self._reach.until or current < self._reach.until:
            self._forget(start)
        self._forget_until(start)
        after = self._reach.until
        until = current if self._most is None else min(current, after + self._most)
        if after < until:
            ends = time.monotonic() + _LONGEST
            for one in self._metastore.events(after, until, patience=patience):
                row = notification(one, self._most_bytes, views=self._metastore.views_of_materialized)
                for event in tuple(self._read(row)):
                    self._keep(event)
                self._reach = Reach(start, row.evid)  # so that nothing is read twice where the metastore ceases to answer
                if self._most is not None and time.monotonic() >= ends:
                    return
        self._reach = Reach(start, until)

    def _keep(self, event: WaitingEvent) -> None:
        with_files = self._files < _MOST_FILES
        self._files += len(event.files) if with_files else 0
        names = self._events.setdefault(event.database, {})
        names.setdefault(event.name, WaitingEvents()).add(event, with_files=with_files)

    def _forget_until(self, start: int) -> None:
        for names in self._events.values():
            for events in names.values():
                events.forget(start)
        left = {database: {name: one for name, one in names.items() if len(one)} for database, names in self._events.items()}
        self._events = left
        self._files = sum(one.files for names in left.values() for one in names.values())
