"""Where an object of an event lies now: it may have been renamed or dropped since, and its path may be another object's."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hive_replication.dump.fold import moved
from hive_replication.events import records as r
from hive_replication.events.decode import UnreadableMessage, decode
from hive_replication.events.log import notifications
from hive_replication.metastore.client import Metastore


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

    def location(self, location: str | None, table: str, partition: str, evid: int) -> str | None:
        """Directory of an object as it is called now; None where the object is gone.

        Args:
            location: its directory at the event.
            table: its table's name after the event.
            partition: its name after the event, "" for a table.
            evid: the event.
        """
        self._read_on()
        return followed((event for event in self._events if event.evid > evid), location, table, partition)

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


def followed(events: Iterable[r.Event], location: str | None, table: str, partition: str) -> str | None:
    """Directory of an object after events, in order; None where one of them drops it (pure).

    Args:
        events: of its database.
        location: its directory before the first of them.
        table: its table's name then.
        partition: its name then, "" for a table.
    """
    for event in events:
        if event.table != table:
            continue
        match event:
            case r.DropTable():
                return None
            case r.DropPartition() if partition in event.partitions:
                return None
            case r.AlterTable(rename=True):
                location, table = moved(location, event.before.sd.location, event.after.sd.location), event.names[1]
            case r.AlterPartition():
                for change in event.changes:
                    if change.rename and change.before_name == partition and change.before is not None:
                        location = moved(location, change.before.sd.location, change.after.sd.location)
                        partition = change.after_name
            case _:
                pass
    return location
