"""One page for a policy: for each replica its state, its last load, how far it is behind, what is held and what to do."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from hive_replication.connect import Connection, Reachable
from hive_replication.errors import OF_ONE_DATABASE, BadRequest, ReplicationError
from hive_replication.failover import ReplicaRole, role_now
from hive_replication.health.advice import advice_on_held
from hive_replication.health.alarms import Alarm, conditions, of_servers, too_near
from hive_replication.health.kept_records import KeptRecords
from hive_replication.lag import Lag, lags_reachable
from hive_replication.load.records import Record
from hive_replication.load.replica.ownership import why_incompatible
from hive_replication.load.replica.repl_status import held_tables
from hive_replication.load.replica.state import SOURCE, ReplicaState, replica_state
from hive_replication.storage.failures import plain

Condition = Literal[
    "up to date",
    "behind",
    "tables held",
    "gap",
    "paused",
    "undone",
    "failed over",
    "not at the source",
    "no replica",
    "bootstrap unfinished",
    "unknown",
]
_Cases = list[tuple[bool, Condition]]
_MOST_EXCLUDED = 1_000  # names of excluded tables


@dataclass(frozen=True, slots=True)
class HeldStatus:
    """A held table, and what to do.

    Args:
        table: name on the target.
        after: last event applied to it; 0 if its bootstrap failed.
        evid: the event that failed; 0 if that is not recorded.
        reason: why it is held.
        advice: what to do.
        since: since when, seconds since the epoch; 0 if that is not recorded.
        attempts: loads that failed for it.
        next_attempt: when the sensor tries it again, seconds since the epoch; 0 if nothing is set.
    """

    table: str
    after: int
    evid: int
    reason: str
    advice: str
    since: int = 0
    attempts: int = 0
    next_attempt: int = 0


@dataclass(frozen=True, slots=True)
class DatabaseStatus:
    """One replica.

    Args:
        database: source name.
        target_database: its name on the target.
        condition: in two words; the gravest where several hold.
        lag: how far it is behind.
        advice: what to do, "" if nothing.
        held: tables that are held.
        paused: since when and by whom it is paused, or "".
        undone: the event to which it was undone, or None.
        excluded: tables of the source that the policy leaves out.
        unfollowed: tables on the target that were replicated once, and that the policy leaves out now: they go stale.
        last_load: the record of its last load; None if none is kept, or it is not known.
        role: its direction, and whether it can be opened by a failover; None where the target does not answer.
    """

    database: str
    target_database: str
    condition: Condition
    lag: Lag
    advice: str = ""
    held: tuple[HeldStatus, ...] = ()
    paused: str = ""
    undone: int | None = None
    excluded: tuple[str, ...] = ()
    unfollowed: tuple[str, ...] = ()
    last_load: Record | None = None
    role: ReplicaRole | None = None


@dataclass(frozen=True, slots=True)
class PolicyStatus:
    """The replicas of a policy.

    Args:
        policy: its name.
        databases: its replicas.
        alarms: what needs attention now.
        problems: why a side does not answer, by ``source`` and ``target``.
        left_out: source databases that match a pattern and are not replicated, with the reason.
    """

    policy: str
    databases: tuple[DatabaseStatus, ...]
    alarms: tuple[Alarm, ...]
    problems: Mapping[str, str]
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])


def policy_status(connection: Connection, reach: Reachable, database: str | None = None) -> PolicyStatus:
    """The status of a policy as far as its servers answer.

    Args:
        connection: both sides.
        reach: which of them answer.
        database: one source database; all of the policy where None.

    Raises:
        BadRequest: the policy has no such database.
    """
    policy = connection.source.policy
    if database is not None and database not in policy.databases:
        known = ", ".join(sorted(policy.databases)) or "none"
        raise BadRequest(f"the policy {policy.name!r} has no database {database!r}; it has: {known}")
    lags = lags_reachable(connection, reach, None if database is None else [database])
    kept = KeptRecords.of(connection)
    found = tuple(_database(connection, reach, one, kept) for one in lags)
    alarms = (*of_servers(reach, kept), *conditions(lags, too_near(connection, reach, lags), policy, kept.lost(lags)))
    left_out = connection.patterns.left_out if database is None else dict[str, str]()
    return PolicyStatus(policy.name, found, alarms, reach.problems(), left_out)


def _database(connection: Connection, reach: Reachable, lag: Lag, kept: KeptRecords) -> DatabaseStatus:
    policy, target = connection.source.policy, connection.target
    state, unreadable, marked = ReplicaState(), "", ""
    try:
        found = None if reach.target else target.metastore.database(lag.target_database)
        state, marked = replica_state(found), why_incompatible(found)
    except OF_ONE_DATABASE as error:  # the others are shown all the same
        unreadable = str(error)
    condition = condition_of(state, lag, policy.lag_target_seconds, known=not (reach.target or unreadable))
    excluded, unfollowed = _left_out(connection, reach, lag)
    return DatabaseStatus(
        lag.database,
        lag.target_database,
        condition,
        lag,
        unreadable or marked or lag.cure or what_to_do(condition, lag),
        tuple(held_status(state, lag)),
        state.paused,
        state.undone,
        excluded,
        unfollowed,
        kept.last_load(lag.target_database),
        None if reach.target else _role(connection, lag, reach),
    )


def _role(connection: Connection, lag: Lag, reach: Reachable) -> ReplicaRole:
    try:
        return role_now(connection, lag, reach)
    except OF_ONE_DATABASE as error:
        return ReplicaRole(f"{lag.database} to {lag.target_database}", "not known", f"not ready: {error}")


def condition_of(state: ReplicaState, lag: Lag, target: float, *, known: bool = True) -> Condition:
    """The condition of a replica (pure).

    Args:
        state: of the target database.
        lag: of the replica.
        target: the policy's limit of the lag, in seconds.
        known: whether the target answers.
    """
    stopped: _Cases = [
        (not known or bool(lag.hidden), "unknown"),
        (bool(state.failed_over), "failed over"),
        (state.undone is not None, "undone"),
        (bool(state.paused), "paused"),
    ]
    absent: _Cases = [(not state.source, "no replica"), (state.applied is None, "bootstrap unfinished")]
    return _condition(stopped, absent, lag, target, held=bool(state.held))


def condition_by_lag(lag: Lag, target: float) -> Condition:
    """The condition of a replica of which only the lag was read (pure), as :func:`condition_of` finds it.

    Args:
        lag: of the replica, by servers that answered.
        target: the policy's limit of the lag, in seconds.
    """
    kinds: dict[str, Condition] = {"paused": "paused", "undone": "undone"}
    stopped: _Cases = [
        (lag.unreadable or bool(lag.hidden), "unknown"),
        (bool(lag.stopped), kinds.get(lag.stopped.partition(" ")[0], "failed over")),
    ]
    absent: _Cases = [(lag.applied is None, "bootstrap unfinished" if lag.loading else "no replica")]
    return _condition(stopped, absent, lag, target, held=bool(lag.held))


def _condition(stopped: _Cases, absent: _Cases, lag: Lag, target: float, *, held: bool) -> Condition:
    """The first of its cases that holds: what stops a replica, then that there is none, then what is wrong with it."""
    found: _Cases = [
        *stopped,
        (not lag.in_source, "not at the source"),
        *absent,
        (bool(lag.gap), "gap"),
        (held, "tables held"),
        (lag.seconds_behind is None, "unknown"),
        ((lag.seconds_behind or 0.0) > target or bool(lag.changed), "behind"),
        (True, "up to date"),
    ]
    return next(condition for holds, condition in found if holds)


def what_to_do(condition: Condition, lag: Lag) -> str:
    """What to do about a replica, "" where nothing is to be done (pure)."""
    name, target = lag.database, lag.target_database
    return {
        "unknown": f"{lag.problem}: hive-repl doctor" if lag.problem else "hive-repl doctor",
        "failed over": f"hive-repl failover status {name}",
        "undone": f"hive-repl undo {target} --release lets it follow the source again",
        "paused": f"hive-repl resume {name} lets the sensors load it again",
        "not at the source": f"the source has no such database of its own: take {name} out of the policy unless it is to be "
        "created there",
        "no replica": f"the sensor bootstraps it once Dagster has its assets (see the sensor catalog); by hand: hive-repl REPL "
        f"DUMP {name}, then REPL LOAD",
        "bootstrap unfinished": "load its bootstrap dump again: it continues where it stopped",
        "gap": f"the next window recovers by itself; without Dagster: hive-repl recover {name}",
        "tables held": "see each table below",
        "behind": f"{lag.changed}: the sensor starts it; by hand: hive-repl REPL DUMP {name} FROM {lag.applied}, then REPL LOAD"
        if lag.changed
        else f"look at its last runs and the sensor notification_log; hive-repl lag --tables; hive-repl history {name}",
        "up to date": "",
    }[condition]


def held_status(state: ReplicaState, lag: Lag) -> Iterator[HeldStatus]:
    """The held tables of a replica, each with advice (pure)."""
    for one in held_tables(state):
        reason, known = plain(one.reason), one.history
        advice = advice_on_held(one.table, reason, lag.database, lag.target_database)
        yield HeldStatus(one.table, one.after, known.evid, reason, advice, known.since, known.attempts, one.next_attempt)


def held_by_lag(lag: Lag) -> Iterator[HeldStatus]:
    """The held tables of a replica of which only the lag was read (pure), without their history."""
    applied = {one.table: one.applied for one in lag.tables}
    for table, held in lag.held:
        reason = plain(held)
        advice = advice_on_held(table, reason, lag.database, lag.target_database)
        yield HeldStatus(table, applied.get(table, 0), 0, reason, advice)


def _left_out(connection: Connection, reach: Reachable, lag: Lag) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Tables that the policy leaves out: of the source, and replicas of them on the target."""
    policy, source, target = connection.source.policy, connection.source.metastore, connection.target.metastore
    if policy.tables == ("*",) and not policy.exclude:
        return (), ()
    ours = [] if reach.source else _names(lambda: source.table_names(lag.database))
    theirs = [] if reach.target else _names(lambda: target.table_names(lag.target_database))
    excluded = sorted(name for name in ours if not policy.includes(name))[:_MOST_EXCLUDED]
    suspects = sorted(name for name in theirs if not policy.includes(name))[:_MOST_EXCLUDED]
    replicas = target.tables(lag.target_database, suspects)
    unfollowed = sorted(table.tableName for table in replicas if SOURCE in (table.parameters or {}))
    return tuple(excluded), tuple(unfollowed)


def _names(ask: Callable[[], list[str]]) -> list[str]:
    try:
        return ask()
    except ReplicationError:  # no such database there
        return []
