"""``doctor``: whether replication can work here, and what to change."""

from __future__ import annotations

from dataclasses import asdict

import typer

from hive_replication.cli.progress import shown
from hive_replication.cli.settings import Config, Json, settings


def doctor(context: typer.Context, config: Config = None, json: Json = False) -> None:
    """Checks both sides and says what to change.

    Settings, permissions, clocks and space. Each side is examined on its own, and none is waited for long.

    Exit code 1 if replication cannot work with these settings; warnings do not count.
    """
    from hive_replication import doctor as examine

    chosen = settings(context, config, json)
    with shown() as progress:
        found = list(progress.count(examine(chosen.policy()), "things examined"))
    failed = any(one.verdict == "error" for one in found)
    data = {"working": not failed, "findings": [asdict(one) for one in found]}
    if chosen.output.terminal:  # what to change below what was found: side by side, both break within the names of settings
        rows = ((one.side, one.check, one.verdict, "\n".join(filter(None, (one.found, one.advice)))) for one in found)
        chosen.output.table(("side", "check", "", "found, what to do"), rows, data)
    else:
        rows = ((one.side, one.check, one.verdict, one.found, one.advice) for one in found)
        chosen.output.table(("side", "check", "", "found", "what to do"), rows, data)
    raise typer.Exit(1 if failed else 0)
