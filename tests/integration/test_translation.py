"""Tables that a metastore 4.2 keeps as external ones though they were made as managed ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from hive_replication.connect import Connection, connect
from hive_replication.metastore.types import Partition, copy_of
from hive_replication.verify import compare_database
from resources.embedded.cluster import Cluster, Side
from resources.embedded.policy import policy
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


def test_a_translated_table_is_dropped_as_the_managed_one_that_it_is(warehouse: Warehouse, connection4: Connection) -> None:
    """A metastore 4.2 keeps managed tables as external ones: altered, renamed, compared and dropped, they stay what they are."""
    warehouse = replace(warehouse, connection=connection4)
    metastore = connection4.target.metastore
    warehouse.sql(
        "CREATE TABLE plain (a INT)", "CREATE EXTERNAL TABLE outside (a INT)", "CREATE TABLE parts (a INT) PARTITIONED BY (p INT)"
    )
    warehouse.load_data("plain", "1\n")
    warehouse.load_data("parts PARTITION (p=1)", "1\n")
    assert warehouse.replicate().translated == ("parts", "plain")
    warehouse.sql("ALTER TABLE plain SET TBLPROPERTIES ('colour'='blue')", "ALTER TABLE plain RENAME TO renamed")
    assert warehouse.replicate().translated == ("renamed",)
    altered = metastore.table(warehouse.database, "renamed")
    assert altered is not None
    assert (altered.tableType, altered.parameters["external.table.purge"].lower()) == ("EXTERNAL_TABLE", "true")
    assert altered.parameters["colour"] == "blue"
    found = list(compare_database(connection4.source, connection4.target, warehouse.database))
    assert {one.table: (one.translated, one.differences) for one in found} == {
        "outside": (False, ()),
        "parts": (True, ()),
        "renamed": (True, ()),
    }
    warehouse.sql("DROP TABLE renamed", "ALTER TABLE outside SET TBLPROPERTIES ('EXTERNAL'='FALSE')", "DROP TABLE parts")
    assert warehouse.replicate().held == ()
    warehouse.assert_equal()


@pytest.fixture
def upgraded(cluster: Cluster, source4: Side, target4: Side, warehouse: Warehouse) -> Iterator[Warehouse]:
    """The same database on a source of version 4.2, made by calls of its metastore."""
    made = connect(policy(cluster, {"x": "x"}, source4.name, target4.name))
    yield replace(warehouse, connection=made)
    made.source.metastore.close()


def test_from_4_to_4(upgraded: Warehouse, warehouse: Warehouse) -> None:
    """What the source's metastore translated already stays translated, and is no news."""
    warehouse.sql("CREATE TABLE plain (a INT)", "CREATE TABLE parts (a INT) PARTITIONED BY (p INT)")
    old, source = warehouse.connection.source.metastore, upgraded.connection.source.metastore
    database, name = copy_of(old.database(warehouse.database)), warehouse.database
    assert database is not None
    database.locationUri = database.ownerName = database.ownerType = None
    source.create_database(database)
    for table in old.tables(name, ["plain", "parts"]):
        table.sd.location = None
        source.create_table(table)
    parts, storage = source.table(name, "parts"), upgraded.connection.source.storage
    assert parts is not None
    for key in "12":
        sd = copy_of(parts.sd)
        sd.location = f"{sd.location}/p={key}"
        storage.write(f"{sd.location}/data", key.encode())
        source.add_partitions(name, "parts", [Partition([key], name, "parts", 0, 0, sd, {})])
    assert upgraded.replicate().translated == ("parts", "plain")
    plain = source.table(name, "plain")
    assert plain is not None
    plain.tableName, plain.parameters = "renamed", {**plain.parameters, "colour": "blue"}
    source.alter_table(name, "plain", plain)
    source.drop_partitions(name, "parts", ["p=1"])
    report = upgraded.replicate()
    assert (report.held, report.translated) == ((), ("parts", "renamed"))
    upgraded.assert_equal()
    found = compare_database(upgraded.connection.source, upgraded.connection.target, name)
    assert [(one.translated, one.differences) for one in found] == [(False, ()), (False, ())]
    source.drop_table(name, "renamed")
    source.drop_table(name, "parts")
    assert upgraded.replicate().held == ()
    assert upgraded.connection.target.metastore.table_names(name) == []
