"""``pause`` and ``resume``: whether sensors ask for loads of a database."""

from __future__ import annotations

from typing import Annotated

import typer

from hive_replication.cli.arguments import SourceDatabase
from hive_replication.cli.settings import Config, Json, settings

Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="Shown to everybody until it is resumed.", show_default=False)]


def pause(context: typer.Context, name: SourceDatabase, why: Why = "", config: Config = None, json: Json = False) -> None:
    """Stops the sensors from loading a database, in every Dagster instance.

    A load that runs is completed, and loads by hand remain possible.
    """
    from hive_replication import pause as pause_database

    chosen = settings(context, config, json)
    done = pause_database(chosen.connect_target(name), name, why)
    chosen.output.remark(f"{name} is paused; to continue: hive-repl resume {name}" if done else f"{name} was paused already")
    chosen.output.data({"paused": True, "changed": done})


def resume(context: typer.Context, name: SourceDatabase, config: Config = None, json: Json = False) -> None:
    """Lets the sensors load a paused database again."""
    from hive_replication import resume as resume_database

    chosen = settings(context, config, json)
    done = resume_database(chosen.connect_target(name), name)
    chosen.output.remark(f"{name} continues with the sensor's next tick" if done else f"{name} was not paused")
    chosen.output.data({"paused": False, "changed": done})
