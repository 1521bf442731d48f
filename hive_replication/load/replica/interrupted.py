"""Whether a load of objects was killed, told from one that runs: the mark of both is the same, but whoever runs has the lock."""

from __future__ import annotations

from hive_replication.load.replica.state import replica_state
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.lock import is_locked


def is_interrupted(metastore: Metastore, database: str) -> bool:
    """Whether the next load has to do first what a load of objects left undone.

    Args:
        metastore: the target's.
        database: target database, whose state names a dump that is loaded (``checkpoint``).

    Raises:
        MetastoreError: it does not show its locks, or the database.
        Unreachable: it does not answer.
    """
    # The state is read once more: who had the lock may have been done before it was asked for.
    return not is_locked(metastore, database) and bool(replica_state(metastore.database(database)).checkpoint)
