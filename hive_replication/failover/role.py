"""Direction, role and readiness of a replica, in words for those who look at it."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hive_replication.connect import Connection, Reachable
from hive_replication.failover.phases import Phase, advice
from hive_replication.failover.promised import stays_left
from hive_replication.failover.sides import Sides
from hive_replication.lag import Lag
from hive_replication.load.replica.ownership import why_incompatible
from hive_replication.policy import Policy
from hive_replication.units import count

#: What is the matter with a replica while a load of objects goes over it.
HALF_MADE = "the load of {} runs, or was interrupted: a table may be half made"
_ROLES: dict[Phase, str] = {
    "no replica": "no replica yet",
    "replicating": "replica",
    "started": "replica; a failover to it was started",
    "ready": "replica; it can be opened",
    "opened": "source since a failover; the old source is not closed",
    "finished": "source since a failover; the old source is closed",
    "to be reversed": "old source that is to become a replica",
    "failed back": "source; what this policy calls the source is its replica",
    "replaced by another": "other target of an old source that a failover to another one has closed",
}


@dataclass(frozen=True, slots=True)
class ReplicaRole:
    """What a target database is now.

    Args:
        direction: from which database it is replicated, and from which metastore to which.
        role: whether it is a replica, or a failover made it the source.
        readiness: whether it can be opened by a failover without a loss; during a failover, what to do next.
    """

    direction: str
    role: str
    readiness: str


def role_now(connection: Connection, lag: Lag, reach: Reachable | None = None) -> ReplicaRole:
    """Reads both databases, one call of each metastore.

    Args:
        connection: both sides.
        lag: of the replica.
        reach: which metastores answer; both where None.

    Raises:
        Unreachable: the target's metastore does not answer, or the source's without ``reach``.
        Refused: a mark of the failover was edited by hand.
    """
    sides = Sides.now(connection, lag.database, reach)
    role, marked = role_of(connection.source.policy, sides.phase, lag.database, lag), why_incompatible(sides.target)
    opens = marked and sides.phase in ("replicating", "started", "ready")
    return replace(role, readiness=f"not ready: {marked}") if opens else role


def role_of(policy: Policy, phase: Phase, database: str, lag: Lag | None = None) -> ReplicaRole:
    """The role of a replica in a phase of a failover (pure).

    Args:
        policy: of both sides.
        phase: of the failover.
        database: source name.
        lag: of the replica; without it, readiness is what to do next.
    """
    source, target = policy.source.metastore, policy.target.metastore
    direction = f"{database} of {source} to {policy.target_of(database)} of {target}"
    return ReplicaRole(direction, _ROLES[phase], readiness(lag) if lag and phase == "replicating" else advice(phase, database))


def readiness(lag: Lag) -> str:
    """Whether a replica can be opened now, and what would be lost without its source (pure)."""
    if lag.stopped:
        return f"not ready: {lag.stopped}"
    if lag.without_data:
        return "not ready: it has no data"
    if lag.gap:
        return f"not ready: {lag.gap}"
    if lag.loading:
        return f"not ready: {HALF_MADE.format(lag.loading)}"
    if held := [name for name, reason in lag.held if not stays_left(reason)]:
        return f"not ready: {count(len(held), 'table')} held: {', '.join(held)}"
    if lag.waiting is None:
        return f"not known: {lag.problem or 'the log was not read'}"
    kept = _kept([name for name, reason in lag.held if stays_left(reason)])
    if lag.waiting or not lag.complete or kept:
        more = "" if lag.complete else " or more"
        return f"ready for a planned failover; without the source {count(lag.waiting, 'event')}{more} would be lost now{kept}"
    return f"ready: nothing would be lost now, even without the source{kept}"


def _kept(names: list[str]) -> str:
    """Of tables that no event is applied to: whether the source's are still left out, only a failover's start looks."""
    if not names:
        return ""
    verb = "it stays as it was" if len(names) == 1 else "they stay as they were"
    return f"; of {count(len(names), 'table')} that is not known, since {verb}, being left out: {', '.join(names)}"
