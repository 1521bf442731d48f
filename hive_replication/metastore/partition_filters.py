"""Partition filters of a policy, against tables and names of partitions (pure)."""

from __future__ import annotations

from collections.abc import Callable

from hive_replication.metastore.names import partition_spec
from hive_replication.metastore.table_kinds import is_transactional, is_view
from hive_replication.metastore.types import Table
from hive_replication.policy.partition_filter import PartitionFilter

#: Tells the filter of a table, by database and name.
FilterOf = Callable[[str, str], PartitionFilter | None]


def inside(found: PartitionFilter, name: str) -> bool:
    """Whether a partition belongs to a filter; what is no name of one is left to those who read it."""
    try:
        return found.includes(partition_spec(name))
    except ValueError:
        return True


def why_unfit(found: PartitionFilter | None, table: Table) -> str:
    """Why a table cannot be replicated with its partition filter, or ""."""
    if found is None or is_view(table):
        return ""
    if is_transactional(table):
        reason = "the table is transactional, and a transaction is replicated with all that it wrote"
    elif not table.partitionKeys:
        reason = "the table has no partitions"
    else:
        reason = found.why_unfit({key.name.lower(): key.type.lower() for key in table.partitionKeys})
    return f"the partition filter {found.text} does not fit: {reason}; change partition_filters in the policy" if reason else ""
