"""What an event of a lane is, as far as it decides whether it applies (pure)."""

from __future__ import annotations

from collections.abc import Mapping

from hive_replication.events import event_records as r
from hive_replication.events import transactions as tx
from hive_replication.events.redumps import why_redump
from hive_replication.load.plan.handlers.by_event_type import handlers
from hive_replication.load.plan.incarnations import Incarnation
from hive_replication.load.plan.lane_context import Replica
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.load.plan.superseded import Lookahead, why_superseded
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import Table
from hive_replication.policy.scope import PartitionFilters

_VIEW = "the replica is a view, which has no data"


def of_no_type(event: WindowEvent) -> str:
    """Why an event is of no type that is applied, or ""."""
    if event.row.type in handlers():
        return ""
    known = isinstance(event.event, r.OtherEvent) and event.event.known
    return "recorded, not applied by this version" if known else "unknown event type: recorded, not applied"


def renames(event: WindowEvent) -> bool:
    """Whether an event gives its table another name."""
    return isinstance(event.event, r.AlterTable) and event.event.rename


def of_no_view(event: r.Event | None, replica: Replica) -> str:
    """Why an event is none of its table's replica, where that is a view: of a materialized one come write ids, for example."""
    of_view = isinstance(event, r.CreateTable | r.AlterTable | r.DropTable)
    return _VIEW if replica.present and replica.view and not of_view else ""


def table_of(event: r.Event | None) -> Table | None:
    """The table that an event describes, or the table of its partitions."""
    table = getattr(event, "after", None) or getattr(event, "table_object", None)
    return table if isinstance(table, Table) else None


def needs_transactions(event: r.Event) -> bool:
    """Whether an event is of a transaction, or of a transactional table."""
    table = table_of(event)
    return isinstance(event, tx.AllocateWriteIds | tx.TransactionEvent) or (table is not None and is_transactional(table))


def why_passed_over(
    event: WindowEvent, parts: Mapping[tuple[int, str], Incarnation], lookahead: Lookahead, filters: PartitionFilters
) -> str:
    """Why an event need not apply whose objects may not be read where it leaves them, or "".

    Args:
        event: of a table.
        parts: incarnations of the lane's partitions, by event and name.
        lookahead: what becomes of objects later.
        filters: where a table has one, others may lie in the directories of a partition.
    """
    change = event.event
    cascades = isinstance(change, r.AlterTable) and any(group.partition for group in event.groups)
    others = event.shared or filters.of(event.row.table) is not None
    outside = bool(event.outside) and not (others or cascades or change is None or why_redump(change))
    if not (outside and isinstance(change, r.AddPartition)):
        return why_superseded(change, lookahead, outside=outside)
    drops = [parts[event.evid, added.name].dropped or 0 for added in change.partitions]
    return f"superseded: they may not be read, and event {max(drops)} drops them" if drops and all(drops) else ""
