"""Which databases the end of a transaction is an event of: in the log it is one of none.

What a transaction wrote comes with its commit, and often nothing else in the log tells of it. Hive 4.1 and later name the
databases in the message, but none whose tables were dropped before. Hive 4.0 does not: its metastore is asked, which
knows of no commit without rows. Of transactions that stand for those of another source the names are wrong, but the load that
ends them leaves an event of the database after them.
"""

from __future__ import annotations

from collections.abc import Set

from hive_replication.dump.source import Source
from hive_replication.events.event_records import Notification
from hive_replication.events.events_of_policy import LogEvent
from hive_replication.events.transactions import ENDS, AbortTransaction, CommitTransaction, TransactionEvent


def ended_in(source: Source, row: Notification, databases: Set[str]) -> Set[str]:
    """The databases that a transaction wrote to, if the event is its end; none where transactional tables are left out.

    The metastore is asked where the message does not settle it, once for all databases.

    Args:
        source: the source side.
        row: of the log.
        databases: lower-case names of those that are asked for.
    """
    if row.type not in ENDS or not databases or not source.acid:
        return frozenset()
    event = LogEvent(row).event
    if not isinstance(event, TransactionEvent):
        return databases  # it cannot be read, and may be of any
    named = (event.databases or frozenset()) & databases
    if isinstance(event, AbortTransaction) and event.databases is not None and named != databases:
        begun = source.unnamed_ends.begun(event)
        return named | {name for name in databases if begun.may_be_of(name)}
    if not isinstance(event, CommitTransaction):
        return named
    policy, told = source.policy, event.databases is not None
    if told and (not named or (policy.tables == ("*",) and not policy.exclude)):
        return named
    tables: dict[str, set[str]] = {}
    for write in source.metastore.write_events(event.transaction):
        tables.setdefault(write.database, set()).add(write.table)
    without_rows = named - tables.keys()
    return without_rows | {
        name for name, some in tables.items() if name in (named if told else databases) and any(map(policy.includes, some))
    }
