"""The sensor that tells operators: once when something goes wrong, and once when it is well again.

It looks at finished runs, lags, held tables, gaps and the source's retention, and sends to the channels of the environment (see
``resources.notifier``). A channel that cannot be reached is told at a later tick.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime

import dagster as dg

from hive_replication.doctor import Finding, short_retention
from hive_replication.errors import ReplicationError
from hive_replication.lag import Lag
from hive_replication.policy import Policy
from hive_replication.units import count, duration
from repl_assets.keys import Names
from resources.connection import ReplicationConnection
from resources.notifier import Channel, LogChannel, NotDelivered, Notice, channels
from sensors.alarm import Alarm, AlarmCursor, Open, State, after, left, read_cursor, to_tell, told
from sensors.conditions import conditions, told_of
from sensors.failed_runs import Outcome, alarm_of, outcomes, unseen
from sensors.lag import KeptReader

DAGSTER_URL = "HIVE_REPL_DAGSTER_URL"
_INTERVAL = 60

#: Lags, and which times of the source are too short for them. Raises ReplicationError.
Look = Callable[[], tuple[Sequence[Lag], Sequence[Finding]]]


def alarm_sensor(policy: Policy, reader: KeptReader) -> dg.SensorDefinition:
    """The sensor of a policy, with the reader of its lags; it runs from the start."""
    names = Names.of(policy)

    @dg.sensor(
        name=names.local("alarms"),
        description="Tells operators of failed runs, lag, held tables, gaps and low retention: log, e-mail, Slack, webhook",
        minimum_interval_seconds=_INTERVAL,
        default_status=dg.DefaultSensorStatus.RUNNING,
        required_resource_keys={names.connection},
    )
    def alarms(context: dg.SensorEvaluationContext) -> dg.SkipReason:
        resource: ReplicationConnection = getattr(context.resources, names.connection)

        def look() -> tuple[Sequence[Lag], Sequence[Finding]]:
            connection = resource.connect()
            lags = reader.read(connection)
            behind = max((one.seconds_behind or 0.0 for one in lags), default=0.0)
            return lags, list(short_retention(connection.source.metastore.config_value, behind)) if behind else []

        return tick(context, policy, look, time.time())

    return alarms


def tick(context: dg.SensorEvaluationContext, policy: Policy, look: Look, now: float) -> dg.SkipReason:
    """One tick at a given time.

    Raises:
        BadRequest: the environment names a channel wrongly; nothing is told.
    """
    receivers = [LogChannel(context.log.warning), *channels(os.environ)]
    cursor = read_cursor(context.cursor)
    alarms, runs = _runs(context.instance, Names.of(policy), cursor, now)
    alarms = _look(alarms, look, policy, now)
    for channel in receivers:
        alarms = _tell(context, policy.name, alarms, channel)
    alarms = left(alarms)
    context.update_cursor(AlarmCursor(alarms, runs).to_json())
    lasting = sum(one.ended is None for one in alarms.values())
    return dg.SkipReason(f"{count(lasting, 'alarm')}: {'; '.join(alarms)}" if lasting else "no alarms")


def _runs(
    instance: dg.DagsterInstance, names: Names, cursor: AlarmCursor, now: float
) -> tuple[dict[str, Open], Mapping[str, str]]:
    """Runs that finished since the last tick; what was before the first one is not told."""
    alarms, found = dict(cursor.alarms), outcomes(instance, names)
    for outcome in unseen(found, cursor.runs) if cursor.runs is not None else ():
        alarms = _outcome(alarms, outcome, instance, now)
    return alarms, {**(cursor.runs or {}), **{outcome.subject: outcome.run.run_id for outcome in found}}


def _outcome(alarms: dict[str, Open], outcome: Outcome, instance: dg.DagsterInstance, now: float) -> dict[str, Open]:
    if outcome.run.is_success:
        return after(alarms, {}, [f"run failure: {outcome.subject}"], now)
    alarm = alarm_of(outcome, instance)
    return after(alarms, {alarm.key: alarm}, [], now)


def _look(alarms: dict[str, Open], look: Look, policy: Policy, now: float) -> dict[str, Open]:
    """What is so now at the servers; where they do not answer, only that."""
    try:
        lags, short = look()
    except ReplicationError as error:
        title, advice = f"the lag cannot be told: {error}", "hive-repl doctor says what to change"
        alarm = Alarm("unreachable", "source or target", title, advice)
        return after(alarms, {alarm.key: alarm}, [], now)
    present = {alarm.key: alarm for alarm in conditions(lags, short, policy)}
    ended = [key for key, one in alarms.items() if one.alarm.kind != "run failure" and told_of(key, lags)]
    return after(alarms, present, ended, now)


def _tell(context: dg.SensorEvaluationContext, policy: str, alarms: dict[str, Open], channel: Channel) -> dict[str, Open]:
    news = list(to_tell(alarms, channel.name))
    if not news:
        return alarms
    try:
        channel.send(notice(policy, news, os.environ.get(DAGSTER_URL, "")))
    except NotDelivered as error:
        context.log.warning("alarms wait to be told: %s", error)
        return alarms
    return told(alarms, channel.name)


def notice(policy: str, news: Sequence[tuple[Open, State]], base: str) -> Notice:
    """What operators are told of alarms.

    Args:
        policy: name of the policy.
        news: the alarms, and what they do; not empty.
        base: address of Dagster's webserver, or "".
    """
    first, state = news[0]
    numbers = ", ".join(filter(None, (_number(news, "begins"), _number(news, "ends"))))
    subject = f"{state}: {first.alarm.title}" if len(news) == 1 else numbers
    return Notice(
        " ".join(f"[hive-repl {policy}] {subject}".split())[:200],
        "\n\n".join(_text(one, state, base) for one, state in news) + "\n",
        {"policy": policy, "alarms": [_data(one, state, base) for one, state in news]},
    )


def _number(news: Sequence[tuple[Open, State]], state: State) -> str:
    number = sum(one == state for _, one in news)
    return f"{count(number, 'alarm')} {state if number == 1 else state[:-1]}" if number else ""


def _text(one: Open, state: State, base: str) -> str:
    alarm = one.alarm
    if state == "ends":
        return f"ENDS after {duration((one.ended or one.since) - one.since)}: {alarm.title}"
    link = [f"In Dagster: {base.rstrip('/')}{alarm.path}"] if alarm.path else []
    return "\n".join([f"BEGINS: {alarm.title}", f"What to do: {alarm.advice}", *link])


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
