"""The dump of a window says in its metadata by what it has listed directories, as the run that looks for drift does."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace

import dagster as dg
import pytest

from hive_replication.parallel import Threads, ThresholdCalls
from repl_assets.assets.databases import dump_asset
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.specs import Specs
from tests.lags import POLICY


@pytest.mark.parametrize(("directories", "shown"), [(0, None), (3, "threads"), (4, "Spark, application app-1")])
def test_a_dump_says_by_what_it_has_listed(monkeypatch: pytest.MonkeyPatch, directories: int, shown: str | None) -> None:
    specs, module = Specs(POLICY), import_module("repl_assets.assets.databases")
    calls = ThresholdCalls(Threads(1, "t"), lambda: Threads(1, "spark"), most=3)
    side = SimpleNamespace(storage=SimpleNamespace(many=calls))

    def dump_window(*_: object) -> tuple[object, None]:
        assert len(list(calls.map(int, "1" * directories))) == directories
        header = SimpleNamespace(kind="bootstrap", from_evid=1, to_evid=2, left_out={})
        figures = dict.fromkeys(("events", "tables", "partitions", "files"), 0)
        return SimpleNamespace(directory="file:///d", last_evid=2, header=header, **figures), None

    engine = SimpleNamespace(dump_window=dump_window, connection=SimpleNamespace(source=side, target=side))
    monkeypatch.setattr(module, "connected_engine", lambda *_: engine)
    asset = dump_asset(specs, CatalogDatabase("sales", "", "", "", (), ()))
    with dg.DagsterInstance.ephemeral() as instance:
        instance.add_dynamic_partitions(str(specs.names.windows.name), ["1-2"])
        spark = SimpleNamespace(application=lambda: "app-1")
        done = dg.materialize(
            [asset], instance=instance, partition_key="1-2", resources=dict.fromkeys(specs.names.resources, spark)
        )
        [made] = [event.step_materialization_data.materialization for event in done.all_events if event.is_step_materialization]
    assert (made.metadata["listed by"].value if "listed by" in made.metadata else None) == shown
