"""Comparison and lag over real servers: differences are reported, waiting events are counted."""

from __future__ import annotations

import pytest

from hive_replication.errors import BadRequest
from hive_replication.lag import lag
from hive_replication.repair import repair
from hive_replication.verify import TableComparison, compare_database
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


def compared(warehouse: Warehouse, table: str | None = None) -> dict[str, TableComparison]:
    source, target = warehouse.connection.source, warehouse.connection.target
    return {found.table: found for found in compare_database(source, target, warehouse.database, table=table)}


@pytest.fixture
def replicated(warehouse: Warehouse) -> Warehouse:
    warehouse.sql(
        "CREATE TABLE plain (a INT, b STRING)",
        "CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)",
        "CREATE EXTERNAL TABLE outside (a INT)",
        "CREATE VIEW seen AS SELECT a FROM plain",
    )
    warehouse.load_data("plain", "1\n")
    warehouse.load_data("parts PARTITION (ds='1')", "1\n", name="data")
    warehouse.load_data("parts PARTITION (ds='a b%/ü#')", "2\n")
    warehouse.load_data("outside", "3\n")
    warehouse.replicate()
    return warehouse


def test_a_fresh_replica_is_equal(replicated: Warehouse) -> None:
    assert compared(replicated) == {
        "plain": TableComparison("plain", files_source=1, files_target=1, files_proven=1),
        "parts": TableComparison("parts", 2, 2, 2, 2, 2),
        "outside": TableComparison("outside", files_source=1, files_target=1, files_proven=1),
        "seen": TableComparison("seen"),
    }
    assert set(compared(replicated, "parts")) == {"parts"}
    with pytest.raises(BadRequest, match="absent"):
        compared(replicated, "absent")


def test_drift_on_either_side_is_told(replicated: Warehouse) -> None:
    source, target = replicated.connection.source, replicated.connection.target
    locations = {
        side: next(iter(metastore.partitions(replicated.database, "parts", ["ds=1"]))).sd.location
        for side, metastore in (("source", source.metastore), ("target", target.metastore))
    }
    source.storage.write(f"{locations['source']}/no-event", b"4\n")
    target.storage.write(f"{locations['target']}/data", b"x\n")
    target.metastore.drop_table(replicated.database, "seen")
    replicated.sql("ALTER TABLE plain ADD COLUMNS (c INT)")
    found = compared(replicated)
    assert found["parts"].differences == (
        "partition ds=1: file no-event is on the source only",
        "partition ds=1: file data has other content",
    )
    assert (found["parts"].files_source, found["parts"].files_target, found["parts"].files_proven) == (3, 2, 1)
    assert found["seen"].differences == ("the table is on the source, not on the target",)
    assert found["plain"].differences == ("columns is 'a int, b string' on the target, 'a int, b string, c int' on the source",)
    assert found["outside"].differences == ()


def test_owners_are_compared_repaired_and_follow_the_source(replicated: Warehouse) -> None:
    connection, name = replicated.connection, replicated.database
    for table in ("plain", "seen", "parts"):
        image = connection.target.metastore.table(name, table)
        assert image is not None
        image.owner = "somebody"
        connection.target.metastore.alter_table(name, table, image)
    for table in ("plain", "seen"):
        (told,) = compared(replicated)[table].differences
        assert told.startswith("owner is 'somebody' on the target, ")
        repair(connection, name, table)
    replicated.sql("ALTER TABLE parts SET OWNER USER ann", "ALTER TABLE plain SET OWNER ROLE admin")
    replicated.replicate()
    assert [one.differences for one in compared(replicated).values()] == [()] * 4


def test_lag_counts_the_events_of_the_policy(replicated: Warehouse) -> None:
    connection, name = replicated.connection, replicated.database
    before = lag(connection.source, connection.target, name)
    assert (before.applied, before.waiting, before.seconds_behind) == (replicated.applied(), 0, 0)
    replicated.sql("CREATE TABLE one (a INT)", "CREATE TABLE two (a INT)")
    behind = lag(connection.source, connection.target, name)
    assert behind.waiting == 2
    assert behind.seconds_behind is not None
    assert 0 <= behind.seconds_behind < 60
    replicated.replicate()
    after = lag(connection.source, connection.target, name)
    assert (after.waiting, after.seconds_behind) == (0, 0)
    assert after.applied is not None
    assert behind.applied is not None
    assert after.applied >= behind.applied + 2
    fresh = lag(connection.source, connection.target, "default")
    assert (fresh.applied, fresh.waiting, fresh.seconds_behind) == (None, None, None)
