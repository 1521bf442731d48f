"""Comparing source and target as they are now.

Belongs here: reading both sides, comparing what was read (pure). Changes nothing on either side.
Does not belong here: what to do about a difference (a repair is a load), showing it.
"""

from hive_replication.verify.compare import TableComparison
from hive_replication.verify.database import compare_database
from hive_replication.verify.schema import schema_differences
from hive_replication.verify.strays import Stray, strays

__all__ = ["Stray", "TableComparison", "compare_database", "schema_differences", "strays"]
