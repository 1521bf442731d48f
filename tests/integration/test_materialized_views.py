"""Materialized views, replicated as ordinary views of the same definition (policy ``materialized_views: definition``)."""

from __future__ import annotations

import pytest

import hive_replication
from hive_replication import failover
from hive_replication.connect import connect
from hive_replication.load.replica.state import replica_state
from hive_replication.load.report import LoadReport
from hive_replication.metastore.types import Table, copy_of
from hive_replication.policy.swap import swapped
from hive_replication.verify.witness import witness
from resources.embedded.hive import HiveDriver
from tests.integration.test_acid import FULL
from tests.integration.test_policy_change import state, step
from tests.pair import Direction
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]

_DATA = {"transactional", "transactional_properties", "numRows", "numFiles", "totalSize", "COLUMN_STATS_ACCURATE"}


def replica(warehouse: Warehouse, name: str) -> Table | None:
    return warehouse.connection.target.metastore.table(warehouse.connection.source.policy.target_of(warehouse.database), name)


def materialize(warehouse: Warehouse, name: str, text: str, like: str = "plain") -> None:
    """As CREATE MATERIALIZED VIEW makes it, without the job for its rows, which Hive 3.1.3 cannot run here."""
    metastore = warehouse.connection.source.metastore
    view = copy_of(metastore.table(warehouse.database, like))
    assert view is not None
    view.tableName, view.tableType, view.sd.location, view.parameters = name, "MATERIALIZED_VIEW", None, {"comment": "made"}
    view.viewOriginalText = view.viewExpandedText = text.format(db=warehouse.database)
    metastore.create_table(view)


def same(warehouse: Warehouse) -> set[str]:
    """The tables and views of the policy, which are all equal."""
    found = {one.table: one.differences for one in hive_replication.verify(warehouse.connection, warehouse.database)}
    assert found == dict.fromkeys(found, ())
    return set(found)


def same_objects(warehouse: Warehouse) -> list[str]:
    """What the witness sees differ."""
    found = witness(warehouse.connection.source, warehouse.connection.target, warehouse.database)
    return [str(one) for one in found.differences]


@pytest.mark.long
@pytest.mark.timeout(600)
def test_definitions_and_rebuilds_by_real_hive(acid: Warehouse, hive4_target: HiveDriver) -> None:
    """Bootstrap, windows with rebuilds, changes and drops: nothing is held for them, and nothing of their data copied."""
    views, name = acid.with_policy(materialized_views="definition"), acid.database

    def replicated() -> LoadReport:
        report = step(views)
        assert (report.held, {"/t/" in one.task.target for one in report.copies}) == ((), {True})
        return report

    def read(table: str) -> list[str]:
        (found,) = hive4_target.execute(f"SELECT * FROM {name}.{table}")
        return sorted(found.rows)

    acid.sql(
        f"CREATE TABLE t (a INT, b STRING) {FULL}",
        "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
        "CREATE MATERIALIZED VIEW large COMMENT 'of t' TBLPROPERTIES ('team'='bi') AS SELECT a, b FROM t WHERE a > 1",
        "CREATE MATERIALIZED VIEW parts PARTITIONED ON (b) AS SELECT b, a FROM t",
    )
    assert views.replicate().held == ()
    assert same(views) == {"t", "large", "parts"}
    made = replica(views, "large")
    assert made is not None
    assert (made.tableType, made.parameters["comment"], made.parameters["team"]) == ("VIRTUAL_VIEW", "of t", "bi")
    assert not _DATA & made.parameters.keys()
    assert read("large") == ["2\ty"]
    acid.sql(
        "INSERT INTO t VALUES (3, 'z')",
        "ALTER MATERIALIZED VIEW large REBUILD",
        "ALTER MATERIALIZED VIEW parts REBUILD",
        "ALTER MATERIALIZED VIEW large DISABLE REWRITE",
        "CREATE MATERIALIZED VIEW later AS SELECT b FROM t",
        "ALTER MATERIALIZED VIEW later REBUILD",
        "CREATE MATERIALIZED VIEW passing AS SELECT b FROM t",
        "DROP MATERIALIZED VIEW passing",
    )
    replicated()
    assert same(views) == {"t", "large", "parts", "later"}
    assert (read("large"), read("later")) == (["2\ty", "3\tz"], ["x", "y", "z"])
    acid.sql("INSERT INTO t VALUES (4, 'z')", "ALTER MATERIALIZED VIEW large REBUILD", "DROP MATERIALIZED VIEW later")
    replicated()
    assert (same(views), read("large")) == ({"t", "large", "parts"}, ["2\ty", "3\tz", "4\tz"])


def test_names_of_databases_renames_and_drops(warehouse: Warehouse) -> None:
    """Its texts name the target's databases, as those of other views do."""
    warehouse.sql("CREATE TABLE plain (a STRING)")
    materialize(warehouse, "one", "SELECT a FROM {db}.plain")
    other = f"{warehouse.database}_copy"
    views = warehouse.with_policy(databases={warehouse.database: other}, materialized_views="definition")
    connection, metastore = views.connection, warehouse.connection.source.metastore
    dump = hive_replication.dump(connection, views.database)
    assert hive_replication.load(connection, dump.directory, other).held == ()

    def window() -> None:
        evid = replica_state(connection.target.metastore.database(other)).applied
        dump = hive_replication.dump(connection, views.database, from_evid=evid)
        assert hive_replication.load(connection, dump.directory, other).held == ()

    materialize(warehouse, "two", "SELECT a FROM {db}.plain")
    window()
    for name in ("one", "two"):
        found = replica(views, name)
        assert found is not None
        assert (found.tableType, found.viewExpandedText) == ("VIRTUAL_VIEW", f"SELECT a FROM `{other}`.plain")
    assert same(views) == {"plain", "one", "two"}
    renamed = copy_of(metastore.table(views.database, "one"))
    assert renamed is not None
    renamed.tableName = "three"
    metastore.alter_table(views.database, "one", renamed)
    metastore.drop_table(views.database, "two")
    window()
    assert (same(views), replica(views, "one"), replica(views, "two")) == ({"plain", "three"}, None, None)


def test_the_setting_is_switched_on_and_off(warehouse: Warehouse) -> None:
    """On, it comes with the next window, which needs no event; off, it is kept or dropped as tables that are excluded."""
    warehouse.sql("CREATE TABLE plain (a STRING)", "CREATE VIEW ordinary AS SELECT a FROM plain")
    materialize(warehouse, "one", "SELECT a FROM {db}.plain")
    off, on = warehouse.with_policy(), warehouse.with_policy(materialized_views="definition")
    report = off.replicate()
    assert any("one" in skipped.what and "materialized" in skipped.reason for skipped in report.skipped)
    assert (replica(off, "one"), '"materialized_views"' in state(off).scope) == (None, False)
    assert step(on).held == ()
    assert same(on) == {"plain", "ordinary", "one"}
    materialize(warehouse, "two", "SELECT a FROM plain")
    assert step(on).held == ()
    assert step(off).held == ()
    assert set(state(off).left) == {"one", "two"}
    assert (same(off), replica(off, "one") is not None) == ({"plain", "ordinary"}, True)
    assert same_objects(off) == []
    warehouse.connection.source.metastore.drop_table(warehouse.database, "two")
    assert step(off).held == ()
    assert step(on).held == ()
    assert (set(state(on).left), same(on)) == (set(), {"plain", "ordinary", "one"})
    assert step(warehouse.with_policy(excluded="drop")).applied["DropTable"] == 1
    assert (replica(off, "one"), replica(off, "ordinary") is not None, state(off).left) == (None, True, {})


@pytest.mark.parametrize("policy", ["refuse", "replace", "keep-aside", "adopt"])
def test_something_has_its_name_on_the_target(warehouse: Warehouse, hive3_target: HiveDriver, policy: str) -> None:
    """In the way are a table, and a view of the same definition, which can be adopted."""
    warehouse.sql("CREATE TABLE plain (a STRING)")
    views = warehouse.with_policy(materialized_views="definition", conflicts=policy)
    assert views.replicate().held == ()
    hive3_target.execute(f"USE {views.database}", "CREATE TABLE one (a STRING)", "CREATE VIEW two AS SELECT a FROM plain")
    stranger = replica(views, "two")
    assert stranger is not None
    for name in ("one", "two"):
        materialize(warehouse, name, str(stranger.viewOriginalText))
    held = {name for lane in step(views).held for name in lane.tables}
    assert held == {"refuse": {"one", "two"}, "adopt": {"one"}}.get(policy, set())
    found = {name: table.tableType for name in ("one", "two") if (table := replica(views, name))}
    assert found == {"one": "MANAGED_TABLE" if held else "VIRTUAL_VIEW", "two": "VIRTUAL_VIEW"}


@pytest.mark.parametrize(("conflicts", "found"), [("refuse", "MATERIALIZED_VIEW"), ("replace", "VIRTUAL_VIEW")])
def test_a_failback_finds_the_old_one_in_the_way(warehouse: Warehouse, conflicts: str, found: str) -> None:
    """It is left alone and told, unless the policy says that the view replaces it."""
    warehouse.sql("CREATE TABLE plain (a STRING)")
    materialize(warehouse, "one", "SELECT a FROM plain")
    there = Direction(warehouse.with_policy(materialized_views="definition").connection, warehouse.database)
    there.replicate()
    assert there.fail_over().phase == "finished"
    back = connect(swapped(there.connection.source.policy).model_copy(update={"conflicts": conflicts}))
    done = failover.reverse(back, there.replica)
    held = [lane.tables for report in done.loads for lane in report.held]
    old = warehouse.connection.source.metastore.table(warehouse.database, "one")
    assert old is not None
    assert (old.tableType, held) == (found, [("one",)] if conflicts == "refuse" else [])
