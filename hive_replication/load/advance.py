"""Raising the applied id of a replica that has no events, without a dump and a load (design: Dagster, idle databases)."""

from __future__ import annotations

from hive_replication.load.state import replica_state, stated
from hive_replication.load.target import Target
from hive_replication.metastore.lock import MetastoreLock


def advance(target: Target, database: str, applied: int, evid: int, time: int, message_hash: str) -> bool:
    """Says that a replica stands at a later event. The caller has read the log and found nothing of the policy in between.

    Args:
        target: the target side.
        database: target database.
        applied: where the caller found it.
        evid: where it is to stand.
        time: commit time of that event at the source, seconds since the epoch; 0 where unknown.
        message_hash: hash of its message, "" where unknown.

    Returns:
        Whether it was raised; not if it stands elsewhere by now.

    Raises:
        Refused: a load of the database runs.
    """
    with MetastoreLock(target.metastore, database) as lock:
        found = target.metastore.database(database)
        state = replica_state(found)
        if found is None or state.applied != applied or evid <= applied:
            return False
        lock.check()
        target.metastore.alter_database(database, stated(found, state.raised(evid, time, message_hash)))
        return True
