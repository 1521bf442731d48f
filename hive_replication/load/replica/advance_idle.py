"""Advancing the applied id of an idle replica without a dump and a load (design: Dagster, idle databases)."""

from __future__ import annotations

from contextlib import suppress

from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.parameter_lock import parameter_lock
from hive_replication.load.replica.state import database_with_state, replica_state
from hive_replication.load.replica.target import Target
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.lock import MetastoreLock
from hive_replication.metastore.table_kinds import is_transactional


def has_open_transactions(target: Target, database: str) -> bool:
    """Whether a transaction that stands for one of the source, and writes to a replica, is open; none before Hive 4.

    Args:
        target: the target side.
        database: target database.
    """
    metastore = target.metastore
    with suppress(MetastoreError):  # it keeps no transactions, and so no transactional tables
        if found := metastore.open_transactions():
            tables = metastore.tables(database, metastore.table_names(database))
            names = [one.tableName for one in tables if is_transactional(one)]
            return any(any(metastore.write_ids_of(one, database, names)) for one in found)
    return False


def advance(target: Target, database: str, applied: int, evid: int, time: int, message_hash: str) -> bool:
    """Records that a replica stands at a later event. The caller has found no event of the policy in between in the log.

    Args:
        target: the target side.
        database: target database.
        applied: applied id when the caller read it.
        evid: the new applied id.
        time: commit time of that event at the source, seconds since the epoch; 0 where unknown.
        message_hash: hash of its message, "" where unknown.

    Returns:
        Whether it was advanced; not if its applied id has changed in the meantime.

    Raises:
        Refused: a load of the database is running.
    """
    with MetastoreLock(target.metastore, database) as lock, parameter_lock(target.metastore, database):
        found = target.metastore.database(database)
        state = replica_state(found)
        if found is None or state.applied != applied or covers(applied, evid):
            return False
        lock.check()
        target.metastore.alter_database(database, database_with_state(found, state.advanced(evid, time, message_hash)), found)
        return True
