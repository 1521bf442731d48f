"""How far the job ``record`` has come, kept in Dagster's storage: the next run goes on there, and looks nothing up twice."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import dagster as dg
from pydantic import TypeAdapter, ValidationError

from repl_assets.catalog.keys import Names

#: A table, and a Hive partition of it or "" for itself: objects are looked up in this order.
Place = tuple[str, str]
START: Place = ("", "")


@dataclass(frozen=True, slots=True)
class Reached:
    """What is done of what a run's load left out, or of a compared database.

    Args:
        entries: that are done, of observations or of changed tables.
        place: the last object that is recorded of the entry after them.
        overflow: whether the database of that entry was in overflow, where partitions are no places.
        runs: of a compared database, whose loads the comparison was for.
        tables: of a compared database, those that have changed; "" for all.
    """

    entries: int = 0
    place: Place = START
    overflow: bool = False
    runs: tuple[str, ...] = ()
    tables: tuple[str, ...] = ()


_KEPT = TypeAdapter(dict[str, Reached])


def read_reached(instance: dg.DagsterInstance, names: Names) -> dict[str, Reached]:
    """By run id, or name of a compared database; empty where nothing is kept that can be read."""
    text = instance.daemon_cursor_storage.get_cursor_values({_key(names)}).get(_key(names))
    try:
        return _KEPT.validate_json(text or "")
    except ValidationError:
        return {}


def keep_reached(instance: dg.DagsterInstance, names: Names, reached: Mapping[str, Reached]) -> None:
    """Keeps it for the next run."""
    instance.daemon_cursor_storage.set_cursor_values({_key(names): _KEPT.dump_json(dict(reached)).decode()})


def _key(names: Names) -> str:
    return f"hive_replication/recorded/{names.policy}"
