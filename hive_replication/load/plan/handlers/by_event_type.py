"""The table of handlers by event type: the project's own, and those that a site adds or replaces.

A site does so through the entry-point group ``hive_replication.handlers``: the entry point's name is Hive's EVENT_TYPE, its
object a :data:`Handler`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import entry_points

from hive_replication.load.plan.handlers import constraints, functions, partitions, statistics, tables, transactions
from hive_replication.load.plan.lane_context import LanePlanning, Replica
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.metastore.constraints import KINDS

#: Takes the lane, the event and what is known of its table's replica; adds operations, or skips.
Handler = Callable[[LanePlanning, WindowEvent, Replica], None]

GROUP = "hive_replication.handlers"

_BUILT_IN: Mapping[str, Handler] = {
    "CREATE_TABLE": tables.create_table,
    "ALTER_TABLE": tables.alter_table,
    "DROP_TABLE": tables.drop_table,
    "ADD_PARTITION": partitions.add_partition,
    "ALTER_PARTITION": partitions.alter_partition,
    "ALTER_PARTITIONS": partitions.alter_partition,
    "DROP_PARTITION": partitions.drop_partition,
    "INSERT": partitions.insert,
    **dict.fromkeys((kind.event for kind in KINDS.values()), constraints.add_constraints),
    "DROP_CONSTRAINT": constraints.drop_constraint,
    "UPDATE_TBL_COL_STAT_EVENT": statistics.update_statistics,
    "UPDATE_PART_COL_STAT_EVENT": statistics.update_statistics,
    "DELETE_TBL_COL_STAT_EVENT": statistics.delete_statistics,
    "DELETE_PART_COL_STAT_EVENT": statistics.delete_statistics,
    "CREATE_FUNCTION": functions.add_function,
    "DROP_FUNCTION": functions.drop_function,
    "ALLOC_WRITE_ID_EVENT": transactions.allocate_write_ids,
    "COMMIT_TXN": transactions.commit_transaction,
    "ABORT_TXN": transactions.abort_transaction,
    "COMMIT_COMPACTION_EVENT": transactions.compaction,
}


@cache
def handlers() -> Mapping[str, Handler]:
    """All handlers by event type; those of entry points win."""
    return {**_BUILT_IN, **{point.name: point.load() for point in entry_points(group=GROUP)}}
