"""Finds why the source's events cannot be applied to a replica (design: conflicts and gaps)."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import Final, Literal

from hive_replication.dump.beginnings import Beginnings
from hive_replication.dump.bootstrap.table_reader import why_not_shown
from hive_replication.dump.source import Source, is_replica
from hive_replication.errors import BadRequest, MissingEvents, Refused, Unreachable
from hive_replication.load.hidden_tables import Hidden, Shown, seen
from hive_replication.load.journal.restored import forgotten
from hive_replication.load.replica.held_reasons import is_hidden
from hive_replication.load.replica.ownership import refuse_failed_over
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.load.replica.target import Target
from hive_replication.logs import about
from hive_replication.metastore.types import Database

_LOG = logging.getLogger(__name__)
UNFINISHED: Final = "unfinished tables"


@dataclass(frozen=True, slots=True)
class Gap:
    """Why the source's next events cannot be applied to a replica.

    Args:
        kind: ``missing events`` (a hole in the log, or it was purged), ``other history`` (the source's metastore was restored
            from an older state), ``restored target`` (the target's metastore was), ``unfinished tables`` (a bootstrap or a
            recovery failed for them), ``interrupted load`` (of objects, over the replica), ``failback`` (an old source becomes a
            replica of the one that replaced it).
        applied: last applied event id of the replica.
        reason: one sentence.
    """

    kind: Literal["missing events", "other history", "restored target", "unfinished tables", "interrupted load", "failback"]
    applied: int
    reason: str


def find_gap(
    source: Source,
    target: Target,
    database: str,
    *,
    read_log: bool = True,
    unfinished: bool = True,
    interrupted: bool = False,
) -> Gap | None:
    """Finds a gap between a replica and its source; None if events can be applied.

    Args:
        source: the source side.
        target: the target side.
        database: source database.
        read_log: also read all waiting events to find a missing one; a dump of them finds it anyway.
        unfinished: whether tables for which a bootstrap or a recovery failed are a gap; the others can be loaded.
        interrupted: whether a load of objects that was killed is one, though it may be done: whatever is loaded does it first.

    Raises:
        BadRequest: the target database is no finished replica, or the source has none of this name either.
        Refused: it is a replica of another source, or a failover ended this direction.
    """
    name = target.policy.target_of(database)
    replica = target.metastore.database(name)
    state = replica_state(replica)
    _refuse_failed_over(source, target, database, state, there=replica is not None)
    if replica is None or state.applied is None:
        source.database(database)
        raise BadRequest(f"the target database {name!r} is no finished replica: load a bootstrap dump of {database!r} first")
    if state.source != f"{source.identity}/{database}":
        raise Refused(f"the target database {name!r} is a replica of {state.source}, not of {source.identity}/{database}")
    current = source.metastore.current_event_id()
    gap = history_gap(source, state, current) or _restored_gap(target, replica, state)
    gap = gap or (interrupted_gap(state) if interrupted or state.obstacle else None)
    gap = gap or (_unfinished_gap(source, database, state) if unfinished else None)
    return gap or (_log_gap(source, database, state.applied, current) if read_log else None)


def require_history(source: Source, target: Target, database: str, evid: int) -> None:
    """Makes sure that a dump from an event id can be loaded into the replica with that applied id.

    The load checks the same. An unreachable target, or one with another applied id, does not prevent the dump.

    Raises:
        Refused: the replica stands at an event of another history, was restored itself, or a failover ended this direction.
    """
    try:
        name = target.policy.target_of(database)
        replica = target.metastore.database(name)
        state = replica_state(replica)
        _refuse_failed_over(source, target, database, state, there=replica is not None)
        if replica is None or state.applied != evid or state.source != f"{source.identity}/{database}":
            return
        gap = history_gap(source, state, source.metastore.current_event_id()) or _restored_gap(target, replica, state)
        if gap is not None:
            raise Refused(f"{gap.reason}: hive-repl recover {database}")
    except Unreachable as error:
        _LOG.info("dumped without checking the replica: %s", error, extra=about(database, evid=evid))


def _refuse_failed_over(source: Source, target: Target, database: str, state: ReplicaState, *, there: bool) -> None:
    """Either side may know of the failover alone: the other's metastore may have been restored from a backup."""
    name = target.policy.target_of(database)
    refuse_failed_over(state, name, source.metastore.database(database), f"{target.identity}/{name}", there=there)


def history_gap(source: Source, state: ReplicaState, current: int) -> Gap | None:
    """Whether the source's log is not the one that a replica follows, or is not known to be.

    Args:
        source: the source side.
        state: where the replica stands.
        current: newest event id of the source.
    """
    applied = state.applied or 0
    if applied > current:
        reason = f"the source's log ends at event {current}, before {applied}: its metastore was restored from an older state"
        return Gap("other history", applied, reason)
    if not state.applied_hash:
        return None  # nothing is remembered of the event: its log was empty, or purged then
    time, message_hash = source.reach(applied)
    if not message_hash and applied < current:
        reason = (
            f"event {applied}, the last one applied, is no longer in the source's log: whether others are missing is not known"
        )
        return Gap("missing events", applied, reason)
    if message_hash and (time, message_hash) != (state.applied_time, state.applied_hash):
        reason = f"event {applied} of the source is not the one that was applied: its metastore was restored from an older state"
        return Gap("other history", applied, reason)
    return None


def _restored_gap(target: Target, replica: Database, state: ReplicaState) -> Gap | None:
    """Whether the target was restored from an older state."""
    applied = state.applied or 0
    loaded = forgotten(target.storage, replica.locationUri or "", applied)
    if loaded is not None:
        reason = f"the target stands at event {applied}, and its storage was loaded up to {loaded}: its metastore was restored"
        return Gap("restored target", applied, reason)
    return None


def interrupted_gap(state: ReplicaState) -> Gap | None:
    """Whether a load of objects over a replica was killed, or runs; a replica of which it cannot be done says why."""
    if not state.checkpoint:
        return None
    why = f", and cannot be done again: {state.obstacle}" if state.obstacle else ""
    return Gap("interrupted load", state.applied or 0, f"the load of {state.checkpoint} was interrupted{why}")


def _unfinished_gap(source: Source, database: str, state: ReplicaState) -> Gap | None:
    """Whether a bootstrap or recovery of the target could not do all; a recovery does not bring what the source still hides."""
    applied, lost = state.applied or 0, state.unfinished
    asked = [name for name in lost if is_hidden(state.held[name])]
    answers = source.threads.map(partial(_is_hidden, source, database), asked) if asked else ()
    hidden = {name for name, answer in zip(asked, answers, strict=True) if answer}
    names = [name for name in lost if name not in hidden]
    if not names:
        return None
    reason = f"a bootstrap or a recovery failed for {', '.join(names)}, or passed it over: {state.held[names[0]]}"
    return Gap(UNFINISHED, applied, reason)


def _is_hidden(source: Source, database: str, name: str) -> bool:
    """Whether the source does not show a table, or something else that a dump has to have of it, such as its partitions."""
    answer = seen(source.metastore, database, name)
    return isinstance(answer, Hidden) or (isinstance(answer, Shown) and why_not_shown(source, database, name) != "")


def _log_gap(source: Source, database: str, applied: int, current: int) -> Gap | None:
    """Whether an event is missing, or what a transaction wrote."""
    metastore = source.metastore
    replica = is_replica(metastore.database(database), applied)
    beginnings = Beginnings(source.opened_in_log, database, replica) if source.acid else None
    try:
        for event in metastore.events(applied, current):
            if beginnings:
                beginnings.follow(event)
    except MissingEvents as error:
        return Gap("missing events", applied, str(error))
    return None
