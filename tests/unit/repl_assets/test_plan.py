"""Which dump a load takes where windows are approved, and the summary of a plan."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import dagster as dg
import pytest

from hive_replication.dump.format.record_types import DumpHeader, Scope
from hive_replication.errors import BadRequest, Refused
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.report import Collapsed
from hive_replication.metastore.types import Database
from hive_replication.plans import PlanReport
from hive_replication.plans.approval import Approvals, PlannedWindow
from hive_replication.plans.estimate import Estimate
from hive_replication.policy import Root
from repl_assets.catalog.keys import Window
from repl_assets.catalog.specs import Specs
from repl_assets.steps import plan
from repl_assets.steps.engine import Engine
from repl_assets.steps.plan import WrittenPlan, dump_to_load, withdraw_loaded
from repl_assets.steps.windows import dump_of
from tests.unit.repl_assets.test_dagster_definitions import policy

WINDOW = Window(100, 200)
PLANNED = PlannedWindow("100-200", "hdfs://d/1", "incremental", 7, 50.0, "1 operation", ("sales.orders: event 150",))


@pytest.fixture
def specs(tmp_path: Path) -> Specs:
    root = f"file://{tmp_path}/dumps"
    warehouse = policy().target.model_copy(update={"roots": (Root(uri=root),)})
    return Specs(policy().model_copy(update={"approval": True, "dump_root": root, "target": warehouse}))


@pytest.fixture
def approvals(specs: Specs) -> Approvals:
    return Approvals.of(specs.policy)


#: A dump of events up to 200, as a run of the window has made it.
EVENTS = DumpHeader("incremental", Scope("sales"), "uuid", Database("sales"), 100, 200, 5, "hash", 0.0)


def engine(applied: int | None = 100, scope: str = "", made: DumpHeader = EVENTS, **more: Any) -> Engine:
    """Of a replica that stands somewhere, and of the dump that was made."""
    state = ReplicaState("uuid/sales", applied, scope=scope, **more)
    reader = SimpleNamespace(directory="hdfs://d/sales/9", header=made)
    store = SimpleNamespace(open=lambda _: reader)
    source = SimpleNamespace(policy=policy(), acid=True)
    connection = SimpleNamespace(store=store, source=source, target=SimpleNamespace(policy=policy()))
    return cast("Engine", SimpleNamespace(target_name=lambda _: "sales_copy", state=lambda _: state, connection=connection))


def made() -> dg.AssetMaterialization:
    return dg.AssetMaterialization("dump", metadata={"directory": dg.PathMetadataValue("hdfs://d/sales/9")})


def approved_dump(specs: Specs, engine: Engine, window: Window = WINDOW) -> dg.AssetMaterialization | None:
    """The dump of the approved window; None where that which was made is loaded without an approval."""
    dump, approved = dump_to_load(specs, engine, "sales", window, made)
    assert approved or dump == made()
    return dump if approved else None


@pytest.fixture
def steps_now(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What the load of the planned dump would do now."""
    found = list(PLANNED.steps)
    monkeypatch.setattr(plan, "_plan", lambda *_: None)
    monkeypatch.setattr(plan, "steps", lambda _plan: tuple(found))
    return found


def test_without_approval_in_the_policy_no_plan_is_looked_for(specs: Specs) -> None:
    free = Specs(specs.policy.model_copy(update={"approval": False}))
    assert approved_dump(free, engine()) is None


def test_a_window_that_the_replica_has_applied_was_approved_before(specs: Specs) -> None:
    assert approved_dump(specs, engine(applied=200)) is None


@pytest.mark.parametrize(
    ("dump", "state", "why"),
    [
        (replace(EVENTS, kind="bootstrap", to_evid=230, recovery="token"), {}, "of the database as it was at event 230"),
        (replace(EVENTS, kind="bootstrap"), {}, "of the database as it was at event 200"),
        (replace(EVENTS, to_evid=201), {}, "ends at event 201, after 200, where the replica stands"),
        (replace(EVENTS, taken="another policy"), {}, "of other tables than the replica was made with"),
        (EVENTS, {"left": {"gone": 90}}, "replicas that have left the policy are dropped with it: gone"),
    ],
    ids=["a recovery", "a second bootstrap", "later events", "an earlier policy", "a replica dropped"],
)
def test_what_a_dump_brings_beside_applied_events_is_approved(specs: Specs, dump: DumpHeader, state: Any, why: str) -> None:
    """The window says nothing of it: that is applied already."""
    one = engine(200, specs.policy.scope("sales").text, dump, **state)
    one.connection.target.policy = policy().model_copy(update={"excluded": "drop"})  # type: ignore[misc]
    with pytest.raises(dg.Failure, match=f"dump of the window 100-200 of sales is not approved, and .*{why}"):
        approved_dump(specs, one)


def test_a_replica_of_an_earlier_version_is_caught_up_without_approval(specs: Specs) -> None:
    """It does not say with which tables it was made until a window does."""
    assert approved_dump(specs, engine(200, made=replace(EVENTS, taken="the present policy"))) is None


def test_a_dump_of_an_applied_window_that_is_approved_is_loaded(specs: Specs, approvals: Approvals, steps_now: list[str]) -> None:
    """A recovery of tables that are held."""
    recovery = engine(200, made=replace(EVENTS, kind="bootstrap", to_evid=230))
    approvals.wait("sales_copy", replace(PLANNED, kind="bootstrap", steps=tuple(steps_now)))
    with pytest.raises(dg.Failure, match="is not approved"):
        approved_dump(specs, recovery)
    approvals.approve("sales_copy", "100-200", "jo")
    assert approved_dump(specs, recovery) is not None


def test_a_change_of_the_policy_is_approved_even_without_events(specs: Specs, approvals: Approvals, steps_now: list[str]) -> None:
    quiet = Window(200, 200)
    same = engine(200, specs.policy.scope("sales").text)
    other = engine(200, specs.policy.model_copy(update={"exclude": ("orders",)}).scope("sales").text)
    assert approved_dump(specs, same, quiet) is None
    for window in (quiet, WINDOW):
        with pytest.raises(dg.Failure, match=f"window {window} of sales is not approved"):
            approved_dump(specs, other, window)
    approvals.wait("sales_copy", replace(PLANNED, window=str(quiet), steps=tuple(steps_now)))
    approvals.approve("sales_copy", str(quiet), "jo")
    assert approved_dump(specs, other, quiet) is not None


@pytest.mark.parametrize("applied", [None, 100])
def test_a_window_that_is_not_planned_is_not_loaded(specs: Specs, applied: int | None) -> None:
    with pytest.raises(dg.Failure, match="window 100-200 of sales is not approved"):
        approved_dump(specs, engine(applied))


def test_only_the_approved_window_is_loaded(specs: Specs, approvals: Approvals, steps_now: list[str]) -> None:
    approvals.wait("sales_copy", PLANNED)
    with pytest.raises(dg.Failure, match="is not approved"):
        approved_dump(specs, engine())
    approvals.approve("sales_copy", "100-200", "jo")
    with pytest.raises(dg.Failure, match="window 100-210 of sales is not approved"):
        approved_dump(specs, engine(), Window(100, 210))
    steps_now.clear()  # an interrupted load has less to do
    dump = approved_dump(specs, engine())
    assert dump is not None
    assert dump.asset_key == specs.names.database("sales", "dump")
    assert {name: value.value for name, value in dump.metadata.items()} == {
        "directory": "hdfs://d/1",
        "kind": "incremental",
        "events": 7,
    }


@pytest.mark.parametrize(("name", "value"), [("planned", 1e300), ("planned", -1), ("events", -1), ("events", 10**30)])
def test_a_plan_with_a_figure_that_cannot_be_shown_is_planned_again(
    approvals: Approvals, tmp_path: Path, name: str, value: float
) -> None:
    approvals.wait("sales_copy", PLANNED)
    (file,) = (tmp_path / "dumps" / ".plans").rglob("*.json")
    file.write_text(json.dumps(json.loads(file.read_text()) | {name: value}))
    assert approvals.waiting("sales_copy") is None


def test_a_load_that_would_do_more_than_planned_withdraws_the_approval(
    specs: Specs, approvals: Approvals, steps_now: list[str]
) -> None:
    approvals.wait("sales_copy", PLANNED)
    approvals.approve("sales_copy", "100-200", "jo")
    steps_now.append("sales.orders: held at event 160")
    with pytest.raises(dg.Failure, match=r"changed since it was approved.*also sales\.orders: held at event 160"):
        approved_dump(specs, engine())
    assert approvals.waiting("sales_copy") is None


@pytest.mark.parametrize(
    "error", [BadRequest("there is no dump at hdfs://d/1"), Refused("it is of a recovery compared before other loads changed it")]
)
def test_a_plan_whose_dump_can_never_be_loaded_is_withdrawn(
    specs: Specs, approvals: Approvals, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    """Each tick loaded it again, and it was never planned again."""

    def gone(*_: object) -> None:
        raise error

    monkeypatch.setattr(plan, "_plan", gone)
    approvals.wait("sales_copy", PLANNED)
    approvals.approve("sales_copy", "100-200", "jo")
    with pytest.raises(dg.Failure, match=str(error)):
        approved_dump(specs, engine())
    assert approvals.waiting("sales_copy") is None


@pytest.mark.parametrize(("applied", "stays"), [(200, False), (250, False), (199, True), (None, True)])
def test_a_plan_goes_when_its_window_is_loaded(specs: Specs, approvals: Approvals, applied: int | None, stays: bool) -> None:
    approvals.wait("sales_copy", PLANNED)
    withdraw_loaded(specs, engine(applied), "sales", WINDOW)
    assert (approvals.waiting("sales_copy") is not None) is stays


def test_the_summary_counts_operations_and_files() -> None:
    no_plan: Any = None  # the summary does not look at it
    estimate = Estimate(90.0, "rates")
    report = PlanReport(no_plan, 0.0, (), {"AddPartitions": 2, "DropTable": 1}, {"source": 4}, 2_000_000, Collapsed(), estimate)
    assert WrittenPlan(report, {}).summary.startswith("3 operations, 4 files (")


def test_what_was_reported_by_hand_is_no_dump(specs: Specs) -> None:
    """Dagster's button leaves a materialization without metadata: the plan ended in a KeyError."""
    key = specs.names.database("sales", "dump")
    with dg.DagsterInstance.ephemeral() as instance:
        context = cast("dg.AssetExecutionContext", SimpleNamespace(instance=instance))
        for metadata in (None, {}, {"directory": dg.PathMetadataValue("")}):
            if metadata is not None:
                instance.report_runless_asset_event(dg.AssetMaterialization(key, partition="100-200", metadata=metadata))
            with pytest.raises(dg.Failure, match=r"the window 100-200 has no dump yet: materialize .*dump too"):
                dump_of(context, key, "100-200")
        instance.report_runless_asset_event(dg.AssetMaterialization(key, partition="100-200", metadata=made().metadata))
        assert dump_of(context, key, "100-200").metadata == made().metadata
