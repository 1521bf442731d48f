"""Compares source and target as they are now, without changing either side.

Belongs here: reading both sides, and comparing what was read (pure).

Keep out of here: correcting a difference (a repair is a load) and showing it (``cli``, ``repl_assets``).
"""

from hive_replication.verify.compare import NOT_COMPARED, UNCOMPARED, TableComparison
from hive_replication.verify.database import compare_database
from hive_replication.verify.schema import schema_differences
from hive_replication.verify.strays import Stray, strays

__all__ = ["NOT_COMPARED", "UNCOMPARED", "Stray", "TableComparison", "compare_database", "schema_differences", "strays"]
