"""Tables that are renamed into another database: they leave the one replica and come whole into the other.

Hive allows it for external tables only where one of the databases is a source of replication.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

import hive_replication
from hive_replication.lag import lag
from hive_replication.verify.witness import witness
from tests.integration.test_policy_change import state, step
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@pytest.fixture
def other(warehouse: Warehouse) -> Warehouse:
    """A second source database."""
    name = f"{warehouse.database}_other"
    warehouse.hive.execute(f"CREATE DATABASE {name}", f"ALTER DATABASE {name} SET OWNER USER hive")
    return replace(warehouse, database=name)


def both(one: Warehouse, other: Warehouse) -> tuple[Warehouse, Warehouse]:
    """The same databases in one policy."""
    databases = {name: name for name in (one.database, other.database)}
    return one.with_policy(databases=databases), other.with_policy(databases=databases)


def external(warehouse: Warehouse, *tables: str) -> None:
    """External tables below the databases' directories, with two partitions."""
    for table in tables:
        warehouse.sql(f"CREATE EXTERNAL TABLE {table} (a STRING) PARTITIONED BY (p STRING)")
        for part in "12":
            warehouse.load_data(f"{table} PARTITION (p='{part}')", f"{warehouse.database} {table} {part}\n")


def assert_level(*warehouses: Warehouse) -> None:
    for one in warehouses:
        assert step(one).held == ()
        one.assert_equal_in_policy()
        assert (state(one).held, state(one).coming) == ({}, frozenset())
        assert not witness(one.connection.source, one.connection.target, one.database).wrong
        assert all(not found.differences for found in hive_replication.verify(one.connection, one.database))


def waiting(warehouse: Warehouse) -> list[str]:
    """Tables whose events the lag counts."""
    return [one.table for one in lag(warehouse.connection.source, warehouse.connection.target, warehouse.database).tables]


def test_a_table_goes_from_one_database_of_the_policy_to_another(warehouse: Warehouse, other: Warehouse) -> None:
    """Under its own name, under another, over a name of the other database, there and back, and with what happens around it."""
    one, two = both(warehouse, other)
    external(one, "a", "b", "c", "d")
    external(two, "b")
    for each in (one, two):
        each.replicate()
    names = one.database, two.database
    one.load_data("a PARTITION (p='1')", "before\n")
    one.sql(f"ALTER TABLE a RENAME TO {names[1]}.a", f"ALTER TABLE b RENAME TO {names[1]}.from_b")
    assert (waiting(one), waiting(two)) == (["a", "b"], ["a", "from_b"])
    two.load_data("a PARTITION (p='3')", "after\n")
    two.load_data("b PARTITION (p='1')", "its own\n")
    place = f"{one.connection.source.policy.source.roots[0].uri}outside/{names[0]}"
    one.sql(f"CREATE EXTERNAL TABLE a (b INT) LOCATION '{place}'")  # another one under the name
    assert_level(one, two)
    two.sql(f"ALTER TABLE from_b RENAME TO {names[0]}.b")
    one.sql("ALTER TABLE b RENAME TO b2", f"ALTER TABLE c RENAME TO {names[1]}.c")
    two.sql("DROP TABLE c")
    one.sql("ALTER TABLE d RENAME TO e", f"ALTER TABLE e RENAME TO {names[1]}.d")
    two.sql("ALTER TABLE d RENAME TO e")
    assert_level(one, two)
    two.load_data("e PARTITION (p='1')", "more\n")
    assert_level(one, two)


def test_a_table_goes_to_a_database_outside_the_policy_and_comes_from_there(warehouse: Warehouse, other: Warehouse) -> None:
    """Its files stay in the directory of the database that it comes from, which the policy has to list."""
    root = warehouse.connection.source.database(other.database).locationUri
    source = warehouse.connection.source.policy.source
    one = warehouse.with_policy(source=source.model_copy(update={"paths": (*source.paths, str(root))}))
    external(one, "mine", "stays")
    external(other, "mine", "theirs")
    one.replicate()
    one.sql(f"ALTER TABLE mine RENAME TO {other.database}.gone")
    assert waiting(one) == ["mine"]
    assert_level(one)
    other.sql(f"ALTER TABLE theirs RENAME TO {one.database}.mine", f"ALTER TABLE mine RENAME TO {other.database}.stays")
    other.sql(f"ALTER TABLE stays RENAME TO {one.database}.extra")
    assert waiting(one) == ["extra", "mine"]
    assert_level(one)
    assert one.connection.target.metastore.table_names(one.database) == ["extra", "mine", "stays"]
