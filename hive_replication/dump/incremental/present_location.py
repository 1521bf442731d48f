"""The present location of an event's object: it may have been renamed or dropped since, and its old path be another object's."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from threading import RLock

from hive_replication.events import event_records as r
from hive_replication.events.events_of_policy import LogEvent, notifications, row_of
from hive_replication.events.files import FileRef
from hive_replication.events.unpack import MOST_BYTES
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.partition_filters import FilterOf
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.types import NotificationEvent, Table
from hive_replication.storage import paths

_NEAR = 10_000  # events


@dataclass(frozen=True, slots=True)
class Location:
    """Where an object lies.

    Args:
        location: its directory; None where the object is gone, or has none.
        since: event id of its last rename, 0 without one: it may have come back to a directory that it had left.
        table: its table's name, "" where the object is gone.
        partition: its name, "" for a table.
    """

    location: str | None
    since: int = 0
    table: str = ""
    partition: str = ""


@dataclass(frozen=True, slots=True)
class Lookup:
    """An object of an event.

    Args:
        location: its directory at the event.
        table: its table's name after the event.
        partition: its name after the event, "" for a table.
        evid: the event.
        kept: whether Hive keeps deleted files of it in cmroot.
        named: files that the event names; those in its sub-directories are looked for. None where events of its kind name none of
            any, and all are.
        created: when it was created, seconds since the epoch; 0 where the event does not tell.
    """

    location: str | None
    table: str
    partition: str
    evid: int
    kept: bool = True
    named: tuple[FileRef, ...] | None = None
    created: int = 0

    @property
    def nested(self) -> bool:
        """Whether only files in its sub-directories are looked for."""
        return self.named is not None


class PresentLocations:
    """Follows objects through the source's log, which is read beyond the events of the dump only for a lookup; for threads.

    Far from its end it is read on until each object is known to be gone, or the metastore has it where it should lie: while a
    long log is caught up with, each window would read all the rest of it.

    Args:
        metastore: the source's.
        database: source database.
        after: event id before the first event of the dump.
        most: bytes that a message may unpack to.
        filter_of: tells the partition filter of a table: what becomes of partitions outside is of no concern.
    """

    def __init__(
        self, metastore: Metastore, database: str, after: int, most: int = MOST_BYTES, filter_of: FilterOf | None = None
    ) -> None:
        self._metastore, self.database, self._until, self._most = metastore, database, after, most
        self._events: deque[LogEvent] = deque()
        self._emptied: deque[r.Insert] = deque()
        self._decoded = after
        self._filter_of = filter_of
        self._guard = RLock()

    def decode_batch(self, batch: Iterable[NotificationEvent]) -> list[LogEvent]:
        """The next events of the dump; those that an earlier lookup has read are not decoded again.

        Later lookups are of these events or later ones.
        """
        known: dict[int, LogEvent] = {}
        found: list[LogEvent] = []
        with self._guard:
            for event in batch:
                while self._events and self._events[0].evid <= event.eventId:
                    ahead = self._events.popleft()
                    known[ahead.evid] = ahead
                while self._emptied and self._emptied[0].evid <= event.eventId:
                    self._emptied.popleft()
                row = row_of(self._metastore, event, self._most, self.database)
                found.append(known.get(event.eventId) or LogEvent(row, self._filter_of))
            self._events.extendleft(reversed([event for event in found if self._may_move(event)]))
            self._decoded = found[-1].evid if found else self._decoded
            self._until = max(self._until, self._decoded)
        return found

    def find(self, lookups: Iterable[Lookup]) -> dict[Lookup, Location]:
        """The present location of each object."""
        lookups = list(lookups)
        with self._guard:
            end = self._metastore.current_event_id() if lookups else 0
            if end - self._until <= _NEAR:
                self._read_on(end)
            while True:
                found = {one: followed(self._after(one.evid), one.location, one.table, one.partition) for one in lookups}
                if end <= self._until or self._all_there(found):
                    return found
                self._read_on(min(end, self._until + _NEAR))

    def read_ahead(self) -> None:
        """Reads the log on, but no further than to events near those of the dump: each window would read all the rest of it."""
        with self._guard:
            self._read_on(min(self._metastore.current_event_id(), self._decoded + _NEAR))

    def later(self, evid: int) -> list[r.Event]:
        """What is known of the log after an event, in order: renames, drops, and what empties or overwrites objects."""
        with self._guard:
            emptied = (event for event in self._emptied if event.evid > evid)
            return sorted((*self._after(evid), *emptied), key=lambda event: event.evid)

    def find_table(self, table: str, evid: int, seen: Table | None = None) -> Location:
        """The present location of a table that had this name after an event.

        Args:
            table: its name.
            evid: the event.
            seen: what the event tells of it; without it, the log is read to its end.
        """
        location, created = (seen.sd.location if seen.sd else "", seen.createTime or 0) if seen else ("", 0)
        lookup = Lookup(location or "", table, "", evid, created=created)
        return self.find([lookup])[lookup]

    def name_after(self, evid: int, table: str, named: int) -> str:
        """The name that a table had after an event, "" if it was gone by then; the log is read back to where it was named.

        Args:
            evid: the event.
            table: the name that it had after an earlier event.
            named: this earlier event.
        """
        left = self._metastore.events_left(named, evid)
        events = (LogEvent(row_of(self._metastore, one, self._most, self.database), self._filter_of) for one in left)
        moves = (one.event for one in events if self._may_move(one) and one.event is not None)
        return followed(moves, None, table, "").table

    def settled(self, table: str, evid: int) -> bool:
        """Whether no table has taken or left a name after an event; of the dump's last events, or later ones."""
        return table not in self.moved_after(evid)

    def moved_after(self, evid: int) -> set[str]:
        """Names that a table has taken or left after an event; of the dump's last events, or later ones."""
        with self._guard:
            self._read_on(self._metastore.current_event_id())
            return {name for event in self._events if event.evid > evid for name in _moved(event)}

    def _after(self, evid: int) -> Iterator[r.Event]:
        return (event.event for event in self._events if event.evid > evid and event.event is not None)

    def _all_there(self, found: Mapping[Lookup, Location]) -> bool:
        """Whether the metastore has each object that is not gone, the same one, at that location."""
        alive = {one: now for one, now in found.items() if now.location is not None}
        names: dict[str, set[str]] = {}
        for now in alive.values():
            names.setdefault(now.table, set()).add(now.partition)
        there: dict[tuple[str, str], tuple[str | None, int | None]] = {}
        for table in self._metastore.tables(self.database, names):
            name, partitions = table.tableName, sorted(filter(None, names[table.tableName]))
            there[name, ""] = table.sd.location, table.createTime
            with suppress(MetastoreError):  # renamed or dropped just now, or not shown to the account
                parts = by_name(table, self._metastore.partitions(self.database, name, partitions)) if partitions else {}
                there |= {(name, partition): (part.sd.location, part.createTime) for partition, part in parts.items()}
        return all(
            one.created and there.get((now.table, now.partition)) == (now.location, one.created) for one, now in alive.items()
        )

    def _read_on(self, end: int) -> None:
        if end > self._until:
            rows = notifications(self._metastore, self._until, end, self._most, self.database)
            for event in (LogEvent(row, self._filter_of) for row in rows):
                if self._may_move(event) and _moves(event.event):
                    self._events.append(event)
                elif event.row.database == self.database and event.row.type in _EMPTYING and _MARK.search(event.row.message):
                    self._emptied.extend(_emptied(event.event))
            self._until = end

    def _may_move(self, event: LogEvent) -> bool:
        """Whether an event is of a type that moves objects or ends them; its message is not decoded."""
        return event.row.database == self.database and event.row.type in _TYPES


def _emptied(event: r.Event | None) -> Iterator[r.Insert]:
    """What an event empties or overwrites, each as an INSERT OVERWRITE without its table and files, of which a log has many."""
    match event:
        case r.Insert(replace=True):
            names = [event.partition_name]
        case r.AlterTable(truncate=True):
            names = [""]
        case r.AlterPartition(truncate=True):
            names = [change.after_name for change in event.changes]
        case _:
            return
    for name in names:
        yield r.Insert(
            event.evid, event.time, "INSERT", event.database, event.table, _NOTHING, None, name, replace=True, files=()
        )


def _moves(event: r.Event | None) -> bool:
    """Whether an event moves objects, ends them, or may do so since it cannot be read; a backlog has many others."""
    match event:
        case None | r.DropTable() | r.DropPartition() | r.AlterTable(rename=True):
            return True
        case r.AlterPartition():
            return any(change.rename for change in event.changes)
        case _:
            return False


def _moved(event: LogEvent) -> tuple[str, ...]:
    """Names of tables that an event may have given or taken away."""
    match event.event:
        case None:
            return (event.row.table,)
        case r.DropTable() | r.AlterTable(rename=True):
            return event.event.names
        case _:
            return ()


_TYPES = frozenset({"ALTER_TABLE", "DROP_TABLE", "ALTER_PARTITION", "DROP_PARTITION"})
_EMPTYING = frozenset({"ALTER_TABLE", "ALTER_PARTITION", "ALTER_PARTITIONS", "INSERT"})
_MARK = re.compile(r'"(?:replace|isTruncateOp)"\s*:\s*"?true', re.IGNORECASE)  # few have it, and are decoded twice
_NOTHING = Table()


def followed(events: Iterable[r.Event], location: str | None, table: str, partition: str) -> Location:
    """Where an object lies after events, in order (pure).

    Args:
        events: of its database.
        location: its directory before the first of them.
        table: its table's name then.
        partition: its name then, "" for a table.
    """
    since = 0
    for event in events:
        if event.names[0] != table:  # the log has a rename under the new name
            continue
        match event:
            case r.DropTable() | r.AlterTable(leaves=True):
                return Location(None, event.evid)
            case r.DropPartition() if partition in event.partitions:
                return Location(None, event.evid)
            case r.AlterTable(rename=True):
                since, table = event.evid, event.names[1]
                location = paths.moved(location, event.before.sd.location, event.after.sd.location)
            case r.AlterPartition():
                for change in event.changes:
                    if change.rename and change.before_name == partition and change.before is not None:
                        location = paths.moved(location, change.before.sd.location, change.after.sd.location)
                        since, partition = event.evid, change.after_name
                        break
            case _:
                pass
    return Location(location, since, table, partition)


def table_of(event: r.Event | None) -> Table | None:
    """What an event tells of its table afterwards; None of one that tells nothing, or leaves none."""
    found = getattr(event, "after", None) or getattr(event, "table_object", None)
    return found if isinstance(found, Table) else None
