"""Avro tables whose schema is in a file, which Hive reads whenever one is used."""

from __future__ import annotations

import json

import pytest

from hive_replication.api import verify
from hive_replication.repair import repair
from resources.embedded.hive import HiveDriver
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


def schema(*columns: str) -> bytes:
    fields = [{"name": column, "type": "string"} for column in columns]
    return json.dumps({"type": "record", "name": "r", "fields": fields}).encode()


def test_the_file_comes_with_the_table_and_hive_reads_the_replica(warehouse: Warehouse, hive3_target: HiveDriver) -> None:
    """Its parameter named a file that nobody had copied, and comparisons saw nothing of it."""
    source, target = warehouse.connection.source, warehouse.connection.target
    database = source.metastore.database(warehouse.database)
    assert database is not None
    file = f"{database.locationUri}/_schemas/a.avsc"
    source.storage.write(file, schema("a"))
    warehouse.sql(f"CREATE TABLE early STORED AS AVRO TBLPROPERTIES ('avro.schema.url'='{file}')")
    warehouse.replicate()
    warehouse.sql(f"CREATE TABLE late STORED AS AVRO TBLPROPERTIES ('avro.schema.url'='{file}')")
    assert warehouse.replicate().held == ()
    warehouse.assert_equal_but_paths("avro.schema.url")
    for table in ("early", "late"):
        (described,) = hive3_target.execute(f"DESCRIBE {warehouse.database}.{table}")
        assert [row.split("\t")[0].strip() for row in described.rows] == ["a"]
    place = str(target.metastore.table(warehouse.database, "late").parameters["avro.schema.url"])  # type: ignore[union-attr]
    assert target.storage.read(place) == schema("a")
    source.storage.write(file, schema("a", "b"))
    warehouse.sql("ALTER TABLE late SET TBLPROPERTIES ('colour'='blue')")
    assert warehouse.replicate().held == ()
    assert target.storage.read(place) == schema("a", "b")
    target.storage.delete(place)
    side = warehouse.with_policy().connection
    found = {one.table: one.differences for one in verify(side, warehouse.database)}
    wanted = (f"parameter avro.schema.url names {place}, which is missing on the target",)
    assert found == {"early": wanted, "late": wanted}
    repair(side, warehouse.database, "early")
    assert [one.differences for one in verify(side, warehouse.database)] == [(), ()]
