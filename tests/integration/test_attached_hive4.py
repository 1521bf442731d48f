"""Constraints and column statistics from a metastore 4.2.0 to another: its log has all of them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from hive_metastore import ttypes as t

from hive_replication.connect import connect
from hive_replication.load.replica.state import object_id
from hive_replication.load.undo.undo import release, undo
from hive_replication.metastore.constraints import Constraint
from hive_replication.metastore.statistics import claimed
from hive_replication.metastore.types import PrincipalType
from hive_replication.verify import compare_database
from resources.embedded.cluster import Cluster, Side
from resources.embedded.policy import policy
from tests.fixtures.record import Recorder
from tests.statistics import of_column
from tests.warehouse import Warehouse

pytestmark = pytest.mark.servers

HOW = {"enable_cstr": False, "validate_cstr": False, "rely_cstr": True}


@pytest.fixture
def counted(cluster: Cluster, source4: Side, target4: Side, unique: str) -> Iterator[Warehouse]:
    """A table, and one with two partitions, with statistics of their columns; replicated."""
    connection = connect(policy(cluster, {"x": "x"}, source4.name, target4.name))
    metastore = connection.source.metastore
    metastore.create_database(t.Database(name=unique, ownerName="hive", ownerType=PrincipalType.USER, parameters={}))
    recorder = Recorder(metastore, connection.source.storage, unique)
    recorder._create("plain")
    parts = recorder._create("parts", keys=("ds",))
    metastore.add_partitions(unique, "parts", [recorder._partition(parts, [day]) for day in "12"])
    metastore.set_statistics(unique, "plain", {"": [of_column("id", 1, 1)]})
    metastore.set_statistics(unique, "parts", {"ds=1": [of_column("id", 1, 1)], "ds=2": [of_column("id", 2, 2)]})
    warehouse = Warehouse(connection, None, unique)  # type: ignore[arg-type]
    assert warehouse.replicate().held == ()
    yield warehouse
    metastore.close()
    connection.target.metastore.close()


def assert_equal(warehouse: Warehouse) -> None:
    connection = warehouse.connection
    found = compare_database(connection.source, connection.target, warehouse.database)
    assert {one.table: one.differences for one in found} == {"plain": (), "parts": ()}


def claims(warehouse: Warehouse, *, source: bool) -> dict[str, frozenset[str]]:
    metastore = (warehouse.connection.source if source else warehouse.connection.target).metastore
    table = metastore.table(warehouse.database, "plain")
    assert table is not None
    parts = metastore.partitions(warehouse.database, "parts")
    return {"plain": claimed(table.parameters), **{str(part.values): claimed(part.parameters) for part in parts}}


def test_statistics_follow_their_events(counted: Warehouse) -> None:
    source, target, database = counted.connection.source.metastore, counted.connection.target.metastore, counted.database
    assert_equal(counted)
    assert claims(counted, source=False) == claims(counted, source=True)
    assert claims(counted, source=False)["plain"] == {"id"}
    source.set_statistics(database, "plain", {"": [of_column("id", 1, 9)]})
    source.set_statistics(database, "parts", {"ds=2": [of_column("id", 2, 9)]})
    dump = counted.dump(counted.applied())
    report = counted.load(dump.directory)
    assert (report.held, dict(report.applied)) == ((), {"SetStatistics": 2})
    assert target.table_statistics(database, "plain", ["id"]) == [of_column("id", 1, 9)]
    assert_equal(counted)
    assert claims(counted, source=False) == claims(counted, source=True)
    assert dict(counted.load(dump.directory).applied) == {}
    target.set_statistics(database, "plain", {"": [of_column("id", 0, 0)]})
    found = compare_database(counted.connection.source, counted.connection.target, database, table="plain")
    assert [one.differences for one in found] == [("statistics of column id differ",)]
    source.delete_statistics(database, "plain", "", "id")
    source.delete_statistics(database, "parts", "ds=1", "id")
    assert counted.replicate().held == ()
    assert target.table_statistics(database, "plain", ["id"]) == []
    assert_equal(counted)
    assert claims(counted, source=False)["plain"] == claims(counted, source=False)["['1']"] == frozenset()
    assert claims(counted, source=False)["['2']"] == {"id"}


def test_an_insert_ends_the_claims_until_the_next_statistics(counted: Warehouse) -> None:
    source, storage, database = counted.connection.source.metastore, counted.connection.source.storage, counted.database
    table = source.table(database, "plain")
    assert table is not None
    storage.write(f"{table.sd.location}/rows", b"7\n")
    source.fire_insert_event(database, "plain", values=None, files=[f"{table.sd.location}/rows"], checksums=[""], replace=False)
    assert counted.replicate().held == ()
    assert claims(counted, source=False)["plain"] == frozenset()
    source.set_statistics(database, "plain", {"": [of_column("id", 1, 7)]})
    assert counted.replicate().held == ()
    assert claims(counted, source=False)["plain"] == {"id"}
    assert_equal(counted)


def test_an_undone_window_leaves_no_claims_of_its_statistics(counted: Warehouse) -> None:
    source, target, database = counted.connection.source.metastore, counted.connection.target, counted.database
    source.set_statistics(database, "plain", {"": [of_column("id", 1, 9)]})
    (part,) = source.partitions(database, "parts", ["ds=2"])
    file = f"{part.sd.location}/rows"
    counted.connection.source.storage.write(file, b"9\n")
    source.fire_insert_event(database, "parts", values=["2"], files=[file], checksums=[""], replace=False)
    source.set_statistics(database, "parts", {name: [of_column("id", 2, 9)] for name in ("ds=1", "ds=2")})  # ds=1: nothing else
    before = counted.applied()
    assert before is not None
    assert counted.replicate().held == ()
    undo(target, database, None, before)
    assert claims(counted, source=False) == {"plain": frozenset(), "['1']": frozenset(), "['2']": frozenset()}
    assert {object_id(part) <= before for part in target.metastore.partitions(database, "parts")} == {True}
    release(target, database, None)
    assert counted.replicate().held == ()
    assert claims(counted, source=False) == claims(counted, source=True)
    assert_equal(counted)


def test_default_and_check_constraints(counted: Warehouse) -> None:
    source, database = counted.connection.source.metastore, counted.database
    on = {"table_db": database, "table_name": "plain", "column_name": "id", "catName": "hive"}
    default = t.SQLDefaultConstraint(default_value="'X'", dc_name=f"{database}_d", **on, **HOW)
    check = t.SQLCheckConstraint(check_expression="id > 0", dc_name=f"{database}_c", **on, **HOW)
    source.add_constraint(database, Constraint("dks", (default,)))
    source.add_constraint(database, Constraint("cks", (check,)))
    report = counted.replicate()
    assert (report.held, dict(report.applied)) == ((), {"SetConstraints": 2})
    found = {one.kind: one.described() for one in counted.connection.target.metastore.constraints(database, "plain")}
    assert (found.keys(), "default_value='X'" in found["dks"]) == ({"dks", "cks"}, True)
    assert_equal(counted)
    source.drop_constraint(database, "plain", f"{database}_d")
    assert counted.replicate().held == ()
    assert [one.kind for one in counted.connection.target.metastore.constraints(database, "plain")] == ["cks"]
