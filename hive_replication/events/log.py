"""Reading the notification log of a source for one policy."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hive_replication.events import records as r
from hive_replication.events.decode import UnreadableMessage, decode, notification
from hive_replication.metastore.client import Metastore


def notifications(metastore: Metastore, after: int, until: int) -> Iterator[r.Notification]:
    """Streams the log's rows of ``(after, until]``, unpacked.

    Raises:
        MissingEvents: the log has a hole in the range, or no longer reaches back to ``after``.
    """
    return (notification(event) for event in metastore.events(after, until))


def of_policy(row: r.Notification, database: str, includes: Callable[[str], bool]) -> bool:
    """Whether an event belongs to a policy.

    A rename belongs to it if either name does, and a foreign key is logged under its parent's name: such events are decoded
    before they are turned away. One that cannot be read may be of the policy: it belongs to it, and the load reports it.
    """
    if row.database != database:
        return False
    if not row.table or includes(row.table):
        return True
    if row.type not in ("ALTER_TABLE", "ADD_FOREIGNKEY"):
        return False
    try:
        return any(map(includes, decode(row).names))
    except UnreadableMessage:
        return True
