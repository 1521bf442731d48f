"""Which of Dagster's runs count as those of a policy."""

from __future__ import annotations

import time
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from hive_replication.load.replica.state import ReplicaState
from hive_replication.process import machine, this_process
from repl_assets.catalog.dead_runs import has_ended, is_dead, process_of
from repl_assets.catalog.keys import SOURCE_TAG, TARGET_TAG, Names, Stage, Window
from resources.heartbeat import HEARTBEAT_TAG, LOST, PROCESS_TAG, process_tag
from sensors.notification_log.cursor import Cursor
from sensors.notification_log.log_scan import replicas
from sensors.notification_log.run_history import run_history
from sensors.notification_log.run_requests import run_request
from sensors.notification_log.runs import Start
from tests.lags import POLICY

_OTHER = "thrift://other:9083"
_POLICY = POLICY.model_copy(update={"target": POLICY.target.model_copy(update={"metastore": _OTHER})})
_SOURCE: Any = SimpleNamespace(policy=_POLICY, acid=True)
_NAMES = Names.of(_POLICY)
_EXCHANGED = {SOURCE_TAG: _OTHER, TARGET_TAG: _POLICY.source.metastore}


def a_run(instance: dg.DagsterInstance, status: dg.DagsterRunStatus, window: str, tags: dict[str, str]) -> str:
    """A run of a window as the sensor requested it, with other tags."""
    request = run_request(_NAMES, Start("window", Window.parse(window), 1, ("sales",)), _POLICY)
    assets, tags = frozenset(request.asset_selection or ()), {**request.tags, "dagster/partition": window, **tags}
    known = {name: value for name, value in tags.items() if value}
    return create_run_for_test(instance, asset_selection=assets, tags=known, status=status).run_id


@pytest.mark.parametrize(
    ("tags", "counts"),
    [({}, True), ({SOURCE_TAG: "", TARGET_TAG: ""}, True), (_EXCHANGED, False)],
    ids=["same", "none", "exchanged"],
)
def test_finished_runs_of_the_other_direction_are_none_of_the_history(tags: dict[str, str], counts: bool) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        a_run(instance, dg.DagsterRunStatus.FAILURE, "4999000-5000000", tags)
        last = run_history(instance, _NAMES, _POLICY).last.get("sales")
    assert (last is not None and last.window == Window(4_999_000, 5_000_000)) is counts


def test_unfinished_runs_of_the_other_direction_are_waited_for() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        run_id = a_run(instance, dg.DagsterRunStatus.STARTED, "4999000-5000000", _EXCHANGED)
        history = run_history(instance, _NAMES, _POLICY)
    assert (history.busy, history.loading) == ({"sales": run_id}, {})


def a_repair(
    instance: dg.DagsterInstance, status: dg.DagsterRunStatus, *keys: dg.AssetKey, tags: dict[str, str] | None = None
) -> str:
    """A run of tables' assets, as an operator starts it: without tags of this project."""
    return create_run_for_test(instance, asset_selection=frozenset(keys), tags=tags, status=status).run_id


_TABLE = _NAMES.table("sales", "x__dump", "load")


@pytest.mark.parametrize("key", [_TABLE, _NAMES.tables("sales")], ids=["table", "tables"])
def test_windows_wait_for_a_repair_by_hand(key: dg.AssetKey) -> None:
    """Its step holds the pool of the loads: a run with this database would last as long for all that share it."""
    with dg.DagsterInstance.ephemeral() as instance:
        run_id = a_repair(instance, dg.DagsterRunStatus.STARTED, key, tags={"dagster/partition": "1-2"})
        history = run_history(instance, _NAMES, _POLICY)
        (replica,) = replicas(_SOURCE, {"sales": ReplicaState(applied=100)}, history, Cursor(""))
    assert (replica.busy, replica.loading, replica.alone) == (run_id, None, False)
    assert not history.busy, "it is none of the max_runs"


def test_no_run_is_shared_with_a_database_whose_repair_is_in_the_queue() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        a_repair(instance, dg.DagsterRunStatus.NOT_STARTED, _TABLE)  # a queued one, for this
        history = run_history(instance, _NAMES, _POLICY)
        (replica,) = replicas(_SOURCE, {"sales": ReplicaState(applied=100)}, history, Cursor(""))
    assert (replica.busy, replica.alone) == ("", True)


def test_runs_that_load_no_table_are_no_repairs() -> None:
    stages: tuple[Stage, ...] = ("source", "dump")
    others = [
        Names("other").table("sales", "x", "load"),
        _NAMES.table("elsewhere", "x", "load"),
        _NAMES.database("sales", "dump"),
    ]
    with dg.DagsterInstance.ephemeral() as instance:
        for key in [*others, *(_NAMES.table("sales", "x", stage) for stage in stages)]:
            a_repair(instance, dg.DagsterRunStatus.STARTED, key)
        assert run_history(instance, _NAMES, _POLICY).repaired == {}


def test_a_repair_whose_process_died_keeps_nobody_waiting() -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        run_id = a_repair(instance, dg.DagsterRunStatus.STARTED, _TABLE)
        instance.add_run_tags(run_id, process_tag(run_id, _DEAD))
        assert run_history(instance, _NAMES, _POLICY).repaired == {}
        run = instance.get_run_by_id(run_id)
    assert run
    assert run.status == dg.DagsterRunStatus.FAILURE


_DEAD = f"{machine()} 1 1.00"  # another process had this number before


@pytest.mark.parametrize("earlier_version", [False, True])
def test_a_run_that_executes_a_dead_one_again_is_not_dead(earlier_version: bool) -> None:
    """Dagster gives it the tags of its parent; the dead parent is still found."""
    with dg.DagsterInstance.ephemeral() as instance:
        parent = a_run(instance, dg.DagsterRunStatus.STARTED, "4999000-5000000", {})
        dead = {PROCESS_TAG: _DEAD} if earlier_version else process_tag(parent, _DEAD)
        instance.add_run_tags(parent, dead)
        assert run_history(instance, _NAMES, _POLICY).busy == {}
        before = instance.get_run_by_id(parent)
        assert before
        assert before.status == dg.DagsterRunStatus.FAILURE
        again = create_run_for_test(
            instance,
            asset_selection=before.asset_selection,
            tags=before.tags,
            status=dg.DagsterRunStatus.NOT_STARTED,  # a queued one, for this
            parent_run_id=parent,
            root_run_id=parent,
        ).run_id
        assert run_history(instance, _NAMES, _POLICY).busy == {"sales": again}
        own = f"{machine()} 1 2.00"  # says no run either where the version that executed it was an earlier one
        instance.add_run_tags(again, {PROCESS_TAG: own} if earlier_version else process_tag(again, own))
        assert run_history(instance, _NAMES, _POLICY).busy == {}


def test_the_process_of_a_run_is_its_own() -> None:
    run = dg.DagsterRun("job", tags={})
    with dg.DagsterInstance.ephemeral() as instance:
        for process in (_DEAD, f"{machine()} 1"):
            own, other = (run.with_tags(process_tag(run_id, process)) for run_id in (run.run_id, dg.DagsterRun("job").run_id))
            assert (process_of(instance, own), process_of(instance, other)) == (process, "")
        assert process_of(instance, run) == ""
        assert not is_dead(instance, run)


@pytest.mark.parametrize(
    ("process", "lost"),
    [(this_process(), False), (f"another/4026532281/{'0' * 12} 7 100", True)],
    ids=["here", "elsewhere"],
)
def test_a_run_whose_process_lives_here_is_not_lost(process: str, lost: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine that was suspended goes on hours later: the sensor looks before the run has given a sign of life."""
    with dg.DagsterInstance.ephemeral() as instance:
        run_id = a_run(instance, dg.DagsterRunStatus.STARTED, "4999000-5000000", {})
        instance.add_run_tags(run_id, process_tag(run_id, process) | {HEARTBEAT_TAG: run_id})
        run = instance.get_run_by_id(run_id)
        assert run
        instance.report_engine_event("The run is at work", run)
        assert not has_ended(instance, run)
        now = time.time()
        monkeypatch.setattr("repl_assets.catalog.dead_runs.time", SimpleNamespace(time=lambda: now + LOST + 60))
        assert has_ended(instance, run) is lost
