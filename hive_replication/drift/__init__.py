"""Drift: writes to the source that leave no event (Spark's own writes, ``hdfs put``, files deleted by hand).

Belongs here: finding partitions and tables whose files are not those that were replicated, though no event waits for them.
Does not belong here: replicating them, which is a repair.
"""

from hive_replication.drift.scan import Drifted, DriftScan, TableDrift

__all__ = ["DriftScan", "Drifted", "TableDrift"]
