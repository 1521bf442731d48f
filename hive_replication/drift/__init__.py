"""Drift: writes to the source without an event, such as Spark's own writes, ``hdfs dfs -put``, or files deleted by hand.

Belongs here: finding tables and partitions whose files differ from the replicated ones although no event waits for them, and the
snapshots at the source that spare listings.

Keep out of here: replicating them, which is a repair (``repair``).
"""

from hive_replication.drift.findings import Drifted, NoReplica, TableDrift, unread
from hive_replication.drift.scan import DriftScan

__all__ = ["DriftScan", "Drifted", "NoReplica", "TableDrift", "unread"]
