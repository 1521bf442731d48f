"""A run says so when Spark lets it wait: neither a full cluster nor a YARN without room was told anywhere. No JVM."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from resources import spark_waits
from resources.spark_waits import told_when_slow, watch


@pytest.fixture(autouse=True)
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_waits, "_LOOK", 0.01)
    monkeypatch.setattr(spark_waits, "_LONG", 0.03)


class Cluster:
    """Runs so many tasks of each stage at each look, and has ended after the last."""

    master = "spark://full:7077"

    def __init__(self, looks: list[list[int]]) -> None:
        self.applicationId, self._looks = "app-7", iter(looks)

    def statusTracker(self) -> Any:  # noqa: N802 (Spark's name)
        stages = next(self._looks)
        info = [SimpleNamespace(numActiveTasks=number) for number in stages]
        return SimpleNamespace(getActiveStageIds=lambda: list(range(len(stages))), getStageInfo=info.__getitem__)


def until(done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.parametrize(
    ("looks", "warnings"),
    [
        ([[0]] * 8, 1),
        ([[0], [0], [0, 1], [0], [0], [0, 2]], 0),
        ([list[int]()] * 8, 0),  # no work
        ([[0]] * 4 + [[1]] + [[0]] * 4, 2),
    ],
)
def test_an_application_none_of_whose_tasks_runs_is_told_of_once_for_each_wait(
    caplog: pytest.LogCaptureFixture, looks: list[list[int]], warnings: int
) -> None:
    context: Any = Cluster(looks)
    with caplog.at_level(logging.DEBUG, "hive_replication.spark"):
        watch(context)
        watch(context)  # of another resource of the process
        until(lambda: "no longer watched" in caplog.text)
    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert len(told) == warnings
    assert all("app-7" in one and "spark://full:7077" in one for one in told)


@pytest.mark.parametrize("slow", [False, True])
def test_a_session_that_takes_long_to_start_is_told_of(caplog: pytest.LogCaptureFixture, slow: bool) -> None:
    with told_when_slow("yarn"):
        until(lambda: not slow or "has not started" in caplog.text)
    time.sleep(0.06)
    assert ("its cluster may be full, or not be reached (master yarn)" in caplog.text) is slow
