"""What the repair of chosen partitions records, without servers."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace

import dagster as dg
import pytest

from hive_replication.load.report import LoadReport, Touched
from hive_replication.repair import Repair
from repl_assets.assets.tables import load_tables_asset
from repl_assets.catalog.keys import Names
from repl_assets.catalog.specs import Specs
from repl_assets.dagster_private import DATA_VERSION_TAG
from tests.unit.repl_assets.test_dagster_definitions import CATALOG, policy

REPORT = LoadReport(
    "dir",
    "sales_copy",
    6,
    9,
    touched=(Touched("orders", "orders", 9, partitions=("ds=1", "ds=2"), dropped_partitions=("ds=3",)),),
)


@pytest.mark.parametrize("whole", [False, True])
def test_a_repair_of_partitions_that_became_one_of_the_table_records_the_others(
    whole: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no events bring the rest of the table up, all of it is dumped, and loaded."""
    specs, module = Specs(policy()), import_module("repl_assets.assets.tables")
    names: Names = specs.names
    engine = SimpleNamespace(repair=lambda *_: Repair("dir", REPORT), is_whole=lambda _: whole, state=lambda _: None)
    monkeypatch.setattr(module, "connected_engine", lambda *_: engine)
    monkeypatch.setattr(module, "record_held", lambda *_, **__: None)
    monkeypatch.setattr(module, "_dump_of_run", lambda *_: "dir")
    orders, days = names.table("sales", "orders", "load"), str(names.partitions("sales", "orders").name)
    asset = load_tables_asset(specs, CATALOG.databases[0])
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(days, ["ds=1", "ds=3", "ds=4"])
        done = dg.materialize(
            [asset],
            instance=instance,
            selection=[orders],
            partition_key="ds=1",
            resources=dict.fromkeys(names.resources, "none"),
        )
        made = [event.step_materialization_data.materialization for event in done.all_events if event.is_step_materialization]
        known = instance.get_dynamic_partitions(days)
    shown = {(str(one.partition), (one.tags or {}).get(DATA_VERSION_TAG, "")) for one in made if one.asset_key == orders}
    others = {("ds=2", "9"), ("ds=3", "dropped at 9")}
    assert shown == {("ds=1", "9")} | (others if whole else set())
    assert sorted(known) == (["ds=1", "ds=2", "ds=4"] if whole else ["ds=1", "ds=3", "ds=4"])
