"""What ends the alarms of failed runs without another run (pure).

What is mended without a run, as by the command line, or is gone, has no next run: its alarm ends when nothing is left to do, as
far as the replicas' states say so: a table that was held is not held any more. They do not say whether one was repaired that was
not held.

Jobs that an operator starts and watches come once, and are often repeated by the command line. The alarm of

- ``pause_<db>`` ends once the database is stopped, and that of ``resume_<db>`` once it is not;
- ``plan_<db>`` ends as soon as the servers answer, since a plan changes nothing: a failed one leaves nothing half done, and what
  made it fail has alarms of its own;
- ``failover_<db>`` ends once no failover is under way: its steps were completed, or taken back, or nothing was begun.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Final

from hive_replication.failover import Phase
from hive_replication.lag import Lag
from hive_replication.policy import Policy
from repl_assets.catalog.keys import Names
from repl_assets.jobs.drift import find_drift_job_name
from repl_assets.jobs.rebuild import LANES_FAILED, rebuild_job_name
from repl_assets.jobs.repair import repair_job_name
from repl_assets.steps.repair import NOT_REPAIRED
from sensors.alarms.alarm import Alarm, Open
from sensors.alarms.failed_runs import Part, jobs_of, shown_part

_RETRIED = 600.0  # seconds in which a failed window is tried again: until then its next run says how it is
_WATCHED = ("plan", "pause", "resume", "failover")  # jobs that an operator starts and watches
#: Phases of a failover in which a step is left to do.
_UNDER_WAY: Final[frozenset[Phase]] = frozenset({"started", "ready", "opened", "to be reversed"})


def of_no_database(alarms: Mapping[str, Open], policy: Policy) -> list[str]:
    """Keys of the alarms of runs of databases that the policy no longer has: no run of them will come."""
    databases = {"", *policy.databases}
    return [key for key, one in alarms.items() if one.alarm.kind == "run failure" and one.alarm.database not in databases]


def to_repair(alarms: Iterable[Open], now: float) -> dict[str, set[str]]:
    """What runs were to repair whose alarms are open for long enough for :func:`mended`, by source database.

    Tables, and partitions as ``table/ds=1``.
    """
    found: defaultdict[str, set[str]] = defaultdict(set)
    for one in alarms:
        if one.alarm.tables and one.ended is None and one.since <= now - _RETRIED:
            found[one.alarm.database].update(one.alarm.tables, map(shown_part, _named(one.alarm)))
    return found


def failovers(alarms: Iterable[Open], names: Names, now: float) -> list[str]:
    """Source databases with an alarm of a failover's job that is open for long enough for :func:`mended`."""
    old = [one.alarm for one in alarms if one.ended is None and one.since <= now - _RETRIED]
    return sorted({one.database for one in old if [one.about] == _subjects(names, one.database, "failover")})


def with_held(alarms: Mapping[str, Open], lags: Sequence[Lag]) -> dict[str, Open]:
    """The alarms with a note of those whose tables are held now: their release mends what their runs could not (pure).

    Args:
        alarms: by key.
        lags: of all databases.
    """
    held = {one.database: {name for name, _ in one.held} for one in lags}

    def noted(one: Open) -> Open:
        alarm, tables = one.alarm, {*one.alarm.tables}
        return replace(one, held=True) if tables and tables <= held.get(alarm.database, set()) else one

    return {key: noted(one) for key, one in alarms.items()}


def mended(
    alarms: Mapping[str, Open],
    lags: Sequence[Lag],
    names: Names,
    looked: Mapping[str, float],
    dropped: Mapping[str, Collection[str]],
    phases: Mapping[str, Phase],
    now: float,
) -> list[str]:
    """Keys of the alarms of runs that left nothing to do by now, as the replicas are (pure).

    Args:
        alarms: by key.
        lags: of all databases.
        names: of the policy.
        looked: since when nothing was left to a run that looks for drift, by source database.
        dropped: what the source does not have of that of :func:`to_repair`.
        phases: how far the failovers of :func:`failovers` are, as far as that is known, by source database.
        now: seconds since the epoch.
    """
    since = {f"job {find_drift_job_name(names, name)}": begun for name, begun in looked.items()}
    since |= {subject: now for one in lags for subject in (*_done(one, names), *_watched(one, names, phases))}
    level = {f"job {rebuild_job_name(names, one.database)}" for one in lags if _is_level(one)}
    none_held = {subject for one in lags if one.applied is not None and not one.held for subject in _repairs(one, names)}

    def ends(one: Open) -> float:
        alarm = one.alarm
        lost = {*dropped.get(alarm.database, ())}
        gone = alarm.tables and all(lost & {part[0], shown_part(part)} for part in _named(alarm))
        of_held = one.held and NOT_REPAIRED in alarm.title
        by_release = alarm.about in none_held and (of_held or not alarm.tables)  # of no table: all that were held, or not known
        rebuilt = alarm.about in level and LANES_FAILED in alarm.title
        return now if gone or by_release or rebuilt else since.get(alarm.about, 0.0)

    failures = {key: one for key, one in alarms.items() if one.alarm.kind == "run failure"}
    return [key for key, one in failures.items() if one.since <= min(ends(one), now - _RETRIED)]


def _done(one: Lag, names: Names) -> Iterator[str]:
    """The purposes of runs that have nothing to do in a database; an operator who stopped it knows that its windows wait."""
    if _is_level(one) or one.stopped or not one.in_source:
        yield f"windows of {one.database}"
    if not one.in_source:
        yield from (*_repairs(one, names), f"job {find_drift_job_name(names, one.database)}")
        yield from _subjects(names, one.database, "rebuild", *_WATCHED)


def _watched(one: Lag, names: Names, phases: Mapping[str, Phase]) -> Iterator[str]:
    """The jobs that an operator watches, and that have nothing to do in a database, however that came about."""
    phase, hidden = phases.get(one.database), one.unreadable or one.hidden == "target" or bool(one.problem)
    left = {
        "plan": False,
        "pause": not one.stopped,
        "resume": bool(one.stopped) or hidden,  # of a state that cannot be read nobody knows that it is not paused
        "failover": phase is None or phase in _UNDER_WAY,
    }
    yield from _subjects(names, one.database, *(what for what in _WATCHED if not left[what]))


def _is_level(one: Lag) -> bool:
    return one.seconds_behind == 0 and one.complete and not (one.waiting or one.late or one.gap or one.changed)


def _subjects(names: Names, database: str, *jobs: str) -> list[str]:
    return [f"job {job}" for job in jobs_of(names, database, *jobs)]


def _repairs(one: Lag, names: Names) -> tuple[str, str]:
    return f"repairs in {one.database}", f"job {repair_job_name(names, one.database)}"


def _named(alarm: Alarm) -> list[Part]:
    """What is left to repair, as far as runs named it."""
    return [part for part in alarm.parts if part[0]] or [(table, "") for table in alarm.tables]
