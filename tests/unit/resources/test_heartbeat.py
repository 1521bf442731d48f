"""Signs of life of a run."""

from __future__ import annotations

import time
from typing import Any

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from resources.heartbeat import heartbeat


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
