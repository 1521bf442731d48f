"""A Hive 4 target that keeps external tables in a warehouse of their own, and databases below a warehouse, on real servers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from hive_replication.connect import connect
from hive_replication.doctor import examine
from hive_replication.errors import Refused
from hive_replication.metastore.types import Database
from hive_replication.verify import compare_database
from resources.embedded.cluster import Cluster
from resources.embedded.hive import HiveDriver
from resources.embedded.policy import policy
from tests.integration.test_acid import FULL, rows
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive, pytest.mark.long]

ONLY_INSERTS = "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"


@pytest.fixture(scope="module")
def apart(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Metastores 4.2.0; the target's has two warehouses."""
    external = {"metastore.warehouse.external.dir": "/external"}
    servers = Cluster(tmp_path_factory.mktemp("apart"), properties={"target4": external})
    try:
        servers.up(["source4", "target4"])
        yield servers
    finally:
        servers.down()


@pytest.fixture(scope="module")
def hive(apart: Cluster) -> Iterator[HiveDriver]:
    with HiveDriver(apart.side("source4"), repl_root=f"{apart.side('target4').hdfs}repl/apart", quick=True) as driver:
        yield driver


@pytest.fixture(scope="module")
def hive_target(apart: Cluster) -> Iterator[HiveDriver]:
    with HiveDriver(apart.side("target4"), repl_root=f"{apart.side('target4').hdfs}repl/apart", quick=True) as driver:
        yield driver


@pytest.fixture
def moved(apart: Cluster, hive: HiveDriver, unique: str) -> Warehouse:
    """A source database below its warehouse, but not at its default place, with tables of all kinds."""
    made = Warehouse(connect(policy(apart, {"x": "x"}, "source4", "target4")), hive, unique).with_policy()
    source = made.connection.source.metastore
    warehouse = source.config_value("hive.metastore.warehouse.dir", "")
    source.create_database(Database(name=unique, parameters={}, locationUri=f"{warehouse}/custom/{unique}"))
    made.sql(
        f"CREATE TABLE t (a INT, b STRING) {FULL}",
        f"CREATE TABLE i (a INT) {ONLY_INSERTS}",
        "CREATE TABLE mplain (a INT) TBLPROPERTIES ('transactional'='false')",
        "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
        "INSERT INTO i VALUES (1)",
        "INSERT INTO mplain VALUES (1)",
    )
    return made


def place(made: Warehouse) -> tuple[str, str]:
    """The two directories of the replica."""
    found = made.connection.target.metastore.database(made.database)
    assert found is not None
    return str(found.locationUri), str(found.managedLocationUri)


def assert_replicated(made: Warehouse, directory: str) -> None:
    metastore = made.connection.target.metastore
    found = list(metastore.tables(made.database, metastore.table_names(made.database)))
    assert found
    assert [one.sd.location for one in found if not str(one.sd.location).startswith(f"{directory}/")] == []
    compared = list(compare_database(made.connection.source, made.connection.target, made.database))
    assert [one.differences for one in compared if one.differences] == []


@pytest.mark.timeout(900)
def test_tables_of_all_kinds_and_a_source_that_stays_where_it_is(moved: Warehouse, hive_target: HiveDriver) -> None:
    source, database = moved.connection.source.metastore, moved.database
    moved.sql("CREATE EXTERNAL TABLE me (a INT)", "INSERT INTO me VALUES (1)")
    before = source.database(database)
    assert before is not None
    assert str(before.locationUri).endswith(f"/custom/{database}")
    report = moved.replicate()
    assert report.held == ()
    assert any(f"custom/{database} is not replicated" in one.reason for one in report.skipped)
    after = source.database(database)
    assert after is not None
    assert (after.locationUri, after.managedLocationUri) == (before.locationUri, before.managedLocationUri)
    home, managed = place(moved)
    assert home.endswith(f"/external/{database}.db")
    assert managed == home
    assert_replicated(moved, home)
    moved.sql(
        "UPDATE t SET b = 'z' WHERE a = 2",
        "DELETE FROM t WHERE a = 1",
        "ALTER TABLE t RENAME TO u",
        "INSERT INTO u VALUES (3, 'later')",
        "INSERT OVERWRITE TABLE i VALUES (2)",
        f"CREATE TABLE n (a INT) PARTITIONED BY (d STRING) {FULL}",
        "INSERT INTO n VALUES (1, '1')",
        "INSERT INTO me VALUES (2)",
    )
    assert moved.replicate().held == ()
    assert_replicated(moved, home)
    assert rows(hive_target, database) == rows(moved.hive, database)
    moved.sql("DROP TABLE i")
    assert moved.replicate().held == ()
    moved.sql(f"CREATE TABLE i (a INT) {FULL}", "INSERT INTO i VALUES (7)")
    assert moved.replicate().held == ()
    assert rows(hive_target, database) == rows(moved.hive, database)
    assert [one.found for one in examine(moved.connection) if one.check == f"directory of {database}"] == []


def test_the_policy_may_not_choose_the_warehouse_of_managed_tables(moved: Warehouse) -> None:
    """All tables went to that of external ones, and no transactional one was taken there."""
    target = moved.connection.target.metastore
    chosen = f"{target.config_value('hive.metastore.warehouse.dir', '')}/team/{moved.database}"
    with pytest.raises(Refused, match="takes no external ones; choose another"):
        moved.with_policy(locations={moved.database: chosen}).replicate()
    assert target.database(moved.database) is None


@pytest.mark.timeout(900)
def test_a_directory_that_the_policy_chooses_outside_of_both(moved: Warehouse) -> None:
    chosen = f"{moved.connection.target.policy.target.roots[0].uri}chosen/{moved.database}"
    made = moved.with_policy(locations={moved.database: chosen})
    assert made.replicate().held == ()
    assert place(made) == (chosen, chosen)
    made.sql("INSERT INTO t VALUES (3, 'later')", "INSERT INTO mplain VALUES (2)")
    assert made.replicate().held == ()
    assert_replicated(made, chosen)
