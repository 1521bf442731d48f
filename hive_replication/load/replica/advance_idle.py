"""Advancing the applied id of an idle replica without a dump and a load (design: Dagster, idle databases)."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress

from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.ownership import refuse_other_policy, why_incompatible
from hive_replication.load.replica.parameter_lock import parameter_lock
from hive_replication.load.replica.state import database_with_state, replica_state
from hive_replication.load.replica.target import Target
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.lock import MetastoreLock
from hive_replication.metastore.table_kinds import is_transactional


def open_replayed(target: Target) -> frozenset[int]:
    """Transactions of the target that stand for those of a source and are open; none of a metastore that has no transactions."""
    with suppress(MetastoreError):
        return target.metastore.open_replayed()
    return frozenset()


def writes_to(target: Target, database: str, transactions: Iterable[int]) -> bool:
    """Whether one of some transactions writes to a transactional table of a database.

    Args:
        target: the target side.
        database: target database.
        transactions: ids on the target.
    """
    metastore = target.metastore
    tables = metastore.tables(database, metastore.table_names(database))
    names = [one.tableName for one in tables if is_transactional(one)]
    return bool(names) and any(any(metastore.write_ids_of(one, database, names)) for one in transactions)


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
        Whether it was advanced; not if its applied id has changed in the meantime, if a load of objects was killed, or if it is
        marked as incompatible.

    Raises:
        Refused: another policy writes the database, or a load of it is running.
    """
    # Retention may hold the lock for longer than a tick of a sensor may take: the next tick asks again.
    with MetastoreLock(target.metastore, database, patience=0) as lock, parameter_lock(target.metastore, database):
        found = target.metastore.database(database)
        state = replica_state(found)
        if found is None or state.applied != applied or covers(applied, evid) or why_incompatible(found):
            return False
        if state.checkpoint:  # a load of objects was killed: a run does it again
            return False
        refuse_other_policy(state, database, target.policy.name)
        lock.check()
        target.metastore.alter_database(database, database_with_state(found, state.advanced(evid, time, message_hash)), found)
        return True
