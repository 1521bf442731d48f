"""Tables of Iceberg and the like, which Spark, Trino and Flink keep in the metastore without a storage handler."""

from __future__ import annotations

import pytest

import hive_replication
from hive_replication.load.replica.state import replica_state
from hive_replication.load.report import LoadReport
from tests.warehouse import Warehouse

ICEBERG = "'table_type'='ICEBERG', 'metadata_location'='hdfs://s/t/metadata/1.json'"

pytestmark = [pytest.mark.servers, pytest.mark.hive]


def test_they_are_left_out_and_the_replica_of_a_table_that_becomes_one_is_held(warehouse: Warehouse) -> None:
    warehouse.sql(
        "CREATE TABLE plain (a INT)",
        "CREATE TABLE becomes (a INT)",
        f"CREATE EXTERNAL TABLE early (a INT) TBLPROPERTIES ({ICEBERG})",
    )
    warehouse.load_data("becomes", "1\n")
    dump = warehouse.dump()
    assert dump.header.skipped["early"].startswith("tables of Iceberg")
    assert warehouse.load(dump.directory).held == ()
    warehouse.sql(
        f"ALTER TABLE becomes SET TBLPROPERTIES ({ICEBERG})",
        f"CREATE EXTERNAL TABLE late (a INT) TBLPROPERTIES ({ICEBERG})",
    )
    warehouse.load_data("plain", "1\n")
    (held,) = warehouse.replicate().held
    assert (held.tables, held.reason.partition(": ")[0]) == (("becomes",), "the source table cannot be followed any more")
    assert "tables of Iceberg" in held.reason
    warehouse.assert_equal(only="plain")
    assert warehouse.connection.target.metastore.table_names(warehouse.database) == ["becomes", "plain"]
    warehouse.sql("DROP TABLE becomes")
    assert warehouse.load(warehouse.dump(warehouse.status()).directory).held == ()
    assert warehouse.connection.target.metastore.table_names(warehouse.database) == ["plain"]


def test_they_are_not_awaited_where_the_policy_takes_them_in(warehouse: Warehouse) -> None:
    """By a change of the policy or by a rename; a replica that the policy had left, and that is one by now, stays as it is."""
    warehouse.sql(
        "CREATE TABLE plain (a INT)",
        "CREATE TABLE out_becomes (a INT)",
        *(f"CREATE EXTERNAL TABLE {name} (a INT) TBLPROPERTIES ({ICEBERG})" for name in ("out_one", "out_two", "other")),
    )
    warehouse.replicate()
    some = warehouse.with_policy(exclude=("out_*",))
    assert step(some).held == ()
    warehouse.sql(f"ALTER TABLE out_becomes SET TBLPROPERTIES ({ICEBERG})", "ALTER TABLE out_two RENAME TO two")
    assert step(some).held == ()
    assert held_now(some) == {}
    every = warehouse.with_policy()
    (held,) = step(every).held
    assert (held.tables, held.reason.partition(": ")[0]) == (("out_becomes",), "the source table cannot be followed any more")
    warehouse.load_data("plain", "1\n")
    assert step(every).held == ()
    assert list(held_now(every)) == ["out_becomes"]
    every.assert_equal(only="plain")
    warehouse.sql("DROP TABLE out_becomes")
    assert step(every).held == ()
    assert held_now(every) == {}
    assert warehouse.connection.target.metastore.table_names(warehouse.database) == ["plain"]


def held_now(warehouse: Warehouse) -> dict[str, str]:
    return dict(replica_state(warehouse.connection.target.metastore.database(warehouse.database)).held)


def step(warehouse: Warehouse) -> LoadReport:
    """A dump that knows what the replica was made with, as those of the command line and Dagster do."""
    dump = hive_replication.dump(warehouse.connection, warehouse.database, from_evid=warehouse.applied())
    return hive_replication.load(warehouse.connection, dump.directory)
