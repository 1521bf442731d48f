"""Repairs exactly the partitions that have drifted."""

from __future__ import annotations

from hive_replication.connect import Connection
from hive_replication.drift.findings import TableDrift
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.load.replica.target import Target
from hive_replication.progress import Progress
from hive_replication.repair import repair


def stands(target: Target, database: str) -> ReplicaState:
    """Where the replica of a source database stands before a scan: repairs of what it finds end no undo since."""
    return replica_state(target.metastore.database(target.policy.target_of(database)))


def repair_drift(
    connection: Connection,
    database: str,
    drift: TableDrift,
    *,
    stood: ReplicaState | None = None,
    progress: Progress | None,
) -> list[str]:
    """Repairs a table's drifted partitions, or the table if it has none.

    Args:
        connection: both sides.
        database: source database.
        drift: the result of its scan.
        stood: where the target stood before the scan, if it is known.
        progress: shows the progress; None for nothing.

    Returns:
        Reasons for what could not be repaired; empty if everything was.
    """
    if not drift.drifted:
        return []
    partitions = tuple(one.partition for one in drift.drifted if one.partition) or None
    done = repair(connection, database, drift.table, partitions, stood=stood, progress=progress)
    return [f"{drift.table} is not repaired: {held.reason}" for held in done.load.held]
