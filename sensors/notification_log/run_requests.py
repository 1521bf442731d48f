"""The runs that a tick requests, in Dagster's terms: their assets and tags, and the partitions of their windows."""

from __future__ import annotations

import dagster as dg

from hive_replication.policy import Policy
from repl_assets.catalog.keys import (
    ATTEMPT_TAG,
    DATABASE_TAG,
    KIND_TAG,
    POLICY_TAG,
    TAG_LENGTH,
    Names,
    Stage,
    metastore_tags,
)
from repl_assets.catalog.run_partitions import surplus
from repl_assets.checks.load_checks import window_checks
from repl_assets.dagster_private import PRIORITY_TAG, delete_dynamic_partitions
from sensors.notification_log.runs import Decision, Kind, Start

_KEPT_WINDOWS = 2_000
_PRUNED_A_TICK = 50


def run_request(names: Names, start: Start, policy: Policy) -> dg.RunRequest:
    """The request of a run; its key is another one whenever the same window is to run again."""
    stages: dict[Kind, tuple[Stage, ...]] = {
        "plan": ("dump", "plan"),
        "window": ("load",) if policy.approval else ("dump", "load"),
        "catch-up": ("dump", "load"),
    }
    loads = [names.database(db, "load") for db in start.databases if "load" in stages[start.kind]]
    window = str(start.window)
    priority = str(start.priority) if start.priority else ""
    return dg.RunRequest(
        run_key=":".join(
            filter(None, (names.policy, start.kind, window, f"{start.attempt}:{start.after[:8]}", priority, start.databases[0]))
        ),
        partition_key=window,
        asset_selection=[names.database(db, stage) for db in start.databases for stage in stages[start.kind]],
        asset_check_keys=[key for load in loads for key in window_checks(policy.checks, load)],
        tags={POLICY_TAG: names.policy, KIND_TAG: start.kind, ATTEMPT_TAG: str(start.attempt)}
        | {DATABASE_TAG: ", ".join(start.databases)[:TAG_LENGTH]}
        | metastore_tags(policy)
        | ({PRIORITY_TAG: priority} if priority else {}),
    )


def new_keys(instance: dg.DagsterInstance, names: Names, decision: Decision) -> list[str]:
    """Partitions of the windows that Dagster does not have yet."""
    keys = dict.fromkeys(str(start.window) for start in decision.starts)
    return [key for key in keys if not instance.has_dynamic_partition(str(names.windows.name), key)]


def forget_old_windows(instance: dg.DagsterInstance, names: Names, policy: Policy) -> None:
    """Deletes the oldest windows, a few a tick: each run adds one, and Dagster supports at most 100,000 partitions.

    Those of unfinished runs stay, and those that may wait for approval: an operator approves a window by choosing it.
    """
    name = str(names.windows.name)
    if old := surplus(instance, name, _KEPT_WINDOWS):
        planned = _planned(instance, names, policy)
        delete_dynamic_partitions(instance, name, [key for key in old if key not in planned][:_PRUNED_A_TICK])


def _planned(instance: dg.DagsterInstance, names: Names, policy: Policy) -> set[str]:
    """The window that each database planned last: no other one of it waits for approval."""
    plans = [names.database(database, "plan") for database in policy.databases] if policy.approval else []
    found = (record.asset_entry.last_materialization for record in instance.get_asset_records(plans)) if plans else ()
    return {made.partition for event in found if event and (made := event.asset_materialization) and made.partition}
