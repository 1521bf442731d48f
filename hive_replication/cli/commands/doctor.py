"""``doctor``: whether replication can work here, and what to change."""

from __future__ import annotations

from dataclasses import asdict

import typer

from hive_replication.cli.settings import Config, Json, settings


def doctor(context: typer.Context, config: Config = None, json: Json = False) -> None:
    """Checks both sides and says what to change.

    Settings, permissions, clocks and space.

    Exit code 1 where replication cannot work so; warnings do not count.
    """
    from hive_replication.doctor import examine

    chosen = settings(context, config, json)
    found = list(examine(chosen.connect()))
    failed = any(one.verdict == "error" for one in found)
    # What to change stands below what was found: side by side, both break within the names of settings.
    rows = ((one.side, one.check, one.verdict, "\n".join(filter(None, (one.found, one.advice)))) for one in found)
    data = {"working": not failed, "findings": [asdict(one) for one in found]}
    chosen.output.table(("side", "check", "", "found, what to do"), rows, data)
    raise typer.Exit(1 if failed else 0)
