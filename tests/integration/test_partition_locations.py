"""Partitions of external tables at locations of their own: where their replicas lie, on real servers (A24)."""

from __future__ import annotations

import pytest

from hive_replication.connect import Connection
from hive_replication.drift import DriftScan
from hive_replication.metastore.types import FieldSchema, Partition, Table, copy_of
from hive_replication.repair import repair
from hive_replication.verify import compare_database
from hive_replication.verify.witness import witness
from tests.origin import TEXT, Origin
from tests.warehouse import Warehouse

pytestmark = pytest.mark.servers


class Lake(Origin):
    """External tables whose partitions lie where the test says."""

    def external(self, name: str) -> None:
        keys = [FieldSchema("ds", "string", None)]
        table = Table(name, self.database, owner="hive", sd=copy_of(TEXT), partitionKeys=keys, parameters={"EXTERNAL": "TRUE"})
        table.tableType = "EXTERNAL_TABLE"
        self.connection.source.metastore.create_table(table)

    def at(self, table: str, day: str, path: str) -> None:
        """Adds a partition at a path of the source's store with one row."""
        sd = copy_of(TEXT)
        sd.location = f"{self.connection.source.policy.source.roots[0].uri}outside/{self.database}/{path}"
        self.connection.source.storage.mkdirs(sd.location)
        part = Partition(values=[day], dbName=self.database, tableName=table, sd=sd, parameters={})
        self.connection.source.metastore.add_partitions(self.database, table, [part])
        self.insert(table, f"{table} {day}\n", day)

    def drop(self, table: str, day: str) -> None:
        metastore, place = self.connection.source.metastore, self.location(table, day)
        metastore.drop_partitions(self.database, table, [f"ds={day}"], delete_data=False)
        for file in self.connection.source.storage.files(place):
            self.connection.source.storage.delete(file.uri)


@pytest.fixture(params=["connection", "connection4"])
def lake(request: pytest.FixtureRequest, unique: str) -> Lake:
    """A database on 3.1.3, to be replicated to 3.1.3 or to 4.2.0."""
    connection: Connection = request.getfixturevalue(request.param)
    made = Lake(Warehouse(connection, None, unique).with_policy().connection, unique)  # type: ignore[arg-type]
    made.create_database()
    return made


def places(warehouse: Warehouse, table: str) -> dict[str, str]:
    """Where the partitions of a replica lie: ``own`` below external_root, ``table`` below the table's, or another directory."""
    connection, name = warehouse.connection, warehouse.database
    own = f"{connection.target.policy.external_root}/outside/{name}/"
    found = connection.target.metastore.table(name, table)
    assert found is not None
    parts = connection.target.metastore.partitions(name, table)
    shown = ((part.values[0], str(part.sd.location)) for part in parts)
    return {day: place.replace(own, "own ").replace(f"{found.sd.location}/", "table ") for day, place in shown}


def assert_all_say_equal(warehouse: Warehouse, *tables: str) -> None:
    """Each comparison that there is, with the files' bytes, and none of them is confused by the places."""
    connection, name = warehouse.connection, warehouse.database
    warehouse.assert_equal()
    assert [one.differences for one in compare_database(connection.source, connection.target, name)] == [()] * len(tables)
    assert witness(connection.source, connection.target, name).differences == ()
    for table in tables:
        found = DriftScan(connection.source, connection.target, name, 0.1).table(table)
        assert (found is not None and found.drifted) == ()


def test_they_keep_their_paths_below_the_external_root(lake: Lake) -> None:
    warehouse = Warehouse(lake.connection, None, lake.database)  # type: ignore[arg-type]
    lake.external("t")
    lake.add("t", "0")
    lake.insert("t", "t 0\n", "0")
    lake.at("t", "1", "2026/01")
    assert warehouse.replicate().held == ()
    lake.at("t", "2", "2026/02")
    lake.insert("t", "more\n", "1")
    assert warehouse.replicate().held == ()
    expected = {"0": "table ds=0", "1": "own 2026/01", "2": "own 2026/02"}
    assert places(warehouse, "t") == expected
    assert_all_say_equal(warehouse, "t")
    # A repair finds it there and mends it there.
    storage = lake.connection.target.storage
    (damaged, *_) = storage.files(f"{lake.connection.target.policy.external_root}/outside/{lake.database}/2026/02")
    storage.write(damaged.uri, b"x\n")
    assert [one.table for one in compare_database(lake.connection.source, lake.connection.target, lake.database)] == ["t"]
    connection = lake.connection
    repair(connection, lake.database, "t", ("ds=2",))
    assert {day: place for day, place in places(warehouse, "t").items() if day != "2"} == {"0": "table ds=0", "1": "own 2026/01"}
    assert_all_say_equal(warehouse, "t")
    # Its directory has old data when another one comes to the same place; that is not read.
    lake.drop("t", "1")
    lake.at("t", "3", "2026/01")
    assert warehouse.replicate().held == ()
    assert places(warehouse, "t")["3"] == "table ds=3"
    assert_all_say_equal(warehouse, "t")


def test_two_that_share_a_place_at_the_source_have_each_their_own(lake: Lake) -> None:
    warehouse = Warehouse(lake.connection, None, lake.database)  # type: ignore[arg-type]
    for table in ("a", "b"):
        lake.external(table)
        lake.at(table, "1", "shared")  # each with the rows of the other
    assert warehouse.replicate().held == ()
    assert sorted((places(warehouse, "a")["1"], places(warehouse, "b")["1"])) == ["own shared", "table ds=1"]
    lake.external("c")
    lake.at("c", "1", "shared")
    lake.at("c", "2", "beside")
    assert warehouse.replicate().held == ()
    assert places(warehouse, "c") == {"1": "table ds=1", "2": "own beside"}


def test_existing_replicas_keep_their_places(lake: Lake) -> None:
    without = Warehouse(lake.connection, None, lake.database).with_policy(external_root=None)  # type: ignore[arg-type]
    lake.external("t")
    lake.at("t", "1", "2026/01")
    assert without.replicate().held == ()
    assert places(without, "t") == {"1": "table ds=1"}
    lake.insert("t", "more\n", "1")
    lake.at("t", "2", "2026/02")
    warehouse = Warehouse(lake.connection, None, lake.database)  # type: ignore[arg-type]
    assert warehouse.replicate().held == ()
    assert places(warehouse, "t") == {"1": "table ds=1", "2": "own 2026/02"}
    assert_all_say_equal(warehouse, "t")
