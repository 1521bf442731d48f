"""Drift: writes to the source without an event, such as Spark's own writes, ``hdfs dfs -put``, or files deleted by hand.

Belongs here: finding tables and partitions whose files differ from the replicated ones although no event waits for them, and the
snapshots at the source that spare listings; which partitions a repair then replicates.

Keep out of here: how they are replicated (``repair``).
"""

from hive_replication.drift.command import DriftReport, drift, repair_drift
from hive_replication.drift.findings import Drifted, NoReplica, TableDrift, unread
from hive_replication.drift.scan import DriftScan

__all__ = ["DriftReport", "DriftScan", "Drifted", "NoReplica", "TableDrift", "drift", "repair_drift", "unread"]
