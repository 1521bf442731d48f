"""Whether a target's metastore was restored from an older state: its storage was not, and the journal there remembers."""

from __future__ import annotations

from hive_replication.errors import Refused
from hive_replication.load.journal.journal import finished_loads
from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.state import ReplicaState
from hive_replication.storage import Storage


def forgotten(storage: Storage, location: str, applied: int) -> int | None:
    """Event id up to which a target was loaded before its metastore was restored from an older state; None where it was not.

    Its storage was not restored with it, and remembers. The load that was done last tells, not the farthest one: a recovery
    from a restored source may have gone back.

    Args:
        storage: the target's.
        location: the database's directory.
        applied: where the database says that it stands.
    """
    done = finished_loads(storage, location)
    return done[-1].to_evid if done and not covers(applied, done[-1].to_evid) else None


def require_unrestored(storage: Storage, location: str, database: str, state: ReplicaState) -> None:
    """Makes sure that the target's metastore has the loads that its journal says are done.

    Args:
        storage: the target's.
        location: the database's directory.
        database: target database.
        state: its state.

    Raises:
        Refused: the target was restored from an older state.
    """
    lost = None if state.applied is None else forgotten(storage, location, state.applied)
    if lost is not None:
        raise Refused(
            f"the target {database!r} stands at event {state.applied}, and its storage was loaded up to {lost}: "
            f"its metastore was restored from an older state: hive-repl recover {state.source.rpartition('/')[2]}"
        )
