"""Events of which neither their message nor a transaction tells what the table holds afterwards (pure).

A plain table that is made transactional keeps its files, for example. A window with such an event has a dump of the table beside
it, and the table is rebuilt from that.
"""

from __future__ import annotations

from hive_replication.events import event_records as r
from hive_replication.events.transactions import Compaction
from hive_replication.events.untold import is_untold
from hive_replication.metastore.table_kinds import is_insert_only, is_transactional
from hive_replication.metastore.types import Table

_STATE_ID = "repl.last.id"

#: Types of the events that may need a dump of their table.
TYPES = frozenset({"ALTER_TABLE", "ALTER_PARTITION", "ALTER_PARTITIONS", "INSERT", "COMMIT_COMPACTION_EVENT"})


def is_unclear(event: r.Event, *, acid: bool) -> bool:
    """Whether nothing in a window tells what a table holds after an event, so that it comes whole from a dump.

    Args:
        event: of the table.
        acid: whether the window has transactional tables and transactions.
    """
    return is_untold(event) or (acid and bool(why_redump(event)))


def why_redump(event: r.Event) -> str:
    """What was done to a transactional table without a transaction, or to any table unsaid by a metastore of Hive 2; else ""."""
    if is_untold(event):
        return "may have got other data, which a metastore of Hive 2 does not tell,"
    match event:
        case r.AlterTable() if is_transactional(event.after) and not event.rename:
            if converted := _why_converted(event.before, event.after):
                return converted
            if _was_rebuilt(event):
                return "was rebuilt at the source, which is a replica itself,"
            if event.relocated:
                return "got another location"
            return "was truncated without a transaction" if event.truncate and not event.write_id else ""
        case r.AlterPartition() if is_transactional(event.table_object):
            if any(one.relocated for one in event.changes):
                return "got other locations of partitions"
            return "was truncated without a transaction" if event.truncate and not event.write_id else ""
        case r.Insert() if is_transactional(event.table_object):
            return "was written to without a transaction"
        case Compaction(rebalances=True):
            return "was rebalanced, which gave its rows other ids,"
        case _:
            return ""


def _why_converted(before: Table, after: Table) -> str:
    """What became of the kind of a table that is transactional now, or "" where it stays."""
    if not is_transactional(before):
        return "was made transactional"
    if is_insert_only(before) and not is_insert_only(after):  # directories differ, because each side compacts for itself
        return "was made a full ACID table, whose rows get their ids from their directories,"
    return ""


def _was_rebuilt(event: r.AlterTable) -> bool:
    """Whether a load ends here that made the table with its data at the source: its state id was 0 until then, as in Hive."""
    return _state_id(event.before) == "0" and _state_id(event.after) not in ("0", "")


def _state_id(table: Table) -> str:
    return (table.parameters or {}).get(_STATE_ID, "")
