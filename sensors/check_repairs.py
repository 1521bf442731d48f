"""The sensor that repairs tables whose checks failed, if the policy says so: one repair until the check passes again.

The failed result names the partitions to repair; the repair's run then runs the check again. The sensor reads Dagster's own
storage, and where a table is to be repaired also whether an operator stopped its database, or undid the table.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import dagster as dg

from hive_replication.errors import Refused, Unreachable
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target import state_of
from hive_replication.policy import Policy
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.specs import Specs
from repl_assets.checks.check_definitions import check_specs
from repl_assets.checks.findings import EvaluationKey, failed_tables, last_execution, last_failure, partitions_to_repair
from repl_assets.checks.table_checks import TableCheck, enabled_checks
from repl_assets.dagster_private import RUN_KEY_TAG
from repl_assets.dagster_private import AssetCheckExecutionRecordStatus as Status
from repl_assets.jobs.repair import repair_job_name, repair_request
from repl_assets.typed import running_sensor
from resources.engine_log import in_tick
from sensors.connections import connect_for_tick
from sensors.not_now import stopped

_INTERVAL = 30


def failed_checks_sensor(specs: Specs, database: CatalogDatabase) -> dg.SensorDefinition:
    """The sensor of a database: ``failed_checks_<db>``."""
    names = specs.names

    @running_sensor(
        name=names.local(f"failed_checks_{database.name}"),
        description=f"Repairs tables of {database.name} whose checks failed, once until the check passes again",
        job_name=repair_job_name(names, database.name),
        interval=_INTERVAL,
        resources=frozenset({names.connection}),
    )
    def failed_checks(context: dg.SensorEvaluationContext) -> list[dg.RunRequest] | dg.SkipReason:
        found = list(requests(context.instance, specs, database))
        if not found:
            return dg.SkipReason("no failed check needs a repair")
        with in_tick(context.log):
            try:
                target = connect_for_tick(context, names).target
                state = state_of(target, database.name)
            except (Unreachable, Refused) as error:
                return dg.SkipReason(f"nothing can be started: {error}")
        return allowed(found, state, target.policy, database.name)

    return failed_checks


def allowed(
    found: Sequence[tuple[str, dg.RunRequest]], state: ReplicaState, policy: Policy, database: str
) -> list[dg.RunRequest] | dg.SkipReason:
    """The repairs that may start now: a repair would end what an operator stopped or undid, or what stands with that (pure).

    Args:
        found: tables, each with a run that repairs it.
        state: of the target database.
        policy: the policy.
        database: source name.
    """
    if reason := stopped(policy, {database: state}).get(database):
        return dg.SkipReason(reason)
    undone = sorted({table for table, _ in found if state.stands_with_undo(table)})
    due = [request for table, request in found if table not in undone]
    return due or dg.SkipReason(f"undone, not to be repaired: {', '.join(undone)}")


def requests(instance: dg.DagsterInstance, specs: Specs, database: CatalogDatabase) -> Iterator[tuple[str, dg.RunRequest]]:
    """Tables, each with a run for a failed check that has had no run since it last passed."""
    for check in enabled_checks(specs.policy):
        tables = check_specs(specs, database, check)
        for table in failed_tables(instance, specs.names, database.name, check.name, tables):
            request = _request(instance, specs, database, table, check)
            if request is not None:
                yield table, request


def _request(
    instance: dg.DagsterInstance, specs: Specs, database: CatalogDatabase, table: str, check: TableCheck
) -> dg.RunRequest | None:
    names, key = specs.names, EvaluationKey.of(specs.names, database.name, table, check.name)
    found = last_failure(instance, key)
    partitions = partitions_to_repair(found.metadata) if found else None
    if partitions is None:
        return None
    passed = last_execution(instance, key, {Status.SUCCEEDED})
    run_key = f"{names.policy}:check:{database.name}.{table}:{check.name}:{passed.id if passed else 0}"
    if instance.get_run_records(dg.RunsFilter(tags={RUN_KEY_TAG: run_key}), limit=1):
        return None
    return repair_request(names, database.name, table, partitions, run_key=run_key, checks=[check.name])
