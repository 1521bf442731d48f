"""A policy of many tables for measuring Dagster's pages: the project's definitions of a catalog that exists in no metastore.

``dagster dev -m bench.many_tables`` loads them. Nothing can be replicated: its servers do not answer.
"""

from __future__ import annotations

import dagster as dg

from hive_replication.policy import Policy, Root
from hive_replication.policy.model import Warehouse
from repl_assets.catalog.catalog import Catalog, CatalogDatabase, CatalogTable, Column
from repl_assets.definitions import build_defs

DATABASES = ("shop0", "shop1", "shop2", "shop3")
TABLES = 1_000  # in all
PARTITIONS = 20_000  # of the table ``events`` in the first database
BIG = "events"

_KEYS = (Column("ds", "string", "day"),)
_COLUMNS = tuple(Column(f"c{number}", "string", "a column") for number in range(20))


def policy() -> Policy:
    """A policy whose servers do not answer."""
    source, target = (
        Warehouse(metastore=f"thrift://127.0.0.1:{port}", roots=(Root(uri=f"hdfs://127.0.0.1:{port}/"),)) for port in (1, 2)
    )
    return Policy(
        source=source, target=target, dump_root="hdfs://127.0.0.1:2/dumps", databases={name: name for name in DATABASES}
    )


def catalog() -> Catalog:
    """All tables, every other one with partitions."""
    return Catalog(tuple(_database(name) for name in DATABASES))


def partitions() -> list[str]:
    """Names of the big table's partitions."""
    return [f"ds={number:06d}" for number in range(PARTITIONS)]


def _database(name: str) -> CatalogDatabase:
    tables = (_table(name, number) for number in range(TABLES // len(DATABASES)))
    return CatalogDatabase(name, "hive", f"Database {name}", f"hdfs://127.0.0.1:1/warehouse/{name}.db", tuple(tables), ())


def _table(database: str, number: int) -> CatalogTable:
    return CatalogTable(
        name=f"t{number:04d}" if number else BIG,
        view=False,
        location=f"hdfs://127.0.0.1:1/warehouse/{database}.db/t{number:04d}",
        format="parquet",
        columns=_COLUMNS,
        partition_keys=() if number % 2 else _KEYS,
        owner="hive",
        comment=f"Table number {number}",
    )


@dg.definitions
def defs() -> dg.Definitions:
    """The definitions that the pages are measured on."""
    return build_defs(policy(), catalog())
