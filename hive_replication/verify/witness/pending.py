"""Which tables have events that a replica does not claim to have applied: differences of these may only wait."""

from __future__ import annotations

from hive_replication.dump.source import is_replica
from hive_replication.errors import MissingEvents
from hive_replication.events.events_of_policy import LogEvent, ends_transaction, notifications
from hive_replication.metastore.client import Metastore
from hive_replication.verify.witness.comparison import Pending

_MOST_EVENTS = 10_000  # if more wait, any table may have some


def pending_tables(source: Metastore, database: str, applied: int, current: int, most: int) -> Pending:
    """Reads the source's log in ``(applied, current]``. A claim beyond the log excuses nothing.

    Args:
        source: the source's metastore.
        database: source name.
        applied: what the replica claims to have applied.
        current: the source's newest event.
        most: bytes that a message may have once it is unpacked (``max_message_bytes``).
    """
    if applied >= current:
        return Pending()
    if current - applied > _MOST_EVENTS:
        return Pending(everything=True)
    replica = is_replica(source.database(database), applied)
    tables: set[str] = set()
    everything = transactions = False
    try:
        for row in notifications(source, applied, current, most, database):
            event = LogEvent(row)
            if ends_transaction(event, database, replica=replica):
                transactions = True
            elif row.database == database:
                everything |= "DATABASE" in row.type or event.event is None
                tables |= {row.table, *(event.event.names if event.event else ())}
    except MissingEvents:
        everything = True
    return Pending(frozenset(tables), everything, transactions)
