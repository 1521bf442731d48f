"""The job ``retention``: what becomes of the other databases where one cannot be swept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from hive_replication.errors import Refused, ReplicationError, Unreachable
from hive_replication.load.retention.sweep import Swept
from hive_replication.plans.approval import Approvals, PlannedWindow
from hive_replication.storage import Denied
from repl_assets.jobs import retention
from tests.lags import POLICY

THREE = POLICY.model_copy(update={"databases": {"a": "a", "b": "b", "c": "c"}})


@pytest.mark.parametrize("error", [Denied("closed"), ReplicationError("a report is damaged"), Refused("a load runs")])
def test_a_database_that_cannot_be_swept_is_left_and_the_others_are_swept(
    error: ReplicationError, monkeypatch: pytest.MonkeyPatch
) -> None:
    def sweep(_: object, name: str, *__: object, **___: object) -> list[Swept]:
        if name == "b":
            raise error
        return [Swept("old data", f"hdfs://t/{name}", "", 5)]

    monkeypatch.setattr(retention, "sweep", sweep)
    engine: Any = type("E", (), {"connection": type("C", (), {"target": None, "store": None})})
    swept, left = retention._sweep(engine, THREE, dry_run=False)
    assert [name for name, _ in swept] == ["a", "c"]
    assert left == [("b", str(error))]


def test_servers_that_do_not_answer_end_the_job(monkeypatch: pytest.MonkeyPatch) -> None:
    def sweep(*_: object, **__: object) -> list[Swept]:
        raise Unreachable("nobody answers")

    monkeypatch.setattr(retention, "sweep", sweep)
    engine: Any = type("E", (), {"connection": type("C", (), {"target": None, "store": None})})
    with pytest.raises(dg.Failure, match="nobody answers"):
        retention._sweep(engine, THREE, dry_run=False)


def test_dumps_of_planned_windows_are_told_to_the_sweep(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = THREE.model_copy(update={"dump_root": f"{tmp_path.as_uri()}/dumps"})
    Approvals.of(policy).wait("b", PlannedWindow("1-2", "hdfs://d/1", "incremental", 1, 5.0, "1 operation", ()))
    kept: list[list[str]] = []

    def sweep(*_: object, planned: Callable[[], Iterable[str]], **__: object) -> list[Swept]:
        kept.append(list(planned()))
        return []

    monkeypatch.setattr(retention, "sweep", sweep)
    engine: Any = type("E", (), {"connection": type("C", (), {"target": None, "store": None})})
    retention._sweep(engine, policy, dry_run=False)
    assert kept == [["hdfs://d/1"]] * 3
