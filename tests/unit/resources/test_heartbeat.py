"""Signs of life of a run."""

from __future__ import annotations

import time
from typing import Any

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from hive_replication.process import this_process
from resources.connection import ReplicationConnection
from resources.heartbeat import HEARTBEAT_TAG, heartbeat, process_tag


def test_a_run_says_that_it_is_at_work_until_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        run = create_run_for_test(instance, status=dg.DagsterRunStatus.STARTED)
        report, failures = instance.report_engine_event, [OSError("the database is away")]

        def reported(*arguments: Any) -> Any:
            if failures:
                raise failures.pop()
            return report(*arguments)

        monkeypatch.setattr(instance, "report_engine_event", reported)

        def logged() -> int:
            return len(instance.all_logs(run.run_id, of_type=dg.DagsterEventType.ENGINE_EVENT))

        with heartbeat(instance, run, every=0.01):
            until = time.monotonic() + 10
            while logged() < 2 and time.monotonic() < until:
                time.sleep(0.01)
            assert logged() >= 2
        time.sleep(0.1)
        number = logged()
        time.sleep(0.1)
        assert logged() == number
        with heartbeat(instance, run):
            pass
        assert logged() == number


@dg.op(required_resource_keys={"side"})
def waiting() -> None:
    """A step that has not connected: so does one that waits for a slot of its pool."""


@dg.job
def one_step() -> None:
    waiting()


def test_a_run_is_known_to_give_signs_of_life_before_its_first_step_connects() -> None:
    """One that was lost while it waited for its pool counted as running for ever."""
    with dg.DagsterInstance.ephemeral() as instance:
        run_id = one_step.execute_in_process(resources={"side": ReplicationConnection(policy={})}, instance=instance).run_id
        run = instance.get_run_by_id(run_id)
    assert run
    assert {HEARTBEAT_TAG: run_id, **process_tag(run_id, this_process())}.items() <= run.tags.items()
