"""The page of a policy, the asset ``status``: of each database how it stands and what to do, what is held, and open alarms.

The sensor ``alarms`` observes it with what it has read for the alarms, so that no server is asked for it. An observation costs
Dagster some 15 ms and, as measured, 4 kB where ten databases are behind, 37 kB where a hundred or more are, and up to some 85 kB
where their tables are held for long reasons, too; SQLite keeps it twice. There is one a minute at most while states change, one
in five minutes while figures do, and one an hour otherwise; retention deletes old ones.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dagster as dg
from pydantic import TypeAdapter, ValidationError

from hive_replication.health import Condition, condition_by_lag, held_by_lag, what_to_do
from hive_replication.lag import HALF_REVERSED, Lag
from hive_replication.markdown import link
from hive_replication.policy import Policy
from hive_replication.policy.warehouse import pair_hash
from hive_replication.units import count, count_figure, duration_figure, unbroken, when
from repl_assets.catalog.keys import Names
from repl_assets.checks.no_alarms import OpenAlarm, alarms_table
from repl_assets.recording.metadata import asset_url, markdown_table

_FIGURES, _AT_REST = 300.0, 3600.0  # seconds between two observations: where only figures change, and where nothing does
_MOST_DATABASES = 100  # in the table; those that need attention first
_LONGEST = 300  # characters of a reason or advice
_STOPPED: tuple[Condition, ...] = ("paused", "undone", "failed over")  # by an operator
_COLUMNS = ("database", "on target", "state", "behind", "events waiting", "last load", "window", "what to do")


@dataclass(frozen=True, slots=True)
class Seen:
    """What a tick knows of the replicas.

    Args:
        lags: of all databases; none where a server does not answer.
        problem: why they are not known, or "".
    """

    lags: tuple[Lag, ...] = ()
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Standing:
    """How a database stands.

    Args:
        database: source name.
        target: its name on the target.
        condition: as ``hive-repl status`` calls it.
        lag: None where a server does not answer.
    """

    database: str
    target: str
    condition: Condition
    lag: Lag | None = None

    @property
    def needs_attention(self) -> bool:
        """Whether it is neither up to date, nor stopped by an operator, nor gone from the source."""
        return self.condition not in ("up to date", "not at the source") and not self.is_stopped

    @property
    def is_stopped(self) -> bool:
        """Whether an operator stopped it, and meant that to last: a failback that was stopped half-way is to be completed."""
        return self.condition in _STOPPED and not (self.lag and self.lag.stopped == HALF_REVERSED)

    @property
    def order(self) -> tuple[int, str]:
        """Those that need attention come first, those that are up to date last."""
        return (0 if self.needs_attention else 2 if self.condition == "up to date" else 1), self.database

    @property
    def told(self) -> tuple[object, ...]:
        """What is shown at once when it changes."""
        lag = self.lag
        return (self.database, self.condition, *((lag.stopped, lag.gap, lag.changed, lag.held) if lag else ()))


@dataclass(frozen=True, slots=True)
class Shown:
    """The last observation.

    Args:
        time: when, seconds since the epoch.
        state: digest of what is shown at once when it changes.
        page: digest of all that was shown.
    """

    time: float
    state: str
    page: str


_SHOWN = TypeAdapter(Shown)


def show(instance: dg.DagsterInstance, policy: Policy, seen: Seen, alarms: Sequence[OpenAlarm], now: float) -> None:
    """Observes the page if it is due.

    Args:
        instance: Dagster's.
        policy: the policy.
        seen: of the replicas.
        alarms: that are open.
        now: seconds since the epoch.
    """
    names, last = Names.of(policy), _last(instance, policy)
    standings = sorted(_standings(policy, seen), key=lambda one: one.order)
    state = _digest([seen.problem, [one.told for one in standings], alarms])
    changed, since = last is None or last.state != state, now - last.time if last else 0.0
    if not changed and 0 <= since < _FIGURES:
        return
    metadata = _page(instance, policy, seen, standings, alarms)
    page = _digest(sorted((name, str(getattr(value, "value", value))) for name, value in metadata.items()))
    if not changed and last and last.page == page and 0 <= since < _AT_REST:
        return
    attention = sum(one.needs_attention for one in standings)
    said = f"{attention:,} of {count(len(standings), 'database')} to look at, {count(len(alarms), 'alarm')}"
    instance.report_runless_asset_event(dg.AssetObservation(names.status, description=said, metadata=metadata))
    kept = _SHOWN.dump_json(Shown(now, state, page)).decode()
    instance.daemon_cursor_storage.set_cursor_values({_key(policy): kept})


def _standings(policy: Policy, seen: Seen) -> Iterator[Standing]:
    for one in seen.lags:
        yield Standing(one.database, one.target_database, condition_by_lag(one, policy.lag_target_seconds), one)
    for database in policy.databases if seen.problem else ():
        yield Standing(database, policy.target_of(database), "unknown")


def _page(
    instance: dg.DagsterInstance, policy: Policy, seen: Seen, standings: Sequence[Standing], alarms: Sequence[OpenAlarm]
) -> dict[str, Any]:
    names, loads = Names.of(policy), _last_loads(instance, policy)
    rows = (_row(names, one, loads) for one in standings)
    tables_held = sum(len(one.lag.held) for one in standings if one.lag)
    held = (  # made only as far as the table goes: advice on a table takes some 0.1 ms, and thousands may be held
        (f"{one.target}.{table.table}", _cut(table.reason), _cut(table.advice))
        for one in standings
        if one.lag
        for table in held_by_lag(one.lag)
    )
    shown = [replace(one, title=_cut(one.title), advice=_cut(one.advice)) for one in alarms]
    behind = [one.lag.seconds_behind for one in standings if one.lag and one.lag.seconds_behind is not None]
    return {
        "databases": markdown_table(_COLUMNS, rows, len(standings), _MOST_DATABASES),
        **({"not known": seen.problem} if seen.problem else {}),
        **({"held": markdown_table(("table", "why", "what to do"), held, tables_held)} if tables_held else {}),
        **({"alarms": alarms_table(shown)} if alarms else {}),
        "open alarms": len(alarms),
        **({} if seen.problem else _figures(standings, tables_held)),
        **({"behind (s)": round(max(behind), 3)} if behind else {}),
    }


def _figures(standings: Sequence[Standing], tables_held: int) -> dict[str, int]:
    """Figures that Dagster plots, where servers answer: else a plot would show that holds and pauses have ended."""
    return {
        "databases up to date": sum(one.condition == "up to date" for one in standings),
        "databases to look at": sum(one.needs_attention for one in standings),
        "databases stopped": sum(one.is_stopped for one in standings),
        "tables held": tables_held,
    }


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _row(names: Names, one: Standing, loads: Mapping[str, dg.EventLogEntry]) -> Sequence[object]:
    lag, load = one.lag, loads.get(one.database)
    waiting = f"{count_figure(lag.waiting)}{'' if lag.complete else ' so far'}" if lag else ""
    made = load.asset_materialization if load else None
    return (
        link(one.database, asset_url(names.database(one.database, "load"))),
        one.target,
        _cut(lag.stopped) if lag and lag.stopped else one.condition,
        unbroken(str(duration_figure(lag.seconds_behind))) if lag else "",
        waiting,
        link(when(load.timestamp), f"/runs/{load.run_id}") if load else "",
        (made.partition or "") if made else "",
        _cut(lag.cure or what_to_do(one.condition, lag)) if lag else "see the alarms",
    )


def _last_loads(instance: dg.DagsterInstance, policy: Policy) -> dict[str, dg.EventLogEntry]:
    """The last load of each database that a run of Dagster has made."""
    keys = {Names.of(policy).database(database, "load"): database for database in policy.databases}
    entries = [record.asset_entry for record in instance.get_asset_records([*keys])]
    return {keys[one.asset_key]: one.last_materialization for one in entries if one.last_materialization}


def _last(instance: dg.DagsterInstance, policy: Policy) -> Shown | None:
    text = instance.daemon_cursor_storage.get_cursor_values({_key(policy)}).get(_key(policy))
    try:
        return _SHOWN.validate_json(text or "")
    except ValidationError:
        return None


def _key(policy: Policy) -> str:
    """Of its pair, too: another code location may have a policy of this name."""
    return f"hive_replication/status/{policy.name}-{pair_hash(policy.pair)}"


def _digest(value: object) -> str:
    return hashlib.sha256(repr(value).encode()).hexdigest()[:16]
