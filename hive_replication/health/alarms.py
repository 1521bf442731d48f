"""Conditions of replicas that need somebody's attention: the alarms of Dagster and of the command line."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from hive_replication.connect import Connection, Reachable
from hive_replication.doctor import Finding, short_retention
from hive_replication.errors import ReplicationError
from hive_replication.health.advice import advice_on_held
from hive_replication.health.kept_records import KeptRecords
from hive_replication.lag import HALF_REVERSED, Lag, lags_reachable
from hive_replication.load.replica.held_reasons import PASSED_REASON, RELEASED_REASON, UNDONE_REASON, joined_to
from hive_replication.policy import Policy
from hive_replication.units import count, duration

_MOST_HELD = 20  # tables of a database with alarms of their own; more get one alarm together
_REASON = 300  # characters
_DOCTOR = "hive-repl doctor shows what to change"
#: Beginnings of reasons for which tables are held though nothing of them failed.
_NOT_FAILED = (UNDONE_REASON, RELEASED_REASON, PASSED_REASON)

AlarmKind = Literal["lag", "held table", "gap", "low retention", "unreachable"]


@dataclass(frozen=True, slots=True)
class Alarm:
    """A condition that needs an operator's attention.

    Args:
        kind: of the condition.
        about: the object concerned, e.g. ``sales.orders``; with ``kind`` it identifies the alarm.
        title: what is wrong, one sentence.
        advice: what to do.
        database: source database, "" for a whole side.
        table: source table, "" for the whole database.
    """

    kind: AlarmKind
    about: str
    title: str
    advice: str
    database: str = ""
    table: str = ""


def open_alarms(connection: Connection, reach: Reachable) -> tuple[Alarm, ...]:
    """The alarms of a policy's replicas now, as far as the servers answer.

    Args:
        connection: both sides.
        reach: which of them answer.
    """
    kept = KeptRecords.of(connection)
    try:
        lags = lags_reachable(connection, reach)
        short = too_near(connection, reach, lags)
    except ReplicationError as error:
        return (unreachable("source or target", str(error)), *without_dumps(kept.problem))
    return (*of_servers(reach, kept), *conditions(lags, short, connection.source.policy, kept.lost(lags)))


def too_near(connection: Connection, reach: Reachable, lags: Iterable[Lag]) -> list[Finding]:
    """The doctor's findings about retention at the source that lags come too near to; none where it does not answer."""
    behind = max((one.seconds_behind or 0.0 for one in lags), default=0.0)
    return list(short_retention(connection.source.metastore.config_value, behind)) if behind and not reach.source else []


def of_servers(reach: Reachable, kept: KeptRecords) -> Iterator[Alarm]:
    """The alarms of servers and dump root that do not answer."""
    for side, why in reach.problems().items():
        yield unreachable(side, why)
    yield from without_dumps(kept.problem)


def without_dumps(why: str) -> Iterator[Alarm]:
    """The alarm of a dump root that does not answer; none where it does.

    Args:
        why: it does not, or "".
    """
    if why:
        yield Alarm("unreachable", "dump root", f"nothing can be replicated: {why}", _DOCTOR)


def unreachable(about: str, why: str) -> Alarm:
    """The alarm of servers that do not answer.

    Args:
        about: which these are.
        why: they do not.
    """
    return Alarm("unreachable", about, f"the lag is not known: {why}", _DOCTOR)


def conditions(lags: Sequence[Lag], short: Iterable[Finding], policy: Policy, replicas: Collection[str] = ()) -> Iterator[Alarm]:
    """The alarms of one observation.

    Args:
        lags: of all databases.
        short: the doctor's findings about retention at the source.
        policy: the policy.
        replicas: databases that had a replica at an earlier observation, or by their records.
    """
    for one in lags:
        if one.lacks_replica and one.database in replicas:
            yield _lost(one)
        yield from of_database(one, policy.lag_target_seconds)
    for finding in short:
        yield Alarm("low retention", finding.check, f"{finding.check} is short: {finding.found}", finding.advice)


def _lost(one: Lag) -> Alarm:
    title = f"{one.database} has no replica any more: none is in {one.target_database} on the target"
    advice = "the next window bootstraps the database again: find out who dropped it on the target, or restored its metastore"
    return Alarm("gap", one.database, title, advice, one.database)


def of_database(one: Lag, target: float) -> Iterator[Alarm]:
    """The alarms of one database; ``target`` is the policy's limit of its lag in seconds."""
    if one.gap:
        title = f"{one.database} cannot apply the source's events: {one.gap[:_REASON]}"
        advice = "the next window compares the database with its source and replicates the differences; without Dagster: "
        yield Alarm("gap", one.database, title, one.cure or f"{advice}hive-repl recover {one.database}", one.database)
    behind = one.seconds_behind or 0.0
    half_reversed = one.stopped == HALF_REVERSED  # nobody meant that to last
    if behind > target and (half_reversed or not one.stopped):
        waiting = count(one.waiting or 0, "event")
        title = f"{one.database} is {duration(behind)} behind (target {duration(target)}), {waiting} waiting"
        advice = "check its last runs and the sensor notification_log; hive-repl lag --tables shows the tables that are behind"
        if half_reversed:
            advice = f"its failback was not completed, so that sensors load nothing: hive-repl failover reverse {one.database}"
        yield Alarm("lag", one.database, title, advice, one.database)
    yield from _held(one)


def _held(one: Lag) -> Iterator[Alarm]:
    """Held tables of which something failed: neither undone by an operator, or joined to such, nor about to be caught up."""
    held = [(table, reason[:_REASON]) for table, reason in one.held if not joined_to(reason)[1].startswith(_NOT_FAILED)]
    if len(held) > _MOST_HELD:
        advice = f"remove the causes shown by hive-repl lag; the first is {held[0][0]}: {held[0][1]}"
        yield Alarm("held table", one.database, f"{len(held)} tables of {one.database} are held", advice, one.database)
        return
    for table, reason in held:
        source = f"{one.database}.{table}"
        advice = advice_on_held(table, reason, one.database, one.target_database)
        yield Alarm("held table", source, f"{source} is held: {reason}", advice, one.database, table)
