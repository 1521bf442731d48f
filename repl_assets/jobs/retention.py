"""The job that frees space: old data, journals and dumps of replicas, and Dagster's own records of old runs."""

# No postponed annotations here: Dagster compares those of contexts as types.
import time
from collections.abc import Iterator
from typing import Any

import dagster as dg

from hive_replication.errors import BadRequest, Refused, ReplicationError, Unreachable
from hive_replication.load.retention.sweep import Swept, sweep
from hive_replication.plans.approval import Approvals
from hive_replication.policy import Policy
from hive_replication.units import size, when
from repl_assets.catalog.keys import AFTER_OTHERS, POLICY_TAG, Names
from repl_assets.catalog.specs import Specs
from repl_assets.recording.dagster_retention import (
    delete_evaluations,
    delete_observations,
    delete_run,
    dropped_tables,
    old_runs,
)
from repl_assets.recording.metadata import markdown_table
from repl_assets.steps.engine import Engine, as_dagster_failure, connected_engine
from repl_assets.typed import single_op_job

DAY = 86_400.0


def retention_job_name(names: Names) -> str:
    """Name of a policy's retention job."""
    return names.local("retention")


def retention_job(specs: Specs) -> dg.JobDefinition:
    """``retention``: does what ``hive-repl retention`` does for each database, then deletes old runs of the policy."""
    names, policy = specs.names, specs.policy

    @dg.op(
        name=names.local("retention__sweep"),
        config_schema={"dry_run": dg.Field(bool, default_value=False, description="Only report what would be done")},
        required_resource_keys=names.resources,
        pool=names.local("retention"),
        out=dg.Out(dg.Nothing),
    )
    def retention(context: dg.OpExecutionContext) -> Iterator[dg.Output[None]]:
        dry_run = bool(context.op_config["dry_run"])
        engine = connected_engine(context, names)
        swept, left, failed = _sweep(engine, policy, dry_run=dry_run)
        days = policy.keep_runs_days
        forgotten = forget(context.instance, names, policy, time.time() - days * DAY, dry_run=dry_run) if days else {}
        stuck = [(name, one) for name, one in swept if one.problem]
        left += [(name, one.problem) for name, one in stuck]
        swept = [(name, one) for name, one in swept if not one.problem]
        rows = [(name, one.what, size(one.size), one.path, one.moved_to or "deleted") for name, one in swept]
        freed = sum(one.size for _, one in swept if not one.moved_to)
        moved = sum(one.size for _, one in swept if one.moved_to)
        metadata = {
            "dry run": dry_run,
            "deleted": size(freed),
            "moved aside": size(moved),
            "old data": markdown_table(("database", "what", "size", "path", "to"), rows, len(rows)),
            "left for later": markdown_table(("database", "why"), left, len(left)),
            **forgotten,
        }
        failed += [f"{len(stuck)} removals failed, the first is {one.path}: {one.problem}" for _, one in stuck[:1]]
        if failed:  # each run may meet it again, and the storage fills
            raise dg.Failure("; ".join(failed), metadata=metadata)
        yield dg.Output(None, metadata=metadata)

    return single_op_job(
        retention,
        name=retention_job_name(names),
        description="Moves old data aside, deletes it after the policy's retention time, and forgets old runs.",
        tags={POLICY_TAG: names.policy, **AFTER_OTHERS},
    )


def _sweep(engine: Engine, policy: Policy, *, dry_run: bool) -> tuple[list[tuple[str, Swept]], list[tuple[str, str]], list[str]]:
    """Sweeps all databases; those that are being loaded, do not exist yet, or cannot be swept are left for the next run.

    Returns:
        What was swept, by database; why some were left; of these, a sentence for each that no load or policy is in the way of.
    """
    swept: list[tuple[str, Swept]] = []
    left: list[tuple[str, str]] = []
    failed: list[str] = []
    target, store = engine.connection.target, engine.connection.store
    with as_dagster_failure():
        planned = Approvals.of(policy).dumps
        for name in sorted(set(policy.databases.values())):
            try:
                swept += [(name, one) for one in sweep(target, name, store, planned=planned, dry_run=dry_run)]
            except Unreachable:
                raise
            except ReplicationError as reason:
                if not isinstance(reason, BadRequest | Refused):
                    failed.append(f"{name}: {reason}")
                left.append((name, str(reason)))
    return swept, left, failed


def forget(instance: dg.DagsterInstance, names: Names, policy: Policy, before: float, *, dry_run: bool) -> dict[str, Any]:
    """Deletes Dagster's records of a policy older than ``before``, seconds since the epoch; returns what, as metadata."""
    runs = list(old_runs(instance, names, policy, before))
    for run, _ in runs if not dry_run else ():
        delete_run(instance, run.run_id)
    tables = dropped_tables(instance, names, before)
    if tables and not dry_run:
        instance.wipe_assets(tables)
    rows = [(run.run_id, run.job_name, when(ended)) for run, ended in runs]
    return {
        "runs forgotten": markdown_table(("run", "job", "ended"), rows, len(rows)),
        "dropped tables forgotten": markdown_table(("asset",), [(key.to_user_string(),) for key in tables], len(tables)),
        "answers of checks forgotten": delete_evaluations(instance, names, policy, before, dry_run=dry_run),
        "observations forgotten": delete_observations(instance, names, policy, before, dry_run=dry_run),
    }
