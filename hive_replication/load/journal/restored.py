"""Whether a target's metastore was restored from an older state: its storage was not, and the journal there remembers."""

from __future__ import annotations

from dataclasses import replace

from hive_replication.errors import Refused
from hive_replication.load.journal.journal import Entry, Journal, finished_loads
from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.state import ReplicaState
from hive_replication.storage import Storage


def forgotten(storage: Storage, location: str, applied: int | None) -> int | None:
    """Event id up to which a target was loaded before its metastore was restored from an older state; None where it was not.

    Its storage was not restored with it, and remembers. The load that was done last tells, not the farthest one: a recovery
    from a restored source may have gone back.

    Args:
        storage: the target's.
        location: the database's directory.
        applied: where the database says that it stands; None for nowhere.
    """
    if applied is None:
        return None
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
    lost = forgotten(storage, location, state.applied)
    if lost is not None:
        raise Refused(
            f"the target {database!r} stands at event {state.applied}, and its storage was loaded up to {lost}: "
            f"its metastore was restored from an older state: hive-repl recover {state.source.rpartition('/')[2]}"
        )


def without_lost(journal: Journal, state: ReplicaState, *, dry: bool = False) -> list[Entry]:
    """All loads, of which those are done no longer that came before one which made a restored target good.

    They are not those that its metastore had. They tell that it was restored, so they are marked only once it no longer is, and
    a load that is killed in between leaves that to whoever asks next.

    Args:
        journal: of the target database, which stands where its last load says.
        state: of the database.
        dry: mark nothing.
    """
    entries = journal.entries() if dry else journal.mark_finished(journal.entries(), state)
    good = journal.newest_that_makes_good(entries)
    lost = {entry for entry in entries if entry.status == "done" and entry.token < good}
    return [entry if entry not in lost else _former(journal, entry, dry=dry) for entry in entries]


def _former(journal: Journal, entry: Entry, *, dry: bool) -> Entry:
    return replace(entry, status="former") if dry else journal.mark(entry, "former")
