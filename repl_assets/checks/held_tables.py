"""Held tables on their own pages: the check ``not_held`` of each table, and ``nothing_held`` of the database after repairs."""

from __future__ import annotations

from collections.abc import Iterator

import dagster as dg

from hive_replication.errors import ReplicationError
from hive_replication.load.replica.state import ReplicaState
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import HELD_TAG, NOT_HELD, NOTHING_HELD, Names, partition_name
from repl_assets.catalog.specs import Specs
from repl_assets.checks.findings import EvaluationKey, Finding, last_failure
from repl_assets.dagster_private import AssetCheckExecutionRecordStatus as Status
from repl_assets.recording.metadata import markdown_table
from repl_assets.steps.engine import Engine

_TAG_LENGTH = 200  # characters; Dagster's storage on PostgreSQL indexes tags


def held_finding(state: ReplicaState, table: str) -> Finding:
    """Whether a table is held, and why."""
    reason = state.held.get(table, "")
    if not reason:
        return Finding({"stands at": state.position(table)})
    return Finding(
        {"stands at": state.at.get(table, 0), "why": reason}, differences=(f"{table} is held: {reason}",), passed=False
    )


def record_held(
    context: dg.OpExecutionContext, engine: Engine, specs: Specs, database: CatalogDatabase, *, repaired: bool
) -> None:
    """Logs for each held table that it is, and for each table that was held that it is no more; tags the run with held ones.

    Args:
        context: the step's.
        engine: connected.
        specs: of the policy.
        database: whose tables.
        repaired: whether a repair has changed the database: the check of the whole database is answered again then.
    """
    try:
        state = engine.state(database.name)
    except ReplicationError as error:
        engine.log.warning("held tables of %s are not recorded: %s", database.name, error)
        return
    if state.held:
        shown = ", ".join(sorted(state.held))
        context.instance.add_run_tags(context.run_id, {HELD_TAG: shown[:_TAG_LENGTH]})
    run = specs.policy.checks.run
    if NOT_HELD in run:
        for table in sorted({*state.held, *_failed(context.instance, specs.names, database)}):
            if database.overflow or table in {one.name for one in database.tables}:
                key = EvaluationKey.of(specs.names, database.name, table, NOT_HELD)
                context.log_event(held_finding(state, table).evaluation(key))  # type: ignore[arg-type] (it takes more than it says)
    key = EvaluationKey(dg.AssetCheckKey(specs.names.database(database.name, "load"), NOTHING_HELD))
    if repaired and NOTHING_HELD in run and last_failure(context.instance, key) is not None:
        context.log_event(_nothing_held(state).evaluation(key))  # type: ignore[arg-type] (it takes more than it says)


def _nothing_held(state: ReplicaState) -> Finding:
    held = sorted(state.held.items())
    table = {"held": markdown_table(("table", "why"), held, len(held))} if held else {}
    return Finding(table, differences=tuple(f"{name} is held: {why}" for name, why in held), passed=not held)


def _failed(instance: dg.DagsterInstance, names: Names, database: CatalogDatabase) -> Iterator[str]:
    """Tables whose last answer is that they are held."""
    storage = instance.event_log_storage
    if database.overflow:
        found = storage.get_asset_check_partition_info([dg.AssetCheckKey(names.tables(database.name), NOT_HELD)])
        failed = (one.partition_key for one in found if one.latest_execution_status == Status.FAILED)
        yield from (partition_name(key) for key in failed if key)
        return
    keys = {dg.AssetCheckKey(names.table(database.name, one.name, "load"), NOT_HELD): one.name for one in database.tables}
    latest = storage.get_latest_asset_check_execution_by_key(list(keys))
    yield from (keys[key] for key, record in latest.items() if record.status == Status.FAILED)
