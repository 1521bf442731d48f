"""What the source's log says after a dump: whether an object that a load cannot have any more goes away later anyway.

Files can be gone from the source and from cmroot although nothing is wrong: EXCHANGE PARTITION moves files without keeping
them. If a later event, up to the source's present one, drops, replaces or moves the object away, the event is superseded.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from hive_replication.errors import ReplicationError
from hive_replication.events import records as r
from hive_replication.events.decode import decode
from hive_replication.events.log import notifications
from hive_replication.metastore.client import Metastore


class Lookahead(Protocol):
    """Answers what becomes of an object after an event."""

    def superseded(self, table: str, partition: str, evid: int) -> int | None:
        """Event id after ``evid`` that drops, replaces or moves the object away; None where there is none, or nobody knows.

        Args:
            table: source table name at the event.
            partition: partition name, or "" for the table.
            evid: the event.
        """
        ...


class NoLookahead:
    """Where the source's metastore is not asked."""

    def superseded(self, table: str, partition: str, evid: int) -> int | None:  # noqa: ARG002
        """See :class:`Lookahead`."""
        return None


class LogLookahead:
    """Reads the source's log, once, when first asked.

    Args:
        metastore: the source's.
        database: source database.
        after: events up to this one are never asked for.
    """

    def __init__(self, metastore: Metastore, database: str, after: int) -> None:
        self._metastore, self._database, self._after = metastore, database, after
        self._events: list[r.Event] | None = None

    def superseded(self, table: str, partition: str, evid: int) -> int | None:
        """See :class:`Lookahead`."""
        if self._events is None:
            self._events = self._read()
        return superseding((event for event in self._events if event.evid > evid), table, partition)

    def _read(self) -> list[r.Event]:
        try:
            rows = list(notifications(self._metastore, self._after, self._metastore.current_event_id()))
            return [decode(row) for row in rows if row.database == self._database]
        except ReplicationError:
            return []  # unreachable, purged or unreadable: nobody knows, and the lane is held


def superseding(events: Iterable[r.Event], table: str, partition: str) -> int | None:
    """The first event that drops, replaces or moves an object away (pure).

    Args:
        events: after the one in question, in order.
        table: source table name at the first of them.
        partition: partition name, or "" for the table.
    """
    for event in events:
        if table not in event.names and not isinstance(event, r.DropDatabase):
            continue
        if _ends(event, partition):
            return event.evid
        if isinstance(event, r.AlterTable) and event.rename:
            table = event.names[1]
    return None


def _ends(event: r.Event, partition: str) -> bool:
    match event:
        case r.DropTable() | r.DropDatabase() | r.DropFunction():
            return True
        case r.AlterTable():
            return not partition and (event.truncate or event.relocated)
        case r.DropPartition():
            return partition in event.partitions
        case r.AlterPartition():
            return any(partition == change.before_name and (event.truncate or change.relocated) for change in event.changes)
        case r.Insert():
            return event.replace and event.partition_name == partition
        case _:
            return False
