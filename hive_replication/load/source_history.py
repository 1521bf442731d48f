"""What a load has to do with gaps and other histories: it refuses to build on them, or to go back, and it ends a recovery.

A recovery compares the replica with its source and dumps what differs. Its token in the state of the target's database says that
nothing has changed since: whatever else is loaded takes it away first, and the recovery's dump is refused without it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from functools import partial

from hive_replication.errors import Outdated, Refused
from hive_replication.load.journal.restored import require_unrestored
from hive_replication.load.operations.left_open import end_replayed, retire_not_given_out
from hive_replication.load.operations.transactions import replay_policy
from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.held_lanes import with_held
from hive_replication.load.replica.held_reasons import REBUILT_REASON
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.load.replica.state import ReplicaState, is_ours, object_id
from hive_replication.load.session import Session
from hive_replication.metastore.client import Metastore


def end_other_recovery(session: Session) -> None:
    """Takes a recovery's token away before anything else is loaded."""
    token = session.state.recovery
    if token and token != session.reader.header.recovery:
        session.replica.write_state(replace(session.state, recovery=""))


def without_mark(state: ReplicaState, directory: str) -> ReplicaState:
    """The state after the load of a dump of objects, which was noted in it until then."""
    return replace(state, checkpoint="", obstacle="") if state.checkpoint == directory else state


def require_recovery(session: Session) -> None:
    """Makes sure that a recovery's dump meets the replica that was compared, unchanged.

    Raises:
        Refused: it does not.
    """
    token = session.reader.header.recovery
    if token and session.state.recovery != token:
        raise Refused(
            f"{session.reader.directory} is of a recovery of {session.database!r} compared before other loads changed it: "
            f"hive-repl recover {session.reader.header.scope.database}"
        )


def require_same_history(session: Session) -> None:
    """Makes sure that a window goes on from the very event that was applied last, as far as that is known.

    Raises:
        Refused: the event of that id is another one, or the target was restored from an older state.
    """
    header, state = session.reader.header, session.state
    if session.table is None:
        require_unrestored(session.target.storage, session.replica.location, session.database, state)
    known = {header.from_evid: header.from_hash, header.to_evid: header.to_hash}
    found = known.get(state.applied or 0, "")
    if session.table is None and found and state.applied_hash and found != state.applied_hash:
        raise Refused(
            f"event {state.applied} of the dump is not the one that {session.database!r} has applied: the source's metastore was "
            f"restored and has another history: hive-repl recover {header.scope.database}"
        )


def require_not_passed_by(session: Session, source: Metastore | None, *, repair: bool) -> None:
    """Makes sure that a dump does not take back what windows did to its table, or to its whole database, since.

    A table's own state ids do not tell: operations on partitions and commits do not raise it, and a dropped one has none. A
    database is taken back only where the source's log ends before what was applied: that was of another history.

    Args:
        session: the load of a dump of objects.
        source: the source's metastore; None where it cannot be asked.
        repair: whether the dump has to be loaded; else what stands later is left alone, and the load says so.

    Raises:
        Outdated: it would.
    """
    header, state = session.reader.header, session.state
    if header.recovery or state.applied is None:
        return
    if header.scope.table is None:
        passed = repair and not covers(header.to_evid, state.applied)
        if passed and (source is None or covers(source.current_event_id(), state.applied)):
            raise Outdated(_later(session, repr(session.database), state.applied))
        return
    name = session.mapping.table(header.scope.table)
    stands = state.position(name)
    if covers(header.to_evid, stands):
        return
    if repair or covers(header.to_evid, object_id(session.target.metastore.table(session.database, name))):
        raise Outdated(_later(session, object_name(session.database, name), stands))


def _later(session: Session, shown: str, stands: int) -> str:
    return f"the target's {shown} stands at event {stands}, later than the dump's {session.reader.header.to_evid}: dump it again"


def left_undone(session: Session) -> frozenset[str]:
    """Names that a recovery leaves as they are: somebody took them back by request, and releases them by request."""
    state = session.state
    return frozenset(filter(state.waits, state.held)) if session.reader.header.recovery else frozenset()


def begin_recovery(session: Session, anew: Collection[str]) -> None:
    """Ends what stands for transactions of the source before a recovery: their ends came before its dump, and are never loaded.

    Until the load has made their tables anew these are lost, and so are the others that it makes anew: neither a window nor
    another recovery has what was written before. Of a table that is equal, the source may give the next write ids to others than
    before.

    Args:
        session: the load.
        anew: transactional tables of the dump, by their names on the target.
    """
    header, target, check = session.reader.header, session.target, session.replica.check
    if header.recovery and header.acid and not session.dry:
        _note_lost(session, anew)
        end_replayed(target, session.database, replay_policy(session.mapping), check, partial(_note_lost, session))
        retire_not_given_out(target, session.database, session.identity, header.to_evid, check, half_made=False)


def is_purged(source: Metastore, state: ReplicaState, position: int) -> bool:
    """Whether the log lost events that a name behind its database waits for; those that the database lacks are a gap of it.

    Args:
        source: the source's metastore.
        state: of the replica.
        position: where the name stands.
    """
    return not covers(position, state.applied or 0) and source.event(position + 1) is None


def _note_lost(session: Session, names: Collection[str]) -> None:
    """Holds replicas until the recovery has ended: whoever is killed in it leaves them half made."""
    state = session.state
    for table in session.target.metastore.tables(session.database, sorted(names)):
        name = table.tableName.lower()
        if is_ours(table, session.identity) and not state.waits(name):
            state = state.quarantine(name, 0, REBUILT_REASON)
    session.replica.write_state(state)


def recovered_state(session: Session) -> ReplicaState:
    """The state after a recovery: all names stand at its event.

    A table that failed stands nowhere: only another recovery or a repair ends its hold. So does one that was undone and is left
    alone: the log may lack its events, or be of another history.
    """
    header, undone = session.reader.header, left_undone(session)
    before = replace(session.state, applied=None, at={}, held={}).advanced(header.to_evid, header.to_time, header.to_hash)
    state = with_held(before, session.held, lost=True)
    for name in sorted(undone):
        state = state.quarantine(name, 0, session.state.held[name])
    return replace(state, quarantines={name: one for name, one in state.quarantines.items() if name in state.held})
