"""Why a replica cannot go on with the source's events (design: conflicts and gaps)."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Final, Literal

from hive_replication.dump.source import Source
from hive_replication.errors import BadRequest, MissingEvents, Refused, Unreachable
from hive_replication.load.recovery import forgotten
from hive_replication.load.state import ReplicaState, replica_state
from hive_replication.load.target import Target
from hive_replication.metastore.types import Database

UNFINISHED: Final = "unfinished tables"


@dataclass(frozen=True, slots=True)
class Gap:
    """What stands between a replica and the source's next events.

    Args:
        kind: ``missing events`` (a hole in the log, or it was purged), ``other history`` (the source's metastore was restored
            from an older state), ``restored target`` (the target's metastore was), ``unfinished tables`` (a bootstrap or a
            recovery failed for them).
        applied: event id that the replica stands at.
        reason: one sentence.
    """

    kind: Literal["missing events", "other history", "restored target", "unfinished tables"]
    applied: int
    reason: str


def find_gap(source: Source, target: Target, database: str, *, read_log: bool = True) -> Gap | None:
    """Looks for a gap between a replica and its source; None where events can be applied.

    Args:
        source: the source side.
        target: the target side.
        database: source database.
        read_log: also read all events that wait, to see whether any is missing; a dump of them sees that by itself.

    Raises:
        BadRequest: the target database is no finished replica.
        Refused: it is a replica of another source.
    """
    name = target.policy.target_of(database)
    replica = target.metastore.database(name)
    state = replica_state(replica)
    if replica is None or state.applied is None:
        raise BadRequest(f"the target database {name!r} is no finished replica: load a bootstrap dump of {database!r} first")
    if state.source != f"{source.identity}/{database}":
        raise Refused(f"the target database {name!r} is a replica of {state.source}, not of {source.identity}/{database}")
    current = source.metastore.current_event_id()
    gap = history_gap(source, state, current) or _target_gap(target, replica, state)
    return gap or (_log_gap(source, state.applied, current) if read_log else None)


def require_history(source: Source, target: Target, database: str, evid: int) -> None:
    """Makes sure that a dump from an event id on is of use to the replica that stands there.

    The load would refuse it, too. A target that does not answer, or stands elsewhere, is no reason not to dump.

    Raises:
        Refused: the replica stands at an event of another history, or was restored itself.
    """
    with suppress(Unreachable):
        name = target.policy.target_of(database)
        replica = target.metastore.database(name)
        state = replica_state(replica)
        if replica is None or state.applied != evid or state.source != f"{source.identity}/{database}":
            return
        gap = history_gap(source, state, source.metastore.current_event_id()) or _target_gap(target, replica, state)
        if gap is not None and gap.kind != UNFINISHED:  # the other tables go on
            raise Refused(f"{gap.reason}: hive-repl recover {database}")


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


def _target_gap(target: Target, replica: Database, state: ReplicaState) -> Gap | None:
    """Whether the target was restored from an older state, or a bootstrap or recovery of it could not do all."""
    applied = state.applied or 0
    loaded = forgotten(target.storage, replica.locationUri or "", applied)
    if loaded is not None:
        reason = f"the target stands at event {applied}, and its storage was loaded up to {loaded}: its metastore was restored"
        return Gap("restored target", applied, reason)
    if not state.lost:
        return None
    reason = f"a bootstrap or a recovery failed for {', '.join(state.lost)}: {state.held[state.lost[0]]}"
    return Gap(UNFINISHED, applied, reason)


def _log_gap(source: Source, applied: int, current: int) -> Gap | None:
    try:
        for _ in source.metastore.events(applied, current):
            pass
    except MissingEvents as error:
        return Gap("missing events", applied, str(error))
    return None
