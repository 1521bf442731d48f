"""Reading the notification log of a source for one policy."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

from hive_replication.events import event_records as r
from hive_replication.events.decoders_by_event_type import UnreadableMessage, decode, notification
from hive_replication.events.described_objects import elsewhere
from hive_replication.events.partition_filters import Outside, within
from hive_replication.events.renames_between_databases import as_seen_by
from hive_replication.events.shared_directories import shared_changes
from hive_replication.events.transactions import ENDS, TransactionEvent
from hive_replication.events.unpack import MOST_BYTES
from hive_replication.logs import about
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.partition_filters import FilterOf
from hive_replication.metastore.types import NotificationEvent
from hive_replication.policy.partition_filter import PartitionFilter

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True)
class LogEvent:
    """A row of the log; its message is decoded at the first use, once.

    Args:
        row: of the log.
        filter_of: tells the partition filter of a table.
    """

    row: r.Notification
    filter_of: FilterOf | None = None

    @property
    def evid(self) -> int:
        """Event id."""
        return self.row.evid

    @cached_property
    def filter(self) -> PartitionFilter | None:
        """The partition filter of its table."""
        return self.filter_of(self.row.database, self.row.table) if self.filter_of else None

    @property
    def outside(self) -> bool:
        """Whether it says nothing but of partitions outside the filter."""
        return self.filter is not None and isinstance(self.event, Outside)

    @cached_property
    def event(self) -> r.Event | None:
        """What the message says, of partitions inside the filter alone; None where it cannot be read."""
        return within(self.decoded, self.filter) if self.decoded and self.filter else self.decoded

    @cached_property
    def decoded(self) -> r.Event | None:
        """What the message says, of all partitions; None where it cannot be read."""
        try:
            return decode(self.row)
        except UnreadableMessage as error:
            _LOG.debug("%s", error, extra=about(self.row.database, self.row.table, self.row.evid))
            return None


def notifications(
    metastore: Metastore, after: int, until: int, most: int = MOST_BYTES, database: str = ""
) -> Iterator[r.Notification]:
    """Streams the log's rows of ``(after, until]``, unpacked.

    Args:
        metastore: the source's.
        after: event id before the first one.
        until: of the last one.
        most: bytes that a message may unpack to.
        database: whose view of renames between databases is asked for.

    Raises:
        MissingEvents: the log has a hole in the range, or no longer reaches back to ``after``.
    """
    return (row_of(metastore, event, most, database) for event in metastore.events(after, until))


def row_of(metastore: Metastore, event: NotificationEvent, most: int, database: str) -> r.Notification:
    """One row of :func:`notifications`: unpacked, and as the metastore shows views and the database sees renames."""
    return as_seen_by(notification(event, most, views=metastore.views_of_materialized), database)


def of_policy(event: LogEvent, database: str, includes: Callable[[str], bool], *, shared: bool = False) -> bool:
    """Whether an event belongs to a policy.

    A rename belongs to it if either name does, and a foreign key is logged under its parent's name: such events are decoded
    before they are turned away. One that cannot be read may be of the policy: it belongs to it, and the load reports it.

    Args:
        event: of the log.
        database: lower-case name.
        includes: whether a table's name belongs to the policy.
        shared: whether one of partitions outside a filter counts where one inside may have their directory: the dump finds out.
    """
    row = event.row
    if row.database != database:
        return False
    if row.table and not includes(row.table):
        if row.type not in ("ALTER_TABLE", "ADD_FOREIGNKEY"):
            return False
        if event.event is not None and not any(map(includes, event.event.names)):
            return False
    if event.outside and not (shared and any(shared_changes(event.decoded))):
        return False
    if row.catalog and row.type != "ADD_FOREIGNKEY":
        return True  # its catalog is the policy's: a row of another one has no database
    return event.event is None or not elsewhere(event.event)


def renamed_into(change: r.Event | None, database: str, includes: Callable[[str], bool]) -> bool:
    """Whether an event gives a table a name of a policy, which it was not of before."""
    if not isinstance(change, r.AlterTable) or not change.rename:
        return False
    old, new = change.names
    was = change.before.dbName.lower() == database and includes(old)
    return not was and change.after.dbName.lower() == database and includes(new)


def refiltered(change: r.AlterTable, filter_of: Callable[[str], PartitionFilter | None]) -> bool:
    """Whether an event gives a table a name with another partition filter: no event tells of what is inside now."""
    old, new = change.names
    return change.rename and filter_of(old) != filter_of(new)


def ends_transaction(event: LogEvent, database: str, *, replica: bool = False) -> bool:
    """Whether an event ends a transaction that may have written to a database; one that cannot be read may be of any.

    Args:
        event: of the log.
        database: lower-case name.
        replica: whether the database is a replica, of whose transactions the log does not name the right databases.
    """
    if event.row.type not in ENDS:
        return False
    return replica or not isinstance(event.event, TransactionEvent) or event.event.concerns(database)
