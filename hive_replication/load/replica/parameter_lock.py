"""The lock of a target database's parameters, held only while they are read, changed and written.

The metastore replaces all parameters of a database at once and compares nothing: of two who read, change and write at the same
moment, the later one takes back what the earlier one wrote. Loads and undo exclude each other by the lock of the database. A
pause has to work while one of them runs, which may be for hours, so this second lock lets it in between two of their changes.
"""

from __future__ import annotations

from hive_replication.metastore.client import Metastore
from hive_replication.metastore.lock import MetastoreLock


def parameter_lock(metastore: Metastore, database: str) -> MetastoreLock:
    """The lock; taken after that of the database where both are, and waited for.

    Args:
        metastore: the target's.
        database: target database.
    """
    return MetastoreLock(metastore, f"{database}.parameters", brief=True)
