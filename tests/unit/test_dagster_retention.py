"""Which runs Dagster forgets, and when the job that does it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from hive_replication.policy import Policy, Root, Warehouse
from repl_assets.definitions import build_defs
from repl_assets.keys import POLICY_TAG, UNRECORDED_TAG, Names
from repl_assets.retention import old_runs

POLICY = Policy(
    name="dr",
    source=Warehouse(metastore="thrift://127.0.0.1:1", roots=(Root(uri="hdfs://source:8020/"),)),
    target=Warehouse(metastore="thrift://127.0.0.1:1", roots=(Root(uri="hdfs://target:8020/"),)),
    dump_root="hdfs://target:8020/dumps",
    databases={"sales": "sales"},
)
NAMES = Names.of(POLICY)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def materialize(instance: dg.DagsterInstance, key: dg.AssetKey, partition: str) -> str:
    """A run of the policy that materializes one partition; its id."""
    partitions = dg.DynamicPartitionsDefinition(name="any")
    instance.add_dynamic_partitions("any", [partition])

    @dg.asset(key=key, partitions_def=partitions)
    def made() -> None:
        pass

    return dg.materialize([made], instance=instance, partition_key=partition, tags={POLICY_TAG: "dr"}).run_id


def test_runs_that_show_the_latest_state_stay(instance: dg.DagsterInstance) -> None:
    orders, load = NAMES.table("sales", "orders", "load"), NAMES.database("sales", "load")
    first, _, _ = (materialize(instance, orders, day) for day in ("ds=1", "ds=2", "ds=1"))
    window, _ = (materialize(instance, load, one) for one in ("1-2", "2-3"))
    done = dg.DagsterRunStatus.SUCCESS
    bare = create_run_for_test(instance, status=done, tags={POLICY_TAG: "dr"}).run_id
    create_run_for_test(instance, status=done, tags={POLICY_TAG: "dr", UNRECORDED_TAG: "dr"})
    create_run_for_test(instance, status=done, tags={POLICY_TAG: "another"})
    create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED, tags={POLICY_TAG: "dr"})
    found = list(old_runs(instance, NAMES, POLICY, time.time() + 60))
    assert {run.run_id for run, _ in found} == {first, window, bare}
    assert list(old_runs(instance, NAMES, POLICY, time.time() - 60)) == []
    for run, _ in found:
        instance.delete_run(run.run_id)
    assert instance.get_materialized_partitions(orders) == {"ds=1", "ds=2"}


def test_the_schedule_runs_the_job_daily_unless_switched_off() -> None:
    defs = build_defs(POLICY)
    (schedule,) = defs.schedules or []
    assert isinstance(schedule, dg.ScheduleDefinition)
    assert (schedule.name, schedule.job_name, schedule.cron_schedule) == ("retention_dr", "dr_retention", "0 3 * * *")
    assert defs.resolve_job_def("dr_retention")
    assert not build_defs(POLICY.model_copy(update={"retention_at": None})).schedules
