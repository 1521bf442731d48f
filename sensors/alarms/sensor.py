"""The sensor that notifies operators: once when a condition begins, and once when it ends.

It observes finished runs, answers of checks, lags, held tables, gaps and the source's retention, and notifies the channels that
the environment names (``resources.notification_channels``). If a channel cannot be reached, the next tick tries again. It shows
what it has read on the policy's page, too (``status_page``).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from math import inf
from typing import Literal

import dagster as dg

from hive_replication.connect import Connection
from hive_replication.doctor import Finding, short_retention
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.failover import Phase
from hive_replication.lag import Lag
from hive_replication.logs import printable
from hive_replication.policy import Policy
from hive_replication.policy.warehouse import pair_hash
from hive_replication.units import count, duration, when
from repl_assets.catalog.keys import Names
from repl_assets.catalog.specs import Specs
from repl_assets.checks.findings import EvaluationKey
from repl_assets.checks.no_alarms import OpenAlarm, answer
from repl_assets.typed import running_sensor
from resources.engine_log import in_tick
from resources.notification_channels import Channel, LogChannel, NotDelivered, Notice, channels
from sensors.alarms.alarm import (
    Alarm,
    AlarmCursor,
    Open,
    SeenRuns,
    State,
    delivered,
    read_cursor,
    undelivered,
    updated,
    without_closed,
)
from sensors.alarms.dropped_tables import DroppedTables
from sensors.alarms.failed_checks import Answers, answers, failures, told, unanswered, undecided
from sensors.alarms.failed_runs import Outcome, alarm_after, outcomes
from sensors.alarms.failover_phases import phases_of
from sensors.alarms.mended_runs import failovers, mended, of_no_database, to_repair, with_held
from sensors.alarms.replica_alarms import conditions, is_known, unreachable, with_replicas
from sensors.alarms.status_page import Seen, show
from sensors.connections import connect_for_tick, require_dump_root
from sensors.drift import all_in_ticks
from sensors.lag import KeptReader

DAGSTER_URL = "HIVE_REPL_DAGSTER_URL"
_INTERVAL = 60
_CORRECT = "correct it (hive-repl policy check), then Reload on Dagster's Deployment page or restart the code server"
_OF_DAGSTER = ("run failure", "failed check", "invalid policy")  # kinds that the servers say nothing of

#: Reads the lags, the source's retention settings that are too short for them, why the storage of dumps does not answer
#: ("" where it does), which tables the source does not have, of those named by database, and phases of databases. Raises
#: ReplicationError.
Observed = tuple[Sequence[Lag], Sequence[Finding], str, Mapping[str, Collection[str]], Mapping[str, Phase]]
Observe = Callable[[Mapping[str, Collection[str]], Collection[str]], Observed]


@dataclass(frozen=True, slots=True)
class Watched:
    """What raises alarms beside runs and servers.

    Args:
        checks: of assets.
        of_partitions: of tables that are partitions of one asset.
        problem: why this policy, or another one of its name, is not in use as its file has it now; "" where all are.
        overflow: databases whose tables are partitions of one asset: alarms of theirs lead there.
    """

    checks: Sequence[dg.AssetCheckKey] = ()
    of_partitions: Sequence[dg.AssetCheckKey] = ()
    problem: str = ""
    overflow: frozenset[str] = frozenset()


def alarm_sensor(
    specs: Specs,
    reader: KeptReader,
    checks: Collection[dg.AssetCheckKey] = (),
    of_partitions: Collection[dg.AssetCheckKey] = (),
    problem: str = "",
) -> dg.SensorDefinition:
    """The sensor of a policy.

    Args:
        specs: of the policy.
        reader: reads its lags.
        checks: of assets; their failures are alarms.
        of_partitions: checks of tables that are partitions of one asset, likewise.
        problem: why this policy, or another one of its name, is not in use as its file has it now.
    """
    names, policy = specs.names, specs.policy
    watched, dropped = Watched(told(checks), told(of_partitions), problem, specs.overflow), DroppedTables()

    @running_sensor(
        name=names.local("alarms"),
        description="Notifies of failed runs and checks, lag, held tables, gaps and low retention: log, e-mail, Slack, webhook",
        interval=_INTERVAL,
        resources=frozenset({names.connection}),
    )
    def alarms(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        def observe(tables: Mapping[str, Collection[str]], failing_over: Collection[str]) -> Observed:
            connection = connect_for_tick(context, names)
            lags = reader.read(connection)
            behind = max((one.seconds_behind or 0.0 for one in lags), default=0.0)
            short = list(short_retention(connection.source.metastore.config_value, behind)) if behind else []
            return lags, short, _why_no_dumps(connection), dropped.of(connection, tables), phases_of(connection, failing_over)

        with in_tick(context.log):
            return tick(context, policy, observe, time.time(), watched)

    return alarms


def tick(context: dg.SensorEvaluationContext, policy: Policy, observe: Observe, now: float, watched: Watched) -> dg.SkipReason:
    """One tick at a given time.

    Runs and checks are told of before the servers are asked, which may take most of the time that Dagster gives a tick.

    Raises:
        BadRequest: a channel in the environment is malformed; nobody is notified.
    """
    receivers: list[Channel] = [LogChannel(context.log.warning), *channels(os.environ)]
    names = Names.of(policy)
    cursor = _last(context, policy)
    alarms, runs = _runs(context.instance, names, policy.databases, cursor, now)
    alarms = updated(alarms, {}, of_no_database(alarms, policy), now)
    found = answers(context.instance, watched.checks, watched.of_partitions)
    unclear = undecided(context.instance, found, {key for key, one in alarms.items() if one.ended is None})
    alarms = _with_checks(alarms, found, unclear, cursor.gone, now)
    alarms = _with_problem(alarms, names.policy, watched.problem, now)
    cursor = replace(cursor, alarms=alarms, finished=runs, time=now)
    cursor = replace(cursor, alarms=_notify(context, policy, cursor, receivers))
    cursor, seen = _with_conditions(cursor, observe, policy, _looked(context.instance, policy, alarms), watched.overflow)
    alarms = without_closed(_notify(context, policy, cursor, receivers))
    context.update_cursor(_keep(context.instance, policy, replace(cursor, alarms=alarms)))
    lasting = {key: one for key, one in alarms.items() if one.ended is None}
    for one in lasting.values():
        if one.since < now:  # the log has the others
            context.log.warning(_text(one, "open", os.environ.get(DAGSTER_URL, "")))
    shown = tuple(map(_open, lasting.values()))
    answer(context.instance, names, sorted(policy.databases), shown)
    show(context.instance, policy, seen, shown, now)
    return dg.SkipReason(f"{count(len(lasting), 'alarm')}: {'; '.join(lasting)}" if lasting else "no alarms")


def _open(one: Open) -> OpenAlarm:
    """An alarm as the check ``no_alarms`` shows it."""
    return OpenAlarm(one.alarm.database, one.since, one.alarm.title, one.alarm.advice, one.alarm.path)


def _runs(
    instance: dg.DagsterInstance, names: Names, databases: Collection[str], cursor: AlarmCursor, now: float
) -> tuple[dict[str, Open], SeenRuns]:
    """Adds runs that finished since the last tick; runs before the first tick raise no alarm."""
    alarms = dict(cursor.alarms)
    found, seen = outcomes(instance, names, databases, cursor.finished or SeenRuns(now), now)
    for outcome in found if cursor.finished else ():
        alarms = _outcome(alarms, outcome, now)
    return alarms, seen


def _outcome(alarms: dict[str, Open], outcome: Outcome, now: float) -> dict[str, Open]:
    key = f"run failure: {outcome.subject}"
    known = alarms.get(key)
    left = alarm_after(outcome, known.alarm if known and known.ended is None else None)
    return updated(alarms, {key: left} if left else {}, [key], now)


def _with_checks(
    alarms: dict[str, Open], found: Answers, unclear: Mapping[EvaluationKey, bool], gone: Collection[str], now: float
) -> dict[str, Open]:
    """Adds checks that fail, or could not decide for long; one that has no answer yet, or could not decide, stays as it was.

    Nothing answers again for a database that is gone, and Dagster keeps the answers.
    """
    known = {key: one.alarm for key, one in alarms.items() if one.alarm.kind == "failed check" and one.ended is None}
    present = {alarm.key: alarm for alarm in failures(found, unclear, known) if alarm.database not in gone}
    return updated(alarms, present, known.keys() - unanswered(found), now)


def _with_problem(alarms: dict[str, Open], policy: str, problem: str, now: float) -> dict[str, Open]:
    """Adds a policy that is not in use as its file has it now."""
    alarm = Alarm("invalid policy", policy, problem, _CORRECT)
    return updated(alarms, {alarm.key: alarm} if problem else {}, [alarm.key], now)


def _why_no_dumps(connection: Connection) -> str:
    try:
        require_dump_root(connection)
    except Unreachable as error:
        return str(error)
    return ""


def _looked(instance: dg.DagsterInstance, policy: Policy, alarms: Mapping[str, Open]) -> dict[str, float]:
    """Since when nothing was left to a run that looks for drift, in the databases of alarms of failed runs."""
    databases = {one.alarm.database for one in alarms.values() if one.alarm.kind == "run failure"}
    return all_in_ticks(instance, Names.of(policy), databases) if policy.drift else dict.fromkeys(databases, inf)


def _with_conditions(
    cursor: AlarmCursor, observe: Observe, policy: Policy, looked: Mapping[str, float], overflow: frozenset[str]
) -> tuple[AlarmCursor, Seen]:
    """Adds the conditions of the replicas now; if the servers do not answer, only that."""
    names, failed = Names.of(policy), cursor.alarms.values()
    try:
        lags, short, no_dumps, dropped, phases = observe(to_repair(failed, cursor.time), failovers(failed, names, cursor.time))
    except ReplicationError as error:
        alarm = unreachable(error, policy)
        return replace(cursor, alarms=updated(cursor.alarms, {alarm.key: alarm}, [], cursor.time)), Seen(problem=str(error))
    cursor = replace(cursor, alarms=with_held(cursor.alarms, lags))
    present = {alarm.key: alarm for alarm in conditions(lags, short, policy, cursor.replicas, no_dumps, overflow)}
    ended = [key for key, one in cursor.alarms.items() if one.alarm.kind not in _OF_DAGSTER and is_known(key, lags)]
    ended += mended(cursor.alarms, lags, names, looked, dropped, phases, cursor.time)
    gone = tuple(one.database for one in lags if not one.in_source)
    ended += [key for key, one in cursor.alarms.items() if one.alarm.kind == "failed check" and one.alarm.database in gone]
    alarms = updated(cursor.alarms, present, ended, cursor.time)
    replicas = with_replicas(cursor.replicas, lags, policy)
    return replace(cursor, alarms=alarms, replicas=replicas, gone=gone), Seen(tuple(lags))


def _notify(
    context: dg.SensorEvaluationContext, policy: Policy, cursor: AlarmCursor, receivers: list[Channel]
) -> dict[str, Open]:
    """Notifies the channels of what they do not know; returns the alarms after it. One that fails is no receiver any more."""
    alarms = dict(cursor.alarms)
    for channel in tuple(receivers):
        news = list(undelivered(alarms, channel.name))
        if not news:
            continue
        try:
            channel.send(notice(policy.name, news, os.environ.get(DAGSTER_URL, "")))
        except NotDelivered as error:
            context.log.warning("%s was not notified, the next tick tries again: %s", channel.name, error)
            receivers.remove(channel)
            continue
        alarms = delivered(alarms, channel.name)
        _keep(context.instance, policy, replace(cursor, alarms=alarms))
    return alarms


def _last(context: dg.SensorEvaluationContext, policy: Policy) -> AlarmCursor:
    """What the last tick left, even if Dagster ended it and dropped its cursor: what it had sent is not sent again."""
    kept = context.instance.daemon_cursor_storage.get_cursor_values({_key(policy)}).get(_key(policy))
    return max(read_cursor(context.cursor), read_cursor(kept), key=lambda cursor: cursor.time)


def _keep(instance: dg.DagsterInstance, policy: Policy, cursor: AlarmCursor) -> str:
    text = cursor.to_json()
    instance.daemon_cursor_storage.set_cursor_values({_key(policy): text})
    return text


def _key(policy: Policy) -> str:
    """Of its pair, too: another code location may have a policy of this name."""
    return f"hive_replication/alarms_sensor/{policy.name}-{pair_hash(policy.pair)}"


def notice(policy: str, news: Sequence[tuple[Open, State]], base: str) -> Notice:
    """The notification for begins and ends of alarms.

    Args:
        policy: name of the policy.
        news: the alarms, and whether each begins or ends; not empty.
        base: address of Dagster's webserver, or "".
    """
    first, state = news[0]
    numbers = ", ".join(filter(None, (_number(news, "begins"), _number(news, "ends"))))
    subject = f"{state}: {first.alarm.title}" if len(news) == 1 else numbers
    return Notice(
        printable(" ".join(f"[hive-repl {policy}] {subject}".split())[:200]),
        "\n\n".join(_text(one, state, base) for one, state in news) + "\n",
        {"policy": policy, "alarms": [_data(one, state, base) for one, state in news]},
    )


def _number(news: Sequence[tuple[Open, State]], state: State) -> str:
    number = sum(one == state for _, one in news)
    return f"{count(number, 'alarm')} {state if number == 1 else state[:-1]}" if number else ""


def _text(one: Open, state: State | Literal["open"], base: str) -> str:
    """A paragraph. Names and reasons come from the source: they are spelled out, so that they begin none of their own."""
    alarm, title = one.alarm, printable(one.alarm.title)
    if state == "ends":
        return f"ENDS after {duration((one.ended or one.since) - one.since)}: {title}"
    link = [f"In Dagster: {base.rstrip('/')}{alarm.path}"] if alarm.path else []
    begins = "BEGINS" if state == "begins" else f"OPEN since {when(one.since)}"
    return "\n".join([f"{begins}: {title}", f"What to do: {printable(alarm.advice)}", *link])


def _data(one: Open, state: State, base: str) -> dict[str, str | None]:
    alarm = one.alarm
    return {
        "kind": alarm.kind,
        "about": alarm.about,
        "state": state,
        "title": alarm.title,
        "advice": alarm.advice,
        "url": base.rstrip("/") + alarm.path if alarm.path else None,
        "since": _time(one.since),
        "ended": None if one.ended is None else _time(one.ended),
    }


def _time(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="seconds")
