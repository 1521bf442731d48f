"""The configuration of the jobs ``repair_<db>`` and ``failover_<db>``, as users write it in the Launchpad."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from importlib import import_module
from types import MappingProxyType, SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from hive_replication.load.replica.state import ReplicaState
from hive_replication.policy.checks import Checks
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.specs import Specs
from repl_assets.checks.findings import Finding
from repl_assets.jobs.failover import failover_job
from repl_assets.jobs.repair import repair_job, repair_request
from tests.lags import POLICY

SPECS = Specs(POLICY.model_copy(update={"checks": Checks(run=("schema_equal", "not_held"))}), overflow=frozenset({"sales"}))
SALES = CatalogDatabase("sales", "", "", "", (), (), overflow=1)


def failure(job: dg.JobDefinition, config: dict[str, Any]) -> str:
    """Why a run with this configuration fails, "" where it does not."""
    (op,) = job.nodes
    with dg.DagsterInstance.ephemeral() as instance:
        done = job.execute_in_process(
            run_config={"ops": {op.name: {"config": config}}},
            instance=instance,
            raise_on_error=False,
            resources=dict.fromkeys(SPECS.names.resources, "none"),
        )
        failures = [event.step_failure_data for event in done.all_events if event.is_step_failure]
    return "".join(str(one.user_failure_data.description) if one.user_failure_data else str(one.error) for one in failures)


def repairs(
    monkeypatch: pytest.MonkeyPatch,
    held: Mapping[str, str] = MappingProxyType({"u": "failed"}),
    undone: int | None = None,
    specs: Specs = SPECS,
    paused: str = "",
    **config: Any,
) -> tuple[str, list[object]]:
    """How a repair with this configuration fails where these are held, and what it repairs and checks."""
    done: list[object] = []
    job = import_module("repl_assets.jobs.repair")
    engine = SimpleNamespace(
        connection=SimpleNamespace(source=None, target=None),
        state=lambda _: ReplicaState("uuid/sales", 100, held=held, undone=undone, paused=paused),
        target_name=lambda name: f"{name}_dr",
    )
    monkeypatch.setattr(job, "connected_engine", lambda *_: engine)
    monkeypatch.setattr(job, "record_held", lambda *_, **__: None)
    monkeypatch.setattr(job, "repair_table", lambda *given: done.append(given[5:]))

    def find(check: object, _: object, table: str, __: object) -> Finding:
        done.append((getattr(check, "name", ""), table))
        return Finding()

    monkeypatch.setattr("repl_assets.checks.table_checks.TableCheck.find", find)
    return failure(repair_job(specs, SALES), config), done


def test_a_repair_takes_the_table_whatever_its_case(monkeypatch: pytest.MonkeyPatch) -> None:
    why, done = repairs(monkeypatch, table=" ORDERS", partitions=["ds=A"], checks=["schema_equal"])
    assert (why, done) == ("", [("orders", ("ds=A",)), ("schema_equal", "orders")])


def test_a_repair_without_a_table_is_one_of_what_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    assert repairs(monkeypatch) == ("", [("u",)])


def test_a_repair_of_what_is_held_ends_no_undo_and_fails_for_no_function(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Tables that were undone by request went on to the bad data, and the job failed as long as a function was held."""
    held = {"t": "undone to 90 by request", "s": "held with t: undone to 90 by request", "u": "failed", "f()": "failed"}
    assert repairs(monkeypatch, held) == ("", [("u",)])
    told = capfd.readouterr().err
    assert "t is not repaired: it was undone on purpose: hive-repl undo sales_dr.t --release lets it follow" in told
    assert "s is not repaired: a rename or a transaction joins it to the table that is named" in told
    assert "f() is not repaired: a function is repaired with its database: hive-repl repair sales" in told


@pytest.mark.parametrize(
    ("table", "undone", "why"),
    [
        ("t", None, "t is not repaired: it was undone on purpose: hive-repl undo sales_dr.t --release lets it follow"),
        ("s", None, "s is not repaired: a rename or a transaction joins it to the table that is named"),
        ("u", 90, "the target database 'sales_dr' was undone to event 90 by request and loads nothing later"),
        ("u", None, ""),
    ],
)
def test_a_repair_that_a_sensor_asked_for_ends_no_undo_since(
    table: str, undone: int | None, why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The run waits for the pool of loads, maybe for hours; whoever starts one by hand names the table, and is obeyed."""
    held = {"t": "undone to 90 by request", "s": "held with t: undone to 90 by request", "u": "failed"}
    (config,) = repair_request(SPECS.names, "sales", table, [], run_key="k").run_config["ops"].values()
    found, done = repairs(monkeypatch, held, undone, **config["config"])
    assert (found.startswith(why) and bool(found) == bool(why), done) == (True, [] if why else [(table, ())])
    assert repairs(monkeypatch, held, undone, table=table) == ("", [(table, ())])


def test_a_repair_that_a_sensor_asked_for_changes_nothing_that_was_paused_since(monkeypatch: pytest.MonkeyPatch) -> None:
    (config,) = repair_request(SPECS.names, "sales", "t", [], run_key="k").run_config["ops"].values()
    found, done = repairs(monkeypatch, paused="by anna: the disk is full", **config["config"])
    assert found.startswith("t is not repaired: sales was paused by anna: the disk is full, before this repair began: once it is")
    assert done == []
    assert repairs(monkeypatch, paused="by anna", table="t") == ("", [("t", ())])


def test_what_a_sensor_has_found_is_repaired_by_hand_where_loads_are_approved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The dump of a repair is of the table as it is now, with events of windows that nobody has approved yet."""
    specs = replace(SPECS, policy=SPECS.policy.model_copy(update={"approval": True}))
    (config,) = repair_request(SPECS.names, "sales", "t", [], run_key="k").run_config["ops"].values()
    found, done = repairs(monkeypatch, specs=specs, **config["config"])
    assert found.startswith("t differs from the source, and is repaired only by hand, since the policy asks for approval")
    assert done == []
    assert repairs(monkeypatch, specs=specs, table="t") == ("", [("t", ())])


@pytest.mark.parametrize(
    ("config", "why"),
    [
        ({"partitions": ["ds=1"]}, "the configuration names partitions or checks: name their table, too"),
        ({"checks": ["not_held"]}, "the configuration names partitions or checks: name their table, too"),
        (
            {"table": "orders", "checks": ["row_count"]},
            "the policy enables no check row_count of tables; it enables not_held, schema_equal",
        ),
    ],
)
def test_a_repair_that_would_do_something_else_is_refused(
    config: dict[str, Any], why: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert repairs(monkeypatch, **config) == (why, [])


def test_a_failover_drops_nothing_but_on_the_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    job = import_module("repl_assets.jobs.failover")
    monkeypatch.setattr(job, "connected_engine", lambda *_: SimpleNamespace(by="jo", connection=None))
    why = failure(failover_job(SPECS, SALES), {"step": "finish", "drop": True})
    assert why == "drop belongs to the step reverse: the step finish drops nothing"
