"""Repairs exactly the partitions that have drifted."""

from __future__ import annotations

from hive_replication.connect import Connection
from hive_replication.drift.findings import TableDrift
from hive_replication.progress import Progress
from hive_replication.repair import repair


def repair_drift(
    connection: Connection,
    database: str,
    drift: TableDrift,
    *,
    progress: Progress | None,
) -> list[str]:
    """Repairs a table's drifted partitions, or the table if it has none.

    Args:
        connection: both sides.
        database: source database.
        drift: the result of its scan.
        progress: shows the progress; None for nothing.

    Returns:
        Reasons for what could not be repaired; empty if everything was.
    """
    if not drift.drifted:
        return []
    partitions = tuple(one.partition for one in drift.drifted if one.partition) or None
    done = repair(connection, database, drift.table, partitions, progress=progress)
    return [f"{drift.table} is not repaired: {held.reason}" for held in done.load.held]
