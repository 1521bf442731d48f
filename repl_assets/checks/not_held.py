"""Held tables on their own pages: the check ``not_held`` of each table, and ``nothing_held`` of the database after repairs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import dagster as dg

from hive_replication.errors import ReplicationError
from hive_replication.health.advice import advice_on_held, why_left_held
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.markdown import link
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.keys import FILES_PROVEN, HELD_TAG, NOT_HELD, NOTHING_HELD, TAG_LENGTH, Names
from repl_assets.catalog.specs import Specs
from repl_assets.checks.examiner import Examiner
from repl_assets.checks.findings import (
    WHAT_TO_DO,
    EvaluationKey,
    Finding,
    Partitions,
    failed_tables,
    last_answers,
    last_failure,
)
from repl_assets.recording.metadata import markdown_table
from repl_assets.steps.engine import Engine
from repl_assets.typed import log_evaluation


def find_not_held(examiner: Examiner, table: str, partitions: Partitions) -> Finding:  # noqa: ARG001 (a table is held as a whole)
    """Whether an event of the table failed, and why."""
    target = examiner.policy.target_of(examiner.database)
    state = replica_state(examiner.connection.target.metastore.database(target))
    return held_finding(state, table, examiner.database, target)


def held_finding(state: ReplicaState, table: str, database: str, target: str) -> Finding:
    """Whether a table is held, why, and what to do about it.

    Args:
        state: of the target database.
        table: its name.
        database: its database at the source.
        target: the same on the target.
    """
    reason = state.held.get(table, "")
    if not reason:
        return Finding({"stands at": state.position(table)})
    return Finding(
        {"stands at": state.at.get(table, 0), "why": reason},
        differences=(f"{table} is held: {reason}",),
        passed=False,
        advice=advice_on_held(table, reason, database, target),
        mended=_is_mended(state, table, database, target),
    )


def held_advice(names: Names, database: str, target: str, held: Mapping[str, str]) -> dict[str, dg.MarkdownMetadataValue]:
    """Metadata: what to do about held tables, each with a link to the page on which *Materialize* repairs it; none if none is.

    Args:
        names: of the policy.
        database: source name.
        target: name of the replica.
        held: reasons by table, or by function.
    """
    state = ReplicaState(held=dict(held))

    def page(name: str) -> str:
        own = _is_mended(state, name, database, target)
        return link("repair", EvaluationKey.of(names, database, name, NOT_HELD).page()) if own else ""

    rows = ((name, advice_on_held(name, why, database, target), page(name)) for name, why in sorted(held.items()))
    return {WHAT_TO_DO: markdown_table(("table", "what to do", ""), rows, len(held))} if held else {}


def _is_mended(state: ReplicaState, name: str, database: str, target: str) -> bool:
    """Whether a repair ends a hold: no undo is to be ended first, nor the policy or the source to be changed."""
    return not (state.why_left_out(name) or why_left_held(state, name, database, target))


def record_held(
    context: dg.OpExecutionContext, engine: Engine, specs: Specs, database: CatalogDatabase, *, repaired: bool
) -> None:
    """Logs of each held table that it is, and of each table that was held that it is no more; tags the run with held ones.

    What Dagster shows already is not logged again: each load would log all tables that an account may not read.

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
        context.instance.add_run_tags(context.run_id, {HELD_TAG: shown[:TAG_LENGTH]})
    for answer in held_answers(context.instance, specs, database, state, repaired=repaired):
        log_evaluation(context, answer)


def held_answers(
    instance: dg.DagsterInstance, specs: Specs, database: CatalogDatabase, state: ReplicaState, *, repaired: bool
) -> Iterator[dg.AssetCheckEvaluation]:
    """The answers of checks about held tables that differ from what Dagster shows.

    Args:
        instance: Dagster's.
        specs: of the policy.
        database: whose tables.
        state: of its replica now.
        repaired: whether a repair has changed the database: the checks of the whole database are answered again then.
    """
    names, run, target = specs.names, specs.policy.checks.run, specs.policy.target_of(database.name)
    if NOT_HELD in run:
        known = {one.name for one in database.tables}
        failed = failed_tables(instance, names, database.name, NOT_HELD, known, gone=True)
        tables = sorted(table for table in {*state.held, *failed} if database.overflow or table in known)
        before = last_answers(instance, names, database.name, NOT_HELD, tables)
        for table in tables:
            key = EvaluationKey.of(names, database.name, table, NOT_HELD)
            found = held_finding(state, table, database.name, target).evaluation(key)
            last = before.get(table)
            if last is None or (last.passed, last.description) != (found.passed, found.description):
                yield found
    key = EvaluationKey.of_database(names, database.name, NOTHING_HELD)
    if repaired and NOTHING_HELD in run and last_failure(instance, key) is not None:
        yield _nothing_held(names, database.name, target, state).evaluation(key)
    key = EvaluationKey.of_database(names, database.name, FILES_PROVEN)
    if repaired and not state.held and FILES_PROVEN in run and last_failure(instance, key) is not None:
        # What a load could not prove belongs to tables that it held, and none is held any more.
        yield Finding({"not proven": 0}).evaluation(key)


def _nothing_held(names: Names, database: str, target: str, state: ReplicaState) -> Finding:
    held = sorted(state.held.items())
    table = {"held": markdown_table(("table", "why"), held, len(held))} if held else {}
    told = tuple(f"{name} is held: {why}" for name, why in held)
    return Finding(table | held_advice(names, database, target, state.held), differences=told, passed=not held)
