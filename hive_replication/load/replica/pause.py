"""Pausing a replica: sensors start no runs for it until it is resumed. Recorded on the target database, for every instance."""

from __future__ import annotations

from hive_replication.errors import BadRequest
from hive_replication.load.replica.parameter_lock import parameter_lock
from hive_replication.load.replica.parameters import as_latin
from hive_replication.load.replica.state import PAUSED, replica_state
from hive_replication.load.replica.target import Target, refuse_others_replica
from hive_replication.metastore.types import copy_of


def pause(target: Target, database: str, why: str) -> bool:
    """Pauses a replica. A running load continues to its end, and loads can still be started by hand.

    Args:
        target: the target side.
        database: target database.
        why: what operators are shown, e.g. since when and by whom.

    Returns:
        Whether it changed; False if it was paused already.

    Raises:
        BadRequest: there is no such replica.
        Refused: another policy writes it.
    """
    return _set(target, database, why)


def resume(target: Target, database: str) -> bool:
    """Resumes a replica; returns whether it was paused. Raises as :func:`pause`."""
    return _set(target, database, "")


def _set(target: Target, database: str, why: str) -> bool:
    with parameter_lock(target.metastore, database) as lock:  # a load that runs waits for it, and never changes this parameter
        found = target.metastore.database(database)
        state = replica_state(found)
        if found is None or not state.source:
            raise BadRequest(f"the target has no replica {database!r}; what is not to be replicated is left out of the policy")
        refuse_others_replica(target, database, state)
        if bool(state.paused) == bool(why):
            return False
        altered = copy_of(found)
        altered.parameters = {key: value for key, value in (found.parameters or {}).items() if key != PAUSED}
        altered.parameters |= {PAUSED: as_latin(why)} if why else {}
        lock.check()
        target.metastore.alter_database(database, altered, found)
        return True
