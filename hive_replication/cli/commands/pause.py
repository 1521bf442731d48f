"""``pause`` and ``resume``: whether sensors ask for loads of a database."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from hive_replication.cli.completion import databases
from hive_replication.cli.settings import Config, Json, settings
from hive_replication.units import when

Name = Annotated[str, typer.Argument(metavar="DB", help="Name on the source.", autocompletion=databases, show_default=False)]
Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="Shown to everybody until it is resumed.", show_default=False)]


def pause(context: typer.Context, name: Name, why: Why = "", config: Config = None, json: Json = False) -> None:
    """Stops the sensors from loading a database, in every Dagster instance.

    A load under way goes on to its end, and loads by hand stay possible.
    """
    from hive_replication.load import pause as pausing
    from hive_replication.process import user

    chosen = settings(context, config, json)
    target = chosen.connect().target
    since = f"since {when(time.time())} by {user()}"
    done = pausing.pause(target, target.policy.target_of(name.lower()), f"{since}: {why}" if why else since)
    chosen.output.remark(f"{name} is paused; it goes on after: hive-repl resume {name}" if done else f"{name} was paused already")
    chosen.output.table((), (), {"paused": True, "changed": done})


def resume(context: typer.Context, name: Name, config: Config = None, json: Json = False) -> None:
    """Lets the sensors load a paused database again."""
    from hive_replication.load import pause as pausing

    chosen = settings(context, config, json)
    target = chosen.connect().target
    done = pausing.resume(target, target.policy.target_of(name.lower()))
    chosen.output.remark(f"{name} goes on with the sensor's next tick" if done else f"{name} was not paused")
    chosen.output.table((), (), {"paused": False, "changed": done})
