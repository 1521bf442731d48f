"""Tables of Iceberg and the like, which Spark, Trino and Flink keep in the metastore without a storage handler."""

from __future__ import annotations

import pytest

from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


def test_they_are_left_out_and_the_replica_of_a_table_that_becomes_one_is_held(warehouse: Warehouse) -> None:
    iceberg = "'table_type'='ICEBERG', 'metadata_location'='hdfs://s/t/metadata/1.json'"
    warehouse.sql(
        "CREATE TABLE plain (a INT)",
        "CREATE TABLE becomes (a INT)",
        f"CREATE EXTERNAL TABLE early (a INT) TBLPROPERTIES ({iceberg})",
    )
    warehouse.load_data("becomes", "1\n")
    dump = warehouse.dump()
    assert dump.header.skipped["early"].startswith("tables of Iceberg")
    assert warehouse.load(dump.directory).held == ()
    warehouse.sql(
        f"ALTER TABLE becomes SET TBLPROPERTIES ({iceberg})",
        f"CREATE EXTERNAL TABLE late (a INT) TBLPROPERTIES ({iceberg})",
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
