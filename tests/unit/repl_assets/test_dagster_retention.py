"""Which runs Dagster forgets, and when the job that does it runs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import dagster as dg
import pytest
from dagster._core.definitions.asset_checks.asset_check_evaluation import AssetCheckEvaluationPlanned
from dagster._core.test_utils import create_run_for_test

from hive_replication.policy import Policy, Root
from hive_replication.policy.checks import Checks, Witness
from hive_replication.policy.model import Warehouse
from repl_assets.catalog.keys import POLICY_TAG, UNRECORDED_TAG, Names, Stage
from repl_assets.dagster_private import DATA_VERSION_TAG, WorkerStatus
from repl_assets.definitions import build_defs
from repl_assets.jobs.retention import forget
from repl_assets.recording.dagster_retention import old_runs
from repl_assets.run_launcher import ForkingRunLauncher
from resources.heartbeat import HEARTBEAT_TAG, LOST, PROCESS_TAG
from sensors.schedules import checks_schedule, retention_schedule

POLICY = Policy(
    name="dr",
    source=Warehouse(metastore="thrift://127.0.0.1:1", roots=(Root(uri="hdfs://source:8020/"),)),
    target=Warehouse(metastore="thrift://127.0.0.1:1", roots=(Root(uri="hdfs://target:8020/"),)),
    dump_root="hdfs://target:8020/dumps",
    databases={"sales": "sales"},
)
NAMES = Names.of(POLICY)
STAGES: tuple[Stage, ...] = ("source", "dump", "load")


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
    by_hand = create_run_for_test(instance, status=done, asset_selection=frozenset([orders])).run_id
    create_run_for_test(instance, status=done, asset_selection=frozenset([dg.AssetKey(["another", "sales__load"])]))
    for path in (["dr"], ["dr", "stg_orders"], ["dr", "marts", "orders"]):  # of another project
        create_run_for_test(instance, status=done, asset_selection=frozenset([dg.AssetKey(path)]))
    create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED, tags={POLICY_TAG: "dr"})
    found = list(old_runs(instance, NAMES, POLICY, time.time() + 60))
    assert {run.run_id for run, _ in found} == {first, window, bare, by_hand}
    assert list(old_runs(instance, NAMES, POLICY, time.time() - 60)) == []
    for run, _ in found:
        instance.delete_run(run.run_id)
    assert instance.get_materialized_partitions(orders) == {"ds=1", "ds=2"}


def test_all_that_dagster_keeps_of_a_policy_is_forgotten_but_the_latest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records and events of runs, logs of their steps, observations and answers of checks; by Dagster's storage on disk."""
    monkeypatch.setattr("repl_assets.recording.dagster_retention._PAGE", 2)
    load, other = NAMES.database("sales", "load"), dg.AssetKey(["dr_2", "sales__load"])
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        for key in (load, other):
            for figure in (1, 2, 3):
                metadata = {"behind (s)": figure}
                instance.report_runless_asset_event(dg.AssetObservation(key, metadata=metadata))
                instance.report_runless_asset_event(dg.AssetCheckEvaluation(key, "up_to_date", passed=True, metadata=metadata))
        runs = [materialize(instance, load, window) for window in ("1-2", "2-3", "3-4")]

        def kept() -> tuple[int, int, int, list[int], list[int], set[str]]:
            check = dg.AssetCheckKey
            answers = instance.event_log_storage.get_asset_check_execution_history
            return (
                len(instance.get_runs()),
                len(answers(check(load, "up_to_date"), limit=10)),
                len(answers(check(other, "up_to_date"), limit=10)),
                [one.asset_observation.metadata["behind (s)"].value for one in instance.fetch_observations(load, 10).records],  # type: ignore[union-attr,misc]
                [one.asset_observation.metadata["behind (s)"].value for one in instance.fetch_observations(other, 10).records],  # type: ignore[union-attr,misc]
                {path.name for path in tmp_path.rglob("*") if path.stem in runs},
            )

        files = {name for run in runs for name in (run, f"{run}.db")}
        before, soon = (3, 3, 3, [3, 2, 1], [3, 2, 1], files), time.time() + 60
        assert kept() == before
        told = forget(instance, NAMES, POLICY, soon, dry_run=True)
        assert kept() == before
        assert forget(instance, NAMES, POLICY, soon - 3600, dry_run=False)["observations forgotten"] == 0
        assert forget(instance, NAMES, POLICY, soon, dry_run=False) == told
        assert (told["answers of checks forgotten"], told["observations forgotten"]) == (2, 2)
        assert kept() == (1, 1, 3, [3], [3, 2, 1], {runs[-1], f"{runs[-1]}.db"})


def test_the_last_answer_of_a_check_stays_where_another_one_was_announced(instance: dg.DagsterInstance) -> None:
    """Alarms and repairs go by it, and the run that announced another one may have died."""
    load = NAMES.database("sales", "load")
    for passed in (True, False):
        instance.report_runless_asset_event(dg.AssetCheckEvaluation(load, "same_objects", passed=passed))
    for _ in range(2):
        planned = AssetCheckEvaluationPlanned(asset_key=load, check_name="same_objects")
        run = create_run_for_test(instance)
        event = dg.DagsterEvent("ASSET_CHECK_EVALUATION_PLANNED", run.job_name, event_specific_data=planned)
        instance.report_dagster_event(event, run.run_id)
    forget(instance, NAMES, POLICY, time.time() + 60, dry_run=False)
    found = instance.event_log_storage.get_asset_check_execution_history(dg.AssetCheckKey(load, "same_objects"), limit=10)
    assert [one.status.value for one in found] == ["PLANNED", "FAILED"]


def test_old_observations_of_the_policy_s_page_are_forgotten(tmp_path: Path) -> None:
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        for key in (NAMES.status, dg.AssetKey(["dr_2", "status"])) * 3:
            instance.report_runless_asset_event(dg.AssetObservation(key))
        for dry_run in (True, False):
            assert forget(instance, NAMES, POLICY, time.time() + 60, dry_run=dry_run)["observations forgotten"] == 2
        assert len(instance.fetch_observations(NAMES.status, 10).records) == 1


@pytest.mark.parametrize("path", [["dr", "stg_orders"], ["dr", "marts", "orders"], ["dr", "sales", "a", "b"]])
def test_what_other_projects_keep_below_the_name_of_the_policy_stays(path: list[str], tmp_path: Path) -> None:
    theirs, ours = dg.AssetKey(path), NAMES.table("sales", "orders", "load")
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        history = instance.event_log_storage.get_asset_check_execution_history
        for key in (theirs, ours) * 3:
            instance.report_runless_asset_event(dg.AssetObservation(key))
            instance.report_runless_asset_event(dg.AssetCheckEvaluation(key, "fresh", passed=True))

        def kept(key: dg.AssetKey) -> tuple[int, int]:
            return len(instance.fetch_observations(key, 10).records), len(history(dg.AssetCheckKey(key, "fresh"), limit=10))

        for dry_run in (True, False):
            told = forget(instance, NAMES, POLICY, time.time() + 60, dry_run=dry_run)
            assert (told["answers of checks forgotten"], told["observations forgotten"]) == (2, 2)
        assert (kept(theirs), kept(ours)) == ((3, 3), (1, 1))


def test_one_run_forgets_more_than_is_read_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many databases leave more in a day."""
    monkeypatch.setattr("repl_assets.recording.dagster_retention._MOST_EVENTS", 2)
    load = NAMES.database("sales", "load")
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        for _ in range(6):
            instance.report_runless_asset_event(dg.AssetObservation(load))
            instance.report_runless_asset_event(dg.AssetCheckEvaluation(load, "up_to_date", passed=True))
        for dry_run in (True, False):
            told = forget(instance, NAMES, POLICY, time.time() + 60, dry_run=dry_run)
            assert (told["answers of checks forgotten"], told["observations forgotten"]) == (5, 5)
        assert len(instance.fetch_observations(load, 10).records) == 1
        history = instance.event_log_storage.get_asset_check_execution_history
        assert len(history(dg.AssetCheckKey(load, "up_to_date"), limit=10)) == 1


def test_entries_of_tables_that_were_dropped_or_renamed_away_are_forgotten(instance: dg.DagsterInstance) -> None:
    """Dagster shows what has entries, also where no definition has it any more."""

    def log(name: str, version: str) -> None:
        for stage in STAGES:
            key = NAMES.table("sales", name, stage)
            tags = {DATA_VERSION_TAG: version} if stage == "load" else {}
            instance.report_runless_asset_event(dg.AssetMaterialization(key, tags=tags))

    log("orders", "7")
    log("old__load", "dropped at 8")
    log("again", "dropped at 8")
    log("again", "9")
    log("days", "7")
    parts = dg.AssetMaterialization(
        NAMES.table("sales", "days", "load"), partition="ds=1", tags={DATA_VERSION_TAG: "dropped at 8"}
    )
    instance.report_runless_asset_event(parts)  # what a DROP PARTITION leaves
    elsewhere = dg.AssetKey(["dr_2", "sales", "old"])
    instance.report_runless_asset_event(dg.AssetMaterialization(elsewhere, tags={DATA_VERSION_TAG: "dropped at 8"}))
    kept = {*(NAMES.table("sales", name, stage) for name in ("orders", "again", "days") for stage in STAGES), elsewhere}
    old, now = {NAMES.table("sales", "old__load", stage) for stage in STAGES}, time.time() + 60
    forget(instance, NAMES, POLICY, now, dry_run=True)
    forget(instance, NAMES, POLICY, now - 3600, dry_run=False)
    assert set(instance.get_asset_keys()) == kept | old
    told = forget(instance, NAMES, POLICY, now, dry_run=False)
    assert "dr/sales/old.5f_load" in str(told["dropped tables forgotten"])
    assert set(instance.get_asset_keys()) == kept


def test_the_schedule_runs_the_job_daily_unless_switched_off() -> None:
    defs = build_defs(POLICY)
    schedule, witness = defs.schedules or []
    assert isinstance(schedule, dg.ScheduleDefinition)
    assert isinstance(witness, dg.ScheduleDefinition)
    assert (witness.name, witness.job_name, witness.cron_schedule) == ("same_objects_dr", "dr_same_objects", "30 * * * *")
    assert (schedule.name, schedule.job_name, schedule.cron_schedule) == ("retention_dr", "dr_retention", "0 3 * * *")
    assert defs.resolve_job_def("dr_retention")
    neither = POLICY.model_copy(update={"retention_at": None, "witness": Witness(schedule=None)})
    assert not build_defs(neither).schedules


def test_checks_run_by_their_schedule_one_run_at_a_time(tmp_path: Path) -> None:
    defs = build_defs(
        POLICY.model_copy(update={"retention_at": None, "checks": Checks(schedule="0 4 * * Sun"), "time_zone": "CET"})
    )
    schedule, _ = defs.schedules or []
    assert isinstance(schedule, dg.ScheduleDefinition)
    told = (schedule.name, schedule.job_name, schedule.cron_schedule, schedule.execution_timezone)
    assert told == ("checks_dr", "dr_checks", "0 4 * * Sun", "CET")
    assert defs.resolve_job_def("dr_checks")
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        tick = schedule.evaluate_tick(dg.build_schedule_context(instance))
        assert len(tick.run_requests or []) == 1
        started = partial(create_run_for_test, instance, job_name="dr_checks", status=dg.DagsterRunStatus.STARTED)
        started()  # of another project
        assert schedule.evaluate_tick(dg.build_schedule_context(instance)).run_requests
        run = started(tags={POLICY_TAG: "dr"})
        tick = schedule.evaluate_tick(dg.build_schedule_context(instance))
        assert (tick.run_requests, tick.skip_message) == ([], f"run {run.run_id[:8]} has not finished")


@pytest.mark.parametrize("schedule", [checks_schedule(POLICY, "0 4 * * Sun"), retention_schedule(POLICY, "03:00")])
def test_a_run_of_a_container_that_is_gone_keeps_no_schedule(
    schedule: dg.ScheduleDefinition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody can ask for its process; a run that works logs that it does."""
    elsewhere = f"another/4026532281/{'0' * 12} 7 1.00"
    launcher = ForkingRunLauncher()
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        launcher.register_instance(instance)

        def unfinished(beats: dg.DagsterRun | None = None) -> dg.DagsterRun:
            started, tags = dg.DagsterRunStatus.STARTED, {POLICY_TAG: POLICY.name, PROCESS_TAG: elsewhere}
            run = create_run_for_test(instance, job_name=schedule.job_name, status=started, tags=tags)
            instance.add_run_tags(run.run_id, {HEARTBEAT_TAG: (beats or run).run_id})
            instance.report_engine_event("The run is at work", run)
            return instance.get_run_by_id(run.run_id) or run

        def start() -> tuple[int, str | None]:
            found = schedule.evaluate_tick(dg.build_schedule_context(instance))
            return len(found.run_requests or []), found.skip_message

        run = unfinished()
        assert start() == (0, f"run {run.run_id[:8]} has not finished")
        assert launcher.check_run_worker_health(run).status == WorkerStatus.RUNNING
        now = time.time()
        monkeypatch.setattr("repl_assets.catalog.dead_runs.time", SimpleNamespace(time=lambda: now + LOST + 60))
        assert launcher.check_run_worker_health(run).status == WorkerStatus.FAILED
        assert start() == (1, None)
        ended = instance.get_run_by_id(run.run_id)
        assert ended
        assert ended.status == dg.DagsterRunStatus.FAILURE  # which is an alarm, and gives its pools back
        copied = unfinished(run)  # Dagster executes it again, with its tags
        assert start() == (0, f"run {copied.run_id[:8]} has not finished")
