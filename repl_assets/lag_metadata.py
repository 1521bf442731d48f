"""Lags as metadata: numbers, which Dagster plots."""

from __future__ import annotations

from typing import Any

from hive_replication.lag import Lag, TableLag
from repl_assets.reporting import markdown_table


def figures(found: Lag | TableLag) -> dict[str, int | float]:
    """What is known of seconds, events and bytes: numbers, which Dagster plots."""
    known = {
        "seconds_behind": found.seconds_behind,
        "events_waiting": found.waiting,
        "bytes_waiting": found.bytes_waiting,
        "applied_event_id": found.applied,
    }
    return {name: value for name, value in known.items() if value is not None}


def database_metadata(found: Lag) -> dict[str, Any]:
    """All about a database's lag."""
    metadata: dict[str, Any] = {**figures(found), "source_event_id": found.current, "held_tables": len(found.held)}
    if found.held:
        metadata["held"] = markdown_table(("table", "why"), found.held, len(found.held))
    if found.gap:
        metadata["gap"] = found.gap
    return metadata
