"""The job ``retention``: what becomes of the other databases where one cannot be swept."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from hive_replication.errors import BadRequest, Refused, ReplicationError, Unreachable
from hive_replication.load.retention.sweep import Swept
from hive_replication.plans.approval import Approvals, PlannedWindow
from hive_replication.storage import Denied
from repl_assets.catalog.specs import Specs
from repl_assets.jobs import retention
from tests.lags import POLICY

THREE = POLICY.model_copy(update={"databases": {"a": "a", "b": "b", "c": "c"}})


def run(monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], dict[str, dg.MetadataValue[Any]]]:
    """How the job fails, and what it tells."""
    engine: Any = type("E", (), {"connection": type("C", (), {"target": None, "store": None})})
    specs = Specs(THREE)
    monkeypatch.setattr(retention, "connected_engine", lambda *_: engine)
    with dg.DagsterInstance.ephemeral() as instance:
        done = retention.retention_job(specs).execute_in_process(
            instance=instance, raise_on_error=False, resources=dict.fromkeys(specs.names.resources, "none")
        )
    ends = [event.step_failure_data.user_failure_data for event in done.all_events if event.is_step_failure]
    told = [event.step_output_data.metadata for event in done.all_events if event.is_successful_output]
    failures = [one for one in ends if one is not None]
    return [str(one.description) for one in failures], dict([*told, *(one.metadata for one in failures)][0])


@pytest.mark.parametrize(
    ("error", "fails"),
    [
        (Denied("closed"), True),
        (ReplicationError("a report is damaged"), True),
        (Refused("a load runs"), False),
        (BadRequest("the target has no database 'b'"), False),
    ],
)
def test_a_database_that_cannot_be_swept_is_left_and_the_others_are_swept(
    error: ReplicationError, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The job ended green each night while nothing was freed; a load or another policy in the way is no failure."""

    def sweep(_: object, name: str, *__: object, **___: object) -> list[Swept]:
        if name == "b":
            raise error
        return [Swept("old data", f"hdfs://t/{name}", "", 5)]

    monkeypatch.setattr(retention, "sweep", sweep)
    failures, told = run(monkeypatch)
    assert failures == ([f"b: {error}"] if fails else [])
    assert [f"| {name} | old data | 5 B | hdfs://t/{name} |" in str(told["old data"].value) for name in "abc"] == [
        True,
        False,
        True,
    ]
    assert f"| b | {error} |" in str(told["left for later"].value)


def test_what_cannot_be_removed_fails_the_job_once_the_rest_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """As ``hive-repl retention`` does: an account that lost the right to delete freed nothing, and each run was green."""

    def sweep(_: object, name: str, *__: object, **___: object) -> list[Swept]:
        return [Swept("retired", f"hdfs://t/{name}/{n}", "", 5, "permission denied" if name == "b" else "") for n in (1, 2)]

    monkeypatch.setattr(retention, "sweep", sweep)
    failures, told = run(monkeypatch)
    assert failures == ["2 removals failed, the first is hdfs://t/b/1: permission denied"]
    assert (told["deleted"].value, str(told["left for later"].value).count("permission denied")) == ("20 B", 2)


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
