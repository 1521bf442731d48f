"""Comparing source and target as they are now, and how far the target is behind.

Belongs here: reading both sides, comparing what was read (pure). Changes nothing on either side.
Does not belong here: what to do about a difference (a repair is a load), showing it.
"""

from hive_replication.verify.compare import TableComparison
from hive_replication.verify.database import compare_database

__all__ = ["TableComparison", "compare_database"]
