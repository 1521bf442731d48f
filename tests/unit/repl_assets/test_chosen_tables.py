"""Tables that an operator materializes together: one that cannot be repaired leaves the others their turn."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from hive_replication import DumpResult
from hive_replication.dump.format.record_types import DumpHeader, Scope
from hive_replication.errors import BadRequest, ReplicationError, Unreachable
from hive_replication.load.report import Held, LoadReport, Touched
from hive_replication.metastore.types import Database
from hive_replication.repair import Repair
from hive_replication.statements import ReplDump
from repl_assets.assets import tables
from repl_assets.catalog.catalog import CatalogDatabase
from repl_assets.catalog.specs import Specs
from tests.lags import POLICY
from tests.unit.repl_assets.test_dagster_definitions import table

SPECS = Specs(POLICY)
SALES = CatalogDatabase("sales", "", "", "", tuple(map(table, "abc")), ())
EVENTS = "hdfs://d/events"
GONE = BadRequest("the source has no table sales.b")


class Run:
    """A step over the tables a, b and c, of which b cannot be dumped, or is held; or whose lane changed another one, too."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, error: ReplicationError | None, held: str = "", lane: str = "") -> None:
        self.error, self.held, self.lane, self.recorded = error, held, lane, 0
        self.dumped, self.stood, self.loaded = list[str | None](), list[object](), dict[str, str]()
        engine = SimpleNamespace(dump=self.dump, repair=self.repair, state=lambda _: tuple(self.dumped))
        monkeypatch.setattr(tables, "connected_engine", lambda *_: engine)
        monkeypatch.setattr(tables, "record_held", self.record_held)

    def dump(self, statement: ReplDump, _: object) -> DumpResult:
        self.dumped.append(statement.table)
        if statement.table == "b" and self.error is not None:
            raise self.error
        header = DumpHeader("bootstrap", Scope("sales", statement.table), "uuid", Database(name="sales"), 9, 9, 0, "", 1.0)
        return DumpResult(f"hdfs://d/{statement.table}", 9, header, 1, 0, 0, 0)

    def repair(self, _: str, name: str, directory: str, __: Callable[[], str], stood: object) -> Repair:
        self.stood.append(stood)
        self.loaded[name] = directory
        held = (Held((name,), 5, 8, "no space"),) if name in self.held else ()
        touched = tuple(Touched(one, one, 9) for one in self.lane if name in self.lane)
        events = (LoadReport(EVENTS, "sales", 5, 9, touched=touched),) if touched else ()
        return Repair(directory, LoadReport(directory, "sales", 1, 9, held=held), events)

    def record_held(self, *_: object, **__: object) -> None:
        self.recorded += 1

    def of(self, *assets: dg.AssetsDefinition) -> tuple[list[str], str]:
        """The tables that were materialized by the last asset, and why the step failed."""
        resources: dict[str, Any] = dict.fromkeys(SPECS.names.resources, "none")
        with dg.DagsterInstance.ephemeral() as instance:
            done = dg.materialize(assets, instance=instance, resources=resources, raise_on_error=False)
        made = [event.step_materialization_data.materialization for event in done.get_asset_materialization_events()]
        failures = [event.step_failure_data for event in done.all_events if event.is_step_failure]
        why = "".join(str(one.user_failure_data.description) if one.user_failure_data else str(one.error) for one in failures)
        return [one.asset_key.path[-1] for one in made if one.asset_key in assets[-1].keys], why


def test_a_table_that_cannot_be_repaired_leaves_the_others_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, GONE)
    assert run.of(tables.load_tables_asset(SPECS, SALES)) == (["a", "c"], "b: the source has no table sales.b")
    assert run.recorded == 1  # else the checks of a stay red


def test_a_table_that_cannot_be_dumped_leaves_the_others_their_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, GONE)
    assert run.of(tables.dump_tables_asset(SPECS, SALES)) == (["a__dump", "c__dump"], "b: the source has no table sales.b")


def test_a_failure_is_one_of_held_tables_where_nothing_else_failed(monkeypatch: pytest.MonkeyPatch) -> None:
    """The alarm of held tables ends where none is held any more; that of others needs a repair."""
    asset = tables.load_tables_asset(SPECS, SALES)
    assert Run(monkeypatch, None, held="ac").of(asset) == (["b"], "a is not repaired: no space; c is not repaired: no space")
    reasons = "a is held: no space; b: the source has no table sales.b"
    assert Run(monkeypatch, GONE, held="a").of(asset) == (["c"], reasons)


def test_servers_that_do_not_answer_fail_all_tables_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, Unreachable("nobody answers"))
    assert run.of(tables.load_tables_asset(SPECS, SALES)) == (["a"], "nobody answers")
    assert run.recorded == 1


def test_a_table_that_is_undone_while_another_is_repaired_is_not_repaired(monkeypatch: pytest.MonkeyPatch) -> None:
    """All are told where the target stood before the first: the load of one that was undone since is refused."""
    run = Run(monkeypatch, None)
    run.of(tables.load_tables_asset(SPECS, SALES))
    assert run.stood == [()] * 3


def test_a_table_is_repaired_by_its_own_dump_after_events_that_changed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the repair of a logged of b in this run, the dump of the events of both, was loaded for b: of the whole database."""
    run = Run(monkeypatch, None, lane="ab")
    run.of(tables.dump_tables_asset(SPECS, SALES), tables.load_tables_asset(SPECS, SALES))
    assert run.loaded == {"a": "hdfs://d/a", "b": "hdfs://d/b", "c": "hdfs://d/c"}
    assert run.dumped == ["a", "b", "c"]


def test_a_table_without_a_dump_in_its_run_is_dumped_whatever_events_changed_it(monkeypatch: pytest.MonkeyPatch) -> None:
    run = Run(monkeypatch, None, lane="ab")
    run.of(tables.load_tables_asset(SPECS, SALES))
    assert run.loaded["b"] == "hdfs://d/b"
    assert run.dumped == ["a", "b", "c"]
