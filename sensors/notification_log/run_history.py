"""Run records of a policy: the unfinished run of each database, and its last runs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import cast

import dagster as dg

from hive_replication.policy import Policy
from repl_assets.catalog.dead_runs import has_ended, report_dead
from repl_assets.catalog.keys import ATTEMPT_TAG, DATABASE_TAG, KIND_TAG, POLICY_TAG, Names, Stage, Window, metastore_tags
from repl_assets.catalog.run_statuses import FAILED_STATUSES, NOT_FINISHED_STATUSES, ended
from repl_assets.dagster_private import PARTITION_NAME_TAG
from repl_assets.jobs.rebuild import rebuild_job_name
from repl_assets.jobs.repair import repair_job_name
from sensors.notification_log.runs import Kind, PastRun

_LAST_RUNS = 100
_QUEUED = (dg.DagsterRunStatus.NOT_STARTED, dg.DagsterRunStatus.QUEUED)


@dataclass(frozen=True)
class RunHistory:
    """The runs of each database of a policy.

    Args:
        busy: id of the unfinished run.
        loading: end of the window that it loads; not of a bootstrap, which ends later.
        last: last run of a window.
        last_catch_up: last catch-up run.
        last_plan: last run that planned a window.
        repaired: id of the run in which tables of it, materialized by hand, are repaired: its load would wait for that one.
        to_be_repaired: those for which such a run is in Dagster's queue.
    """

    busy: dict[str, str] = field(default_factory=dict[str, str])
    loading: dict[str, int] = field(default_factory=dict[str, int])
    last: dict[str, PastRun] = field(default_factory=dict[str, PastRun])
    last_catch_up: dict[str, PastRun] = field(default_factory=dict[str, PastRun])
    last_plan: dict[str, PastRun] = field(default_factory=dict[str, PastRun])
    repaired: dict[str, str] = field(default_factory=dict[str, str])
    to_be_repaired: set[str] = field(default_factory=set[str])


def run_history(instance: dg.DagsterInstance, names: Names, policy: Policy) -> RunHistory:
    """Reads the policy's runs: unfinished ones, whoever started them, and the last hundred that the sensor requested.

    So are the last hundred that failed: one database's many runs do not hide that the window of another has to come again. Dead
    runs are reported as failed first. Of runs between other metastores, as before a failback, only unfinished ones count: their
    windows are of another log.
    """
    history = RunHistory()
    stages: tuple[Stage, ...] = ("load", "plan")
    loads = {names.database(database, stage): database for database in policy.databases for stage in stages}
    for record in instance.get_run_records(dg.RunsFilter(statuses=NOT_FINISHED_STATUSES)):
        run = record.dagster_run
        databases = list(_databases(run, loads, names))
        repaired = names.repaired(run.asset_selection or (), policy.databases)
        if (databases or repaired) and has_ended(instance, run):
            report_dead(instance, run)
            continue
        history.busy.update((database, run.run_id) for database in databases)
        if run.status in _QUEUED:
            history.to_be_repaired.update(repaired)
        else:
            history.repaired.update((database, run.run_id) for database in repaired)
        window = _window(run)
        if window and window.start is not None and _is_of_log(run, policy):
            history.loading.update((database, window.end) for database in databases)
    for record in _last_records(instance, names):
        run = record.dagster_run
        past = _past(record) if run.is_finished and _is_of_log(run, policy) else None
        if past is not None:
            known = {"window": history.last, "catch-up": history.last_catch_up, "plan": history.last_plan}[past.kind]
            for database in _databases(run, loads, names):
                known.setdefault(database, past)
    return history


def _last_records(instance: dg.DagsterInstance, names: Names) -> list[dg.RunRecord]:
    """Newest first."""
    ours = {POLICY_TAG: names.policy}
    last = instance.get_run_records(dg.RunsFilter(tags=ours), limit=_LAST_RUNS)
    failed = instance.get_run_records(dg.RunsFilter(tags=ours, statuses=FAILED_STATUSES), limit=_LAST_RUNS)
    records = {record.storage_id: record for record in (*last, *failed)}
    return [records[number] for number in sorted(records, reverse=True)]


def _is_of_log(run: dg.DagsterRun, policy: Policy) -> bool:
    """Whether a run's window is of the source's log; so is one whose run does not say its metastores."""
    return all(run.tags.get(name, value) == value for name, value in metastore_tags(policy).items())


def _databases(run: dg.DagsterRun, loads: dict[dg.AssetKey, str], names: Names) -> Iterator[str]:
    """The databases that a run loads, or plans a window of."""
    database = run.tags.get(DATABASE_TAG, "")
    loading = (rebuild_job_name(names, database), repair_job_name(names, database))
    if run.tags.get(POLICY_TAG) == names.policy and database in loads.values() and run.job_name in loading:
        yield database
    yield from (loads[key] for key in run.asset_selection or () if key in loads)


def _window(run: dg.DagsterRun) -> Window | None:
    try:
        return Window.parse(run.tags[PARTITION_NAME_TAG])
    except (KeyError, ValueError):
        return None


def _past(record: dg.RunRecord) -> PastRun | None:
    run = record.dagster_run
    window = _window(run)
    try:
        kind = cast("Kind", run.tags[KIND_TAG])
        attempt = int(run.tags[ATTEMPT_TAG])
    except (KeyError, ValueError):
        return None
    return PastRun(run.run_id, kind, window, attempt, ended(record)) if window else None
