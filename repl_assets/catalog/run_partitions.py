"""The tables and partitions that a run is of, as its settings or tags name them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import dagster as dg

from hive_replication.metastore import names as hive
from repl_assets.catalog.keys import partition_name
from repl_assets.catalog.run_statuses import NOT_FINISHED_STATUSES
from repl_assets.dagster_private import ASSET_PARTITION_RANGE_END_TAG, ASSET_PARTITION_RANGE_START_TAG, PARTITION_NAME_TAG


def is_of_range(tags: Mapping[str, str]) -> bool:
    """Whether a run is of a range of partitions, as one that materializes all of them is."""
    return bool(tags.get(ASSET_PARTITION_RANGE_START_TAG) and tags.get(ASSET_PARTITION_RANGE_END_TAG))


def partitions_of(
    instance: dg.DagsterInstance, tags: Mapping[str, str], definition: dg.DynamicPartitionsDefinition
) -> tuple[str, ...]:
    """The names of a run's partitions: one, or those of its range.

    Args:
        instance: Dagster's.
        tags: of the run.
        definition: of the asset's partitions.

    Returns:
        The names; "" before them where these are all that there are, and alone where the run names none, or a range with an end
        that is no more.
    """
    if one := tags.get(PARTITION_NAME_TAG):
        return (partition_name(one),)
    if not is_of_range(tags):
        return ("",)
    first, last = tags[ASSET_PARTITION_RANGE_START_TAG], tags[ASSET_PARTITION_RANGE_END_TAG]
    known = list(instance.get_dynamic_partitions(str(definition.name)))
    if first not in known or last not in known:
        return ("",)
    found = tuple(map(partition_name, known[known.index(first) : known.index(last) + 1]))
    return ("", *found) if len(found) == len(known) else found


def surplus(instance: dg.DagsterInstance, name: str, most: int) -> list[str]:
    """The oldest keys of partitions beyond a number, but for those of runs under way or in the queue.

    Dagster looks these up again when a run starts and when a step ends, and fails it where they are no more.

    Args:
        instance: Dagster's.
        name: of the partitions' definition.
        most: how many keys are to stay.
    """
    known = instance.get_dynamic_partitions(name)
    old = known[: max(0, len(known) - most)]
    runs = instance.get_runs(dg.RunsFilter(statuses=NOT_FINISHED_STATUSES)) if old else ()
    kept: set[str] = set()
    for run in runs:
        one = run.tags.get(PARTITION_NAME_TAG, "")
        first, last = (run.tags.get(tag, one) for tag in (ASSET_PARTITION_RANGE_START_TAG, ASSET_PARTITION_RANGE_END_TAG))
        if first in known and last in known:
            kept.update(known[known.index(first) : known.index(last) + 1])
    return [key for key in old if key not in kept]


def spelled_by_hive(partition: str, keys: Sequence[str]) -> str:
    """The name that Hive gives a partition; "" where the one that a run has is not of a table with such keys.

    Args:
        partition: its name, as an operator may have written it.
        keys: names of the table's partition columns.
    """
    try:
        spec = hive.partition_spec(partition)
    except ValueError:
        return ""
    # Earlier versions noted a range as one.
    same = [*spec] == [key.lower() for key in keys] and "..." not in partition
    return hive.partition_name(keys, [*spec.values()]) if same else ""


def configured(run: dg.DagsterRun) -> tuple[tuple[str, str], ...]:
    """The table that the settings of a job name, with each of the partitions that they name, or "" for all of it."""
    parts: list[tuple[str, str]] = []
    for config in settings_of(run):
        if table := str(config.get("table", "")).strip().lower():
            parts += [(table, str(partition)) for partition in config.get("partitions") or [""]]
    return tuple(parts)


def settings_of(run: dg.DagsterRun) -> list[dict[str, Any]]:
    """The settings of a job's steps."""
    return [_settings(_settings(op).get("config")) for op in _settings(run.run_config.get("ops")).values()]


def _settings(value: Any) -> dict[str, Any]:
    return dict[str, Any](value or {})  # in the Launchpad they may be left empty
