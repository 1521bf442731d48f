"""What is known of the source when definitions load."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.types import Database
from repl_assets.catalog.catalog import Catalog, CatalogDatabase, CatalogTable, Column, read_catalog, with_overflow
from tests.lags import POLICY


def database(name: str, tables: int) -> CatalogDatabase:
    made = (CatalogTable(f"t{n}", False, "", "orc", (), (Column("ds", "string"),) if n else (), "", "") for n in range(tables))
    return CatalogDatabase(name, "", "", "", tuple(made), ())


@pytest.mark.parametrize(
    ("most_tables", "overflow"),
    [(9, {}), (8, {"large": 5}), (4, {"large": 5}), (3, {"large": 5, "middle": 3}), (0, {"large": 5, "middle": 3, "small": 1})],
)
def test_the_largest_databases_go_into_overflow(most_tables: int, overflow: dict[str, int]) -> None:
    databases = [database("large", 5), database("small", 1), database("middle", 3)]
    found = with_overflow(databases, most_tables)
    assert [one.name for one in found] == ["large", "small", "middle"]
    assert {one.name: one.overflow for one in found if one.overflow} == overflow
    assert all(one.tables == () for one in found if one.overflow)


def test_partitioned_tables_are_those_with_partition_keys() -> None:
    assert database("db", 3).partitioned_tables == {"t1", "t2"}


def test_a_catalog_reads_what_it_wrote() -> None:
    catalog = Catalog((database("db", 2),))
    assert Catalog.of_json(catalog.to_json()) == catalog
    assert catalog.database("new") == CatalogDatabase("new", "", "", "", (), ())


def test_a_database_that_the_metastore_does_not_show_is_empty_and_says_why() -> None:
    def shown(name: str) -> Database:
        if name == "hr":
            raise MetastoreError("get_database hr: permission denied")
        return Database(name=name, ownerName="etl")

    metastore: Any = SimpleNamespace(
        database=shown, table_names=lambda _: [], tables=lambda *_: [], features=SimpleNamespace(major=4)
    )
    policy = POLICY.model_copy(update={"databases": {"hr": "hr", "sales": "sales"}})
    hr, sales = read_catalog(metastore, policy).databases
    assert (hr.name, hr.comment) == ("hr", "Its tables are not known: get_database hr: permission denied")
    assert (sales.name, sales.owner) == ("sales", "etl")
    last = Catalog((database("hr", 2), database("sales", 2)))
    assert read_catalog(metastore, policy, last=last).databases == (last.databases[0], sales), "its tables stay, and their alarms"
