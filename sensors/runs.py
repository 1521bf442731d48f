"""Run records as the sensor needs them: what works on a database now, and its last runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import cast

import dagster as dg
from dagster._core.storage.dagster_run import NOT_FINISHED_STATUSES, RunRecord
from dagster._core.storage.tags import PARTITION_NAME_TAG

from repl_assets.keys import ATTEMPT_TAG, DATABASE_TAG, KIND_TAG, POLICY_TAG, Names, Stage, Window
from repl_assets.worker import PROCESS_TAG, is_gone
from sensors.decision import Kind, PastRun

_LAST_RUNS = 100


@dataclass(frozen=True)
class RunHistory:
    """What runs say of each database of a policy.

    Args:
        busy: id of the run that works on a database.
        last: last window by database.
        last_catch_up: last catch-up run by database.
        last_plan: last run that planned a window, by database.
    """

    busy: dict[str, str] = field(default_factory=dict[str, str])
    last: dict[str, PastRun] = field(default_factory=dict[str, PastRun])
    last_catch_up: dict[str, PastRun] = field(default_factory=dict[str, PastRun])
    last_plan: dict[str, PastRun] = field(default_factory=dict[str, PastRun])


def run_history(instance: dg.DagsterInstance, names: Names, policy_databases: Iterable[str]) -> RunHistory:
    """Reads the policy's runs: those under way, whoever started them, and the last hundred that the sensor asked for.

    A run whose process is gone is reported as failed first.
    """
    history = RunHistory()
    stages: tuple[Stage, ...] = ("load", "plan")
    loads = {names.database(database, stage): database for database in policy_databases for stage in stages}
    for record in instance.get_run_records(dg.RunsFilter(statuses=NOT_FINISHED_STATUSES)):
        run = record.dagster_run
        databases = list(_databases(run, loads, names))
        if databases and is_gone(run.tags.get(PROCESS_TAG, "")):
            report_gone(instance, run)
            continue
        history.busy.update((database, run.run_id) for database in databases)
    for record in instance.get_run_records(dg.RunsFilter(tags={POLICY_TAG: names.policy}), limit=_LAST_RUNS):
        run = record.dagster_run
        past = _past(record) if run.is_finished else None
        if past is not None:
            known = {"window": history.last, "catch-up": history.last_catch_up, "plan": history.last_plan}[past.kind]
            for database in _databases(run, loads, names):
                known.setdefault(database, past)
    return history


def report_gone(instance: dg.DagsterInstance, run: dg.DagsterRun) -> None:
    """Reports a run whose process is gone as failed."""
    now = instance.get_run_by_id(run.run_id)
    if now and not now.is_finished:  # it may have ended well since it was read
        instance.report_run_failed(now, "the process of this run is gone")


def ended(record: RunRecord) -> float:
    """When a finished run ended, seconds since the epoch."""
    return record.end_time or record.update_timestamp.timestamp()


def _databases(run: dg.DagsterRun, loads: dict[dg.AssetKey, str], names: Names) -> Iterator[str]:
    if run.tags.get(POLICY_TAG) == names.policy and run.tags.get(DATABASE_TAG) in loads.values():
        yield run.tags[DATABASE_TAG]
    yield from (loads[key] for key in run.asset_selection or () if key in loads)


def _past(record: RunRecord) -> PastRun | None:
    run = record.dagster_run
    try:
        window = Window.parse(run.tags[PARTITION_NAME_TAG])
        kind = cast("Kind", run.tags[KIND_TAG])
        attempt = int(run.tags[ATTEMPT_TAG])
    except (KeyError, ValueError):
        return None
    return PastRun(run.run_id, kind, window, attempt, ended(record))
