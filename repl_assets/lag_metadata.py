"""Lags as metadata: numbers, which Dagster plots."""

from __future__ import annotations

from typing import Any

from hive_replication.lag import Lag, TableLag
from repl_assets.reporting import markdown_table


def figures(found: Lag | TableLag) -> dict[str, int | float]:
    """What is known of seconds, events and MB: numbers, which Dagster plots, with their units as in the metadata of loads."""
    known = {
        "behind (s)": None if found.seconds_behind is None else round(found.seconds_behind, 3),
        "events waiting": found.waiting,
        "waiting (MB)": None if found.bytes_waiting is None else round(found.bytes_waiting / 1e6, 6),
        "applied event id": found.applied,
    }
    return {name: value for name, value in known.items() if value is not None}


def database_metadata(found: Lag) -> dict[str, Any]:
    """All about a database's lag."""
    metadata: dict[str, Any] = {**figures(found), "source event id": found.current, "tables held": len(found.held)}
    if found.held:
        metadata["held"] = markdown_table(("table", "why"), found.held, len(found.held))
    if found.gap:
        metadata["gap"] = found.gap
    return metadata
