"""Where an object of an event lies now: it may have been renamed or dropped since, and its path may be another object's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from hive_replication.dump.fold import moved
from hive_replication.events import records as r
from hive_replication.events.decode import UnreadableMessage, decode
from hive_replication.events.log import notifications
from hive_replication.metastore.client import Metastore


@dataclass(frozen=True, slots=True)
class Place:
    """Where an object lies.

    Args:
        location: its directory; None where the object is gone, or has none.
        since: event id of its last rename, 0 without one: it may have come back to a directory that it had left.
        table: its table's name, "" where the object is gone.
    """

    location: str | None
    since: int = 0
    table: str = ""


@dataclass(frozen=True, slots=True)
class Asked:
    """An object of an event.

    Args:
        location: its directory at the event.
        table: its table's name after the event.
        partition: its name after the event, "" for a table.
        evid: the event.
        kept: whether Hive keeps deleted files of it in cmroot.
    """

    location: str | None
    table: str
    partition: str
    evid: int
    kept: bool = True


class Moves:
    """Follows objects through the source's log, which is read on only when somebody asks.

    Args:
        metastore: the source's.
        database: source database.
        after: events up to this one are never asked for.
    """

    def __init__(self, metastore: Metastore, database: str, after: int) -> None:
        self._metastore, self._database, self._until = metastore, database, after
        self._events: list[r.Event] = []

    def places(self, asked: Iterable[Asked]) -> dict[Asked, Place]:
        """Where objects lie at one moment."""
        asked = list(asked)
        if asked:
            self._read_on()
        return {
            one: followed((event for event in self._events if event.evid > one.evid), one.location, one.table, one.partition)
            for one in asked
        }

    def place(self, table: str, evid: int) -> Place:
        """What became of a table after an event that left it with this name."""
        asked = Asked("", table, "", evid)
        return self.places([asked])[asked]

    def _read_on(self) -> None:
        end = self._metastore.current_event_id()
        if end > self._until:
            self._events.extend(self._moving(end))
            self._until = end

    def _moving(self, end: int) -> Iterator[r.Event]:
        for row in notifications(self._metastore, self._until, end):
            if row.database == self._database and row.type in _TYPES:
                try:
                    yield decode(row)
                except UnreadableMessage:
                    continue  # its lane is held at load


_TYPES = frozenset({"ALTER_TABLE", "DROP_TABLE", "ALTER_PARTITION", "DROP_PARTITION"})


def followed(events: Iterable[r.Event], location: str | None, table: str, partition: str) -> Place:
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
            case r.DropTable():
                return Place(None, event.evid)
            case r.DropPartition() if partition in event.partitions:
                return Place(None, event.evid)
            case r.AlterTable(rename=True):
                since, table = event.evid, event.names[1]
                location = moved(location, event.before.sd.location, event.after.sd.location)
            case r.AlterPartition():
                for change in event.changes:
                    if change.rename and change.before_name == partition and change.before is not None:
                        location = moved(location, change.before.sd.location, change.after.sd.location)
                        since, partition = event.evid, change.after_name
                        break
            case _:
                pass
    return Place(location, since, table)
