"""``alarms``: what needs attention now, as ``health/alarms.py`` finds it."""

from __future__ import annotations

from dataclasses import asdict

import typer

from hive_replication.cli.settings import Config, Json, settings


def alarms(context: typer.Context, config: Config = None, json: Json = False) -> None:
    """Shows what needs attention now, and what to do.

    Servers that do not answer, lag above the policy's target, held tables, gaps, replicas that are gone, and lag that comes close
    to the time for which the source keeps events. Failed runs and checks are Dagster's, and shown there.

    Exit code 1 if there are any.
    """
    from hive_replication import alarms as open_alarms

    chosen = settings(context, config, json)
    found = open_alarms(chosen.policy())
    rows = ((alarm.kind, alarm.about, alarm.title, alarm.advice) for alarm in found)
    chosen.output.table(("alarm", "about", "what", "what to do"), rows, {"alarms": [asdict(alarm) for alarm in found]})
    if not found:
        chosen.output.remark("no alarms")
    raise typer.Exit(1 if found else 0)
