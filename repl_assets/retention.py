"""The job that frees space: old data, journals and dumps of replicas, and Dagster's own records of old runs."""

# No postponed annotations here: Dagster compares those of contexts as types.
import time
from collections.abc import Iterator
from datetime import UTC, datetime

import dagster as dg
from dagster._core.storage.dagster_run import FINISHED_STATUSES

from hive_replication.errors import BadRequest, Refused
from hive_replication.load.retention import Swept, sweep
from hive_replication.policy import Policy
from hive_replication.units import size, when
from repl_assets.keys import POLICY_TAG, UNRECORDED_TAG, Names
from repl_assets.reporting import markdown_table
from repl_assets.specs import Specs
from repl_assets.work import Work, failures
from repl_assets.worker import tag_run

DAY = 86_400.0
_MOST_RUNS = 500  # that one run of the job looks at, some 10 s; the next one goes on


def retention_job_name(names: Names) -> str:
    """Name of a policy's retention job."""
    return names.local("retention")


def retention_op_name(names: Names) -> str:
    """Name of its only op, under which its configuration goes."""
    return names.local("retention__sweep")


def retention_job(specs: Specs, policy: Policy) -> dg.JobDefinition:
    """``retention``: what ``hive-repl retention`` does for each database, then old runs of the policy are forgotten."""
    names = specs.names

    @dg.op(
        name=retention_op_name(names),
        config_schema={"dry_run": dg.Field(bool, default_value=False, description="Only tell what would be done")},
        required_resource_keys={names.connection},
        pool=names.local("retention"),
        out=dg.Out(dg.Nothing),
    )
    def retention(context: dg.OpExecutionContext) -> Iterator[dg.Output[None]]:
        tag_run(context)
        dry_run = bool(context.op_config["dry_run"])
        work = Work.of(getattr(context.resources, names.connection), context.log)
        swept, left = _sweep(work, policy, dry_run=dry_run)
        runs = _forget(context, names, policy, dry_run=dry_run)
        rows = [(name, one.what, size(one.size), one.path, one.moved_to or "deleted") for name, one in swept]
        freed = sum(one.size for _, one in swept if not one.moved_to)
        moved = sum(one.size for _, one in swept if one.moved_to)
        yield dg.Output(
            None,
            metadata={
                "dry run": dry_run,
                "deleted": size(freed),
                "moved aside": size(moved),
                "old data": markdown_table(("database", "what", "size", "path", "to"), rows, len(rows)),
                "left for later": markdown_table(("database", "why"), left, len(left)),
                "runs forgotten": markdown_table(
                    ("run", "job", "ended"), [(run.run_id, run.job_name, when(ended)) for run, ended in runs], len(runs)
                ),
            },
        )

    @dg.job(
        name=retention_job_name(names),
        description="Moves old data aside, deletes it after the policy's retention time, and forgets old runs.",
        tags={POLICY_TAG: names.policy, "dagster/priority": "-10"},
    )
    def job() -> None:
        retention()

    return job


def _sweep(work: Work, policy: Policy, *, dry_run: bool) -> tuple[list[tuple[str, Swept]], list[tuple[str, str]]]:
    """Sweeps all databases; those that are loaded at this moment, or are not there yet, are left for the next time."""
    swept: list[tuple[str, Swept]] = []
    left: list[tuple[str, str]] = []
    connection = work.connection
    with failures():
        for name in sorted(set(policy.databases.values())):
            try:
                swept += [(name, one) for one in sweep(connection.target, name, connection.store, dry_run=dry_run)]
            except (BadRequest, Refused) as reason:
                left.append((name, str(reason)))
    return swept, left


def _forget(context: dg.OpExecutionContext, names: Names, policy: Policy, *, dry_run: bool) -> list[tuple[dg.DagsterRun, float]]:
    if policy.keep_runs_days is None:
        return []
    found = list(old_runs(context.instance, names, policy, time.time() - policy.keep_runs_days * DAY))
    for run, _ in found if not dry_run else ():
        context.instance.delete_run(run.run_id)
    return found


def old_runs(instance: dg.DagsterInstance, names: Names, policy: Policy, before: float) -> Iterator[tuple[dg.DagsterRun, float]]:
    """Runs of a policy that ended long ago and of which nothing in Dagster shows the latest state, with their ends.

    A run stays that has materialized the latest version of an asset or of a table's partition; of windows only the newest counts.
    So does one whose objects are still to be recorded.

    Args:
        instance: Dagster's.
        names: of the policy.
        policy: its databases.
        before: seconds since the epoch.
    """
    windows = {names.database(database, stage) for database in policy.databases for stage in ("dump", "load")}
    wanted = dg.RunsFilter(
        tags={POLICY_TAG: names.policy}, statuses=list(FINISHED_STATUSES), updated_before=datetime.fromtimestamp(before, UTC)
    )
    for record in instance.get_run_records(wanted, limit=_MOST_RUNS, order_by="update_timestamp", ascending=True):
        run = record.dagster_run
        if not run.tags.get(UNRECORDED_TAG) and not _shown(instance, run.run_id, windows):
            yield run, record.end_time or record.update_timestamp.timestamp()


def _shown(instance: dg.DagsterInstance, run_id: str, windows: set[dg.AssetKey]) -> bool:
    """Whether a run made the latest materialization of an asset, or of a partition of a table."""
    kind = dg.DagsterEventType.ASSET_MATERIALIZATION
    for record in instance.get_records_for_run(run_id, of_type=kind).records:
        made = record.event_log_entry.asset_materialization
        if made is None:
            continue
        key, partition = made.asset_key, made.partition
        latest = instance.get_latest_materialization_event(key)
        if latest is not None and latest.run_id == run_id:
            return True
        if partition is not None and key not in windows:
            ids = instance.event_log_storage.get_latest_storage_id_by_partition(key, kind, {partition})
            if ids.get(partition) == record.storage_id:
                return True
    return False
