"""What loads log of held tables."""

# No postponed annotations here: Dagster compares those of contexts as types.
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import dagster as dg
import pytest

from hive_replication.load.replica.state import ReplicaState
from hive_replication.policy.checks import Checks
from repl_assets.catalog.catalog import CatalogDatabase, CatalogTable
from repl_assets.catalog.specs import Specs
from repl_assets.checks.not_held import record_held
from repl_assets.steps.engine import Engine
from tests.lags import POLICY

WATCHED = POLICY.model_copy(update={"checks": Checks(run=("not_held",))})
APART = Specs(WATCHED), CatalogDatabase("sales", "", "", "", (CatalogTable("orders", False, "", "", (), (), "", ""),), ())
OVERFLOW = Specs(WATCHED, overflow=frozenset({"sales"})), CatalogDatabase("sales", "", "", "", (), (), overflow=1)


@pytest.fixture
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def load(instance: dg.DagsterInstance, of: tuple[Specs, CatalogDatabase], held: dict[str, str]) -> list[tuple[bool, str | None]]:
    """What a load logs whose replica holds these tables."""
    specs, database = of
    engine = cast("Engine", SimpleNamespace(state=lambda _: ReplicaState("uuid/sales", 9, held=held)))

    @dg.op(out=dg.Out(dg.Nothing))
    def step(context: dg.OpExecutionContext) -> None:
        record_held(context, engine, specs, database, repaired=False)

    @dg.job
    def job() -> None:
        step()

    events = job.execute_in_process(instance=instance).all_events
    found: list[Any] = [one.event_specific_data for one in events if one.event_type == dg.DagsterEventType.ASSET_CHECK_EVALUATION]
    return [(one.passed, one.description) for one in found]


@pytest.mark.parametrize("of", [APART, OVERFLOW])
def test_a_table_that_stays_held_is_logged_once_for_each_reason(
    of: tuple[Specs, CatalogDatabase], instance: dg.DagsterInstance
) -> None:
    full, denied = {"orders": "the disk is full"}, {"orders": "may not read"}
    assert load(instance, of, full) == [(False, "orders is held: the disk is full")]
    assert load(instance, of, full) == []
    assert load(instance, of, denied) == [(False, "orders is held: may not read")]
    assert load(instance, of, denied) == []
    assert load(instance, of, {}) == [(True, None)]
    assert load(instance, of, {}) == []
    assert len(load(instance, of, denied)) == 1


@pytest.mark.parametrize("of", [APART, OVERFLOW])
def test_a_held_table_that_was_materialized_since_is_logged_again(
    of: tuple[Specs, CatalogDatabase], instance: dg.DagsterInstance
) -> None:
    """Dagster shows an answer from before the latest materialization as none."""
    held = {"orders": "the disk is full"}
    assert len(load(instance, of, held)) == 1
    asset, partition = of[0].names.replica("sales", "orders")
    instance.report_runless_asset_event(dg.AssetMaterialization(asset, partition=partition))
    assert (len(load(instance, of, held)), load(instance, of, held)) == (1, [])
