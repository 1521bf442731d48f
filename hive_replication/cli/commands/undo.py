"""``undo``: brings a replica back to an earlier event."""

from __future__ import annotations

import shlex
from dataclasses import asdict
from typing import Annotated

import typer

from hive_replication.cli.arguments import DryRun
from hive_replication.cli.completion import replicas
from hive_replication.cli.progress import shown
from hive_replication.cli.settings import Config, Json, settings
from hive_replication.errors import BadRequest
from hive_replication.units import count

Name = Annotated[
    str, typer.Argument(metavar="DB[.TABLE]", help="Name on the target.", autocompletion=replicas, show_default=False)
]
To = Annotated[
    int | None,
    typer.Option("--to", metavar="EVID", min=0, max=10**18 - 1, help="Event id at which a load ended.", show_default=False),
]
Release = Annotated[bool, typer.Option("--release", help="Load later events again after an undo.", show_default=False)]


def undo(
    context: typer.Context,
    name: Name,
    to: To = None,
    release: Release = False,
    dry_run: DryRun = False,
    config: Config = None,
    json: Json = False,
) -> None:
    """Brings a replica back to the state it had at an event id, or releases it.

    It keeps that state until it is released, repaired or rebuilt. This is possible as long as retention keeps the old data.
    """
    from hive_replication import release as release_of
    from hive_replication import undo as undo_of

    if release == (to is not None):
        raise BadRequest("undo takes either --to with an event id, or --release")
    chosen = settings(context, config, json)
    connection = chosen.connect_target()
    if to is None:
        released = release_of(connection, name)
        again = (
            f"{name} loads later events again: Dagster's sensor with its next tick, else the next REPL LOAD from where it stands"
        )
        chosen.output.remark(again if released else f"{name} was not undone")
        chosen.output.data({"released": released})
        return
    with shown() as progress:
        done = undo_of(connection, name, to, dry_run=dry_run, progress=progress)
    rows = ((step.evid, step.kind, step.name) for step in done.steps)
    chosen.output.table(("event", "undone", "object"), rows, asdict(done) | {"dry_run": dry_run})
    what = ", ".join(f"{done.database}.{one}" for one in done.tables) or done.database
    chosen.output.remark(
        f"{what} {'would be' if dry_run else 'is'} back at event {to}, {count(done.loads, 'load')} undone; "
        f"later events wait for: hive-repl undo {shlex.quote(name)} --release"
    )
    chosen.output.remark(*map(str, done.repaired))
    if done.steps and connection.target.feeds(done.database):
        chosen.output.remark(
            "replicas of this one keep files that were appended here and are taken back: hive-repl verify finds them there, and "
            "hive-repl repair brings their tables"
        )
    left = dict.fromkeys(f"{step.kind} of {step.name}" for step in done.left)
    chosen.output.remark(*(f"not taken back: {one}" for one in left))
