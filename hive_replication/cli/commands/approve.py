"""``approve``: allows the load of a planned window."""

from __future__ import annotations

from typing import Annotated

import typer

from hive_replication.cli.arguments import SourceDatabase
from hive_replication.cli.settings import Config, Json, settings
from hive_replication.errors import BadRequest
from hive_replication.units import iso, time_figure

Window = Annotated[str | None, typer.Argument(metavar="[WINDOW]", help="e.g. 170-1400 or bootstrap-170", show_default=False)]


def approve(
    context: typer.Context, name: SourceDatabase, window: Window = None, config: Config = None, json: Json = False
) -> None:
    """Approves the window that was planned for a database, or shows which one waits.

    For policies with approval: nothing of a window is loaded before. The sensor starts its load with the next tick. To reject a
    window, pause the database.
    """
    from hive_replication import approve as approve_window
    from hive_replication.plans.approval import Approvals

    chosen = settings(context, config, json)
    policy = chosen.policy()
    if not policy.approval:
        raise BadRequest("windows are loaded without approval: the policy does not set approval")
    if window is not None:
        found = approve_window(chosen.connect_target(name), name, window)
        chosen.output.remark(f"{window} of {name} is approved: {found.summary}")
        chosen.output.data({"approved": window})
        return
    policy.require_database(name.lower())
    waits = Approvals.of(policy).waiting(policy.target_of(name.lower()))
    rows = [(waits.window, time_figure(waits.planned), waits.summary, waits.directory, waits.approved)] if waits else []
    data = [
        {"window": one.window, "planned": iso(one.planned), "plan": one.summary, "dump": one.directory, "approved": one.approved}
        for one in [waits]
        if one
    ]
    chosen.output.table(("window", "planned", "plan", "dump", "approved"), rows, data)
