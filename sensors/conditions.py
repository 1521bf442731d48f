"""What is wrong with replicas, as alarms (pure): lag over the policy's target, held tables, gaps, retention that runs out."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from hive_replication.doctor import Finding
from hive_replication.lag import Lag
from hive_replication.load.state import UNDONE_REASON
from hive_replication.policy import Policy
from hive_replication.units import count, duration
from repl_assets.keys import Names
from repl_assets.reporting import asset_url
from sensors.alarm import Alarm

_MOST_HELD = 20  # of a database, that have alarms of their own
_REASON = 300  # characters


def conditions(lags: Sequence[Lag], short: Iterable[Finding], policy: Policy) -> Iterator[Alarm]:
    """The alarms of one look.

    Args:
        lags: of all databases.
        short: what the doctor says of times for which the source keeps things.
        policy: the policy.
    """
    names = Names.of(policy)
    for one in lags:
        yield from _database(one, policy.lag_target_seconds, names)
    for finding in short:
        yield Alarm("low retention", finding.check, f"{finding.check} is short: {finding.found}", finding.advice)


def told_of(alarm_key: str, lags: Iterable[Lag]) -> bool:
    """Whether lags tell if an alarm still holds; not of a lag where there is a gap, or where the log was not read whole."""
    unknown = {f"lag: {one.database}" for one in lags if one.seconds_behind is None and one.applied is not None}
    return alarm_key not in unknown


def _database(one: Lag, target: float, names: Names) -> Iterator[Alarm]:
    path = asset_url(names.database(one.database, "load"))
    if one.gap:
        title = f"{one.database} cannot go on with its source's events: {one.gap[:_REASON]}"
        advice = "the next window compares the database with its source and brings what differs; without Dagster: "
        yield Alarm("gap", one.database, title, f"{advice}hive-repl recover {one.database}", path)
    behind = one.seconds_behind or 0.0
    if behind > target and not one.stopped:
        waiting = count(one.waiting or 0, "event")
        title = f"{one.database} is {duration(behind)} behind (target {duration(target)}), {waiting} waiting"
        advice = "look at its last runs and at the sensor notification_log; hive-repl lag --tables shows where it is"
        yield Alarm("lag", one.database, title, advice, path)
    yield from _held(one, names, path)


def _held(one: Lag, names: Names, path: str) -> Iterator[Alarm]:
    """Held tables; without those that an operator took back."""
    held = [(table, reason[:_REASON]) for table, reason in one.held if not reason.startswith(UNDONE_REASON)]
    if len(held) > _MOST_HELD:
        advice = f"remove the causes, which hive-repl lag names; first {held[0][0]}: {held[0][1]}"
        yield Alarm("held table", one.database, f"{len(held)} tables of {one.database} are held", advice, path)
        return
    for table, reason in held:
        title = f"{one.database}.{table} is held: {reason}"
        advice = "remove the cause and wait for the next catch-up run, or materialize the table, which ends the hold"
        yield Alarm("held table", f"{one.database}.{table}", title, advice, asset_url(names.table(one.database, table, "load")))
