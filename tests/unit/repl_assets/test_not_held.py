"""What loads log of held tables."""

# No postponed annotations here: Dagster compares those of contexts as types.
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import dagster as dg
import pytest

from hive_replication.lag import Lag
from hive_replication.load.replica.held_reasons import JOINED_REASON, LEFT_OUT_REASON, UNDONE_REASON
from hive_replication.load.replica.state import ReplicaState
from hive_replication.policy.checks import Checks
from repl_assets.catalog.catalog import CatalogDatabase, CatalogTable
from repl_assets.catalog.keys import Names
from repl_assets.catalog.specs import Specs
from repl_assets.checks.findings import REPAIR_PAGE, WHAT_TO_DO, EvaluationKey
from repl_assets.checks.not_held import held_advice, held_finding, record_held
from repl_assets.checks.up_to_date import answer
from repl_assets.steps.engine import Engine
from tests.lags import LATE, POLICY, WELL

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


NAMES = Names.of(POLICY)
REFUSED = "hdfs://target:8020/w/orders: Permission denied"


def test_a_held_table_says_what_to_do_and_links_to_its_repair() -> None:
    """It said only why it is held."""
    key = EvaluationKey.of(NAMES, "sales", "orders", "not_held")
    state = ReplicaState("uuid/sales", 9, held={"orders": REFUSED}, at={"orders": 5})
    found = held_finding(state, "orders", "sales", "sales_dr").evaluation(key)
    assert found.metadata[REPAIR_PAGE] == dg.MetadataValue.url("/assets/default/sales/orders")
    assert str(found.metadata[WHAT_TO_DO].value).startswith("give the account that replicates the right")
    assert WHAT_TO_DO not in held_finding(state, "other", "sales", "sales_dr").evaluation(key).metadata


def test_what_was_undone_on_purpose_has_no_link_that_would_end_that() -> None:
    held = {"orders": f"{UNDONE_REASON}90 by request", "turnover": f"{JOINED_REASON}orders: {UNDONE_REASON}90 by request"}
    state = ReplicaState("uuid/sales", 100, held=held, at=dict.fromkeys(held, 90))
    for table in held:
        key = EvaluationKey.of(NAMES, "sales", table, "not_held")
        assert REPAIR_PAGE not in held_finding(state, table, "sales", "sales_dr").evaluation(key).metadata
    key = EvaluationKey.of(NAMES, "sales", "orders", "not_held")
    advice = held_finding(state, "orders", "sales", "sales_dr").evaluation(key).metadata[WHAT_TO_DO]
    assert "hive-repl undo sales_dr.orders --release" in str(advice.value)


def test_a_table_that_is_left_out_has_no_link_to_a_repair_that_would_change_nothing() -> None:
    """The policy or the source is to be changed first, as its advice says."""
    held = {"ice": f"{LEFT_OUT_REASON}tables of Iceberg are not replicated"}
    key = EvaluationKey.of(NAMES, "sales", "ice", "not_held")
    found = held_finding(ReplicaState("uuid/sales", 9, held=held), "ice", "sales", "sales_dr").evaluation(key)
    assert REPAIR_PAGE not in found.metadata
    assert "exclude the table in the policy" in str(found.metadata[WHAT_TO_DO].value)
    assert "[repair]" not in str(held_advice(NAMES, "sales", "sales_dr", held)[WHAT_TO_DO].value)


def test_held_tables_are_told_together_with_a_link_each() -> None:
    held = {"a [b](/x)": REFUSED, "f()": REFUSED, "old": f"{UNDONE_REASON}90 by request"}
    shown = str(held_advice(NAMES, "sales", "sales_dr", held)[WHAT_TO_DO].value).splitlines()[2:]
    assert shown[0].startswith("| a \\[b\\](/x) | give the account")
    assert shown[0].endswith("| [repair](/assets/default/sales/a.20.5bb.5d.28.2fx.29) |")
    assert all(line.endswith(" |  |") for line in shown[1:]), "a function has no page"
    assert held_advice(NAMES, "sales", "sales_dr", {}) == {}


def test_freshness_that_fails_for_held_tables_says_what_to_do() -> None:
    found = answer(Lag("sales", "sales_dr", 7, 9, 0, 0.0, held=(("orders", REFUSED),)), NAMES, 600.0)
    assert "[repair](/assets/default/sales/orders)" in str(found["metadata"][WHAT_TO_DO].value)
    assert WHAT_TO_DO not in answer(Lag("sales", "sales_dr", 9, 9, 0, 0.0), NAMES, 600.0)["metadata"]


@pytest.mark.parametrize(
    ("found", "advice"),
    [
        (LATE, "look at its last runs"),
        (replace(WELL, seconds_behind=None, waiting=None, gap="events were purged"), "the next window recovers by itself"),
        (replace(WELL, seconds_behind=None, waiting=None, gap="no number", unreadable=True), "drop the replica and bootstrap"),
        (replace(LATE, stopped="paused since noon"), "hive-repl resume sales"),
        (replace(WELL, applied=None, seconds_behind=None), "the sensor bootstraps it"),
        (WELL, ""),
        (replace(WELL, applied=None, seconds_behind=None, in_source=False), ""),
    ],
    ids=["late", "gap", "damaged", "paused", "no replica", "well", "dropped at the source"],
)
def test_freshness_that_fails_says_what_to_do(found: Lag, advice: str) -> None:
    """It did for held tables alone."""
    shown = answer(found, NAMES, 600.0)["metadata"].get(WHAT_TO_DO)
    assert (advice in shown) if advice else shown is None
