"""``history``: what happened to a replica, and who did it."""

from __future__ import annotations

from typing import Annotated

import typer

from hive_replication.cli import result_fields
from hive_replication.cli.arguments import SourceDatabase
from hive_replication.cli.settings import Config, Json, settings
from hive_replication.units import time_figure

Last = Annotated[int, typer.Option("--last", metavar="N", min=1, help="How many entries.")]


def history(context: typer.Context, name: SourceDatabase, last: Last = 50, config: Config = None, json: Json = False) -> None:
    """Shows the loads of a database and what operators did to it, the newest first.

    Windows, repairs, recoveries, undo, pauses, approvals: when, by whom (user and host, or the run of Dagster), and how they
    ended.
    """
    from hive_replication import history as history_of

    chosen = settings(context, config, json)
    found = history_of(chosen.connect_target(name), name, last=last)
    rows = (
        (
            time_figure(one.record.time),
            one.record.action,
            one.record.by,
            one.record.window,
            one.record.to_evid,
            one.record.outcome,
            result_fields.history_line(one.record, undone=one.undone),
        )
        for one in found
    )
    data = {"database": name, "entries": [result_fields.history_data(one.record, undone=one.undone) for one in found]}
    chosen.output.table(("when", "what", "by", "window", "stands at", "outcome", "details"), rows, data)
