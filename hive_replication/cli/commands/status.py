"""``status``: one page on the replicas of a policy, as ``health/policy_status.py`` finds them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any

import typer

from hive_replication.cli.arguments import database_name
from hive_replication.cli.completion import databases
from hive_replication.cli.result_fields import NO_DATABASES, history_data, iso_or_none
from hive_replication.cli.settings import Config, Json, settings
from hive_replication.units import count_figure, duration_figure, time_figure

if TYPE_CHECKING:
    from hive_replication import DatabaseStatus, PolicyStatus

Name = Annotated[
    str | None,
    typer.Argument(
        metavar="[DB]",
        help="Name on the source; all of the policy without one.",
        autocompletion=databases,
        callback=database_name,
        show_default=False,
    ),
]

_COLUMNS = ("database", "on target", "state", "behind", "events waiting", "last load", "window", "by", "what to do")


def status(context: typer.Context, name: Name = None, config: Config = None, json: Json = False) -> None:
    """Shows the state of each replica, and what to do.

    How far it is behind, its last load, tables that are held and why, pauses, what the policy leaves out, and open alarms.
    Both sides are asked at the same time; if one does not answer within seconds, the page has what the other one says.

    Exit code 1 if a side does not answer.
    """
    from hive_replication import policy_status

    chosen = settings(context, config, json)
    found = policy_status(chosen.policy(), name)
    output = chosen.output
    output.table(_COLUMNS, map(_cells, found.databases), _data(found))
    if not chosen.json:
        for title, columns, rows in _parts(found):
            if output.terminal:
                print(f"\n{title}")
            output.table(columns, rows, None)
    if not found.databases:
        output.remark(NO_DATABASES)
    output.remark(*(f"the {side} does not answer: {why}" for side, why in found.problems.items()))
    raise typer.Exit(1 if found.problems else 0)


def _cells(one: DatabaseStatus) -> tuple[object, ...]:
    lag, load = one.lag, one.last_load
    last = (time_figure(load.time), load.window, load.by) if load else (None, None, None)
    behind = duration_figure(lag.seconds_behind), count_figure(lag.waiting)
    state = f"paused {one.paused}" if one.condition == "paused" else one.condition
    return (one.database, one.target_database, state, *behind, *last, one.advice)


def _parts(found: PolicyStatus) -> Iterator[tuple[str, tuple[str, ...], list[tuple[object, ...]]]]:
    """Tables below the first one; those without rows are left out."""
    roles: list[tuple[object, ...]] = [
        (one.database, one.role.direction, one.role.role, one.role.readiness) for one in found.databases if one.role
    ]
    if roles:
        yield "Directions", ("database", "direction", "role", "failover"), roles
    held: list[tuple[object, ...]] = [
        (f"{one.target_database}.{table.table}", table.after, time_figure(table.since), table.attempts or None,
         time_figure(table.next_attempt), table.reason, table.advice)
        for one in found.databases
        for table in one.held
    ]  # fmt: skip
    if held:
        columns = ("table", "stands at", "held since", "attempts", "next attempt", "why", "what to do")
        yield "Held tables", columns, held
    left: list[tuple[object, ...]] = [
        (one.database, "not replicated", ", ".join(one.excluded)) for one in found.databases if one.excluded
    ]
    left += [(name, why, "all") for name, why in found.left_out.items()]
    left += [
        (one.database, "replicated before, not any more", ", ".join(one.unfollowed)) for one in found.databases if one.unfollowed
    ]
    if left:
        yield "Left out by the policy", ("database", "", "tables"), left
    alarms: list[tuple[object, ...]] = [
        (alarm.kind, alarm.title, alarm.advice) for alarm in found.alarms if alarm.kind != "held table"
    ]
    if alarms:
        yield "Alarms", ("alarm", "what", "what to do"), alarms


def _data(found: PolicyStatus) -> dict[str, Any]:
    return {
        "policy": found.policy,
        "databases": [_database(one) for one in found.databases],
        "alarms": [asdict(alarm) for alarm in found.alarms],
        "problems": dict(found.problems),
        "left_out": dict(found.left_out),
    }


def _database(one: DatabaseStatus) -> dict[str, Any]:
    lag = one.lag
    return {
        "database": one.database,
        "target_database": one.target_database,
        "condition": one.condition,
        "advice": one.advice,
        "applied": lag.applied,
        "current": lag.current,
        "seconds_behind": lag.seconds_behind,
        "events_waiting": lag.waiting,
        "bytes_waiting": lag.bytes_waiting,
        "gap": lag.gap,
        "problem": lag.problem,
        "paused": one.paused,
        "undone": one.undone,
        "held": [
            {**asdict(table), "since": iso_or_none(table.since), "next_attempt": iso_or_none(table.next_attempt)}
            for table in one.held
        ],
        "excluded": list(one.excluded),
        "unfollowed": list(one.unfollowed),
        "role": asdict(one.role) if one.role else None,
        "last_load": history_data(one.last_load) if one.last_load else None,
    }
