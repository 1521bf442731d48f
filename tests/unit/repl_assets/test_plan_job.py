"""What the job ``plan_<db>`` plans: the dump that the next window makes."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import dagster as dg
import pytest

from hive_replication.errors import MissingEvents
from hive_replication.load.replica.state import ReplicaState
from hive_replication.recover import Gap
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.specs import Specs
from repl_assets.jobs import plan
from repl_assets.steps import engine as module
from repl_assets.steps.engine import Engine
from tests.lags import POLICY

SPECS, SALES = Specs(POLICY), CatalogDatabase("sales", "", "", "", (), ())
GAP = Gap("missing events", 9, "event 9 is no longer in the source's log")


class Planned:
    """Runs the job; keeps which replica its dump was told of, and what was observed."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, gap: Gap | None = None, fails: Exception | None = None) -> None:
        self.made: list[Any] = []

        def dump(*_: object, made_with: object, **__: object) -> Any:
            self.made.append(made_with)
            if fails:
                raise fails
            return SimpleNamespace(directory="d", header=SimpleNamespace(kind="incremental"))

        state = ReplicaState("uuid/sales", 9, scope=POLICY.model_copy(update={"tables": ("a*",)}).scope("sales").text)
        source = SimpleNamespace(metastore=SimpleNamespace(current_event_id=lambda: 12), policy=POLICY, acid=True)
        target = SimpleNamespace(policy=POLICY, metastore=SimpleNamespace(table_names=lambda _: []))
        connection = cast("Any", SimpleNamespace(source=source, target=target, store=None))
        monkeypatch.setattr(Engine, "state", lambda *_: state)
        monkeypatch.setattr(module, "repl_dump", dump)
        monkeypatch.setattr(module, "find_gap", lambda *_, **__: gap)
        monkeypatch.setattr(plan, "connected_engine", lambda context, _: Engine(connection, cast("Any", None), context.log))
        monkeypatch.setattr(plan, "write_plan", lambda *_: SimpleNamespace(metadata={"plan": "of a load"}, summary=""))
        resources: dict[str, object] = dict.fromkeys(SPECS.names.resources, "none")
        with dg.DagsterInstance.ephemeral() as instance:
            done = plan.plan_job(SPECS, SALES).execute_in_process(instance=instance, resources=resources)
        seen = [event.asset_observation_data.asset_observation for event in done.all_events if event.is_asset_observation]
        self.shown = {name: one.value for name, one in seen[0].metadata.items()}


def test_a_plan_after_a_change_of_the_policy_is_of_the_tables_that_come_and_leave(monkeypatch: pytest.MonkeyPatch) -> None:
    planned = Planned(monkeypatch)
    (made,) = planned.made
    assert made is not None
    assert "a*" in made.scope
    assert planned.shown == {"plan": "of a load"}


@pytest.mark.parametrize(("gap", "fails"), [(GAP, None), (None, MissingEvents(GAP.reason))])
def test_a_plan_after_a_gap_says_that_the_window_compares(
    gap: Gap | None, fails: Exception | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = Planned(monkeypatch, gap, fails).shown
    assert shown["gap"] == f"missing events: {GAP.reason}"
    assert "compares the database with its source" in shown["plan"]
