"""Where tables of Spark lie."""

from __future__ import annotations

import pytest

from hive_replication.metastore.spark_tables import at_its_data
from hive_replication.metastore.types import SerDeInfo, StorageDescriptor, Table

NOWHERE = "hdfs://s:8020/w/db.db/t-__PLACEHOLDER__"
SPARKS = {"spark.sql.sources.provider": "json"}


def table(location: str | None, path: str | None, parameters: dict[str, str] | None) -> Table:
    serde = SerDeInfo(parameters={"path": path, "serialization.format": "1"} if path else None)
    return Table(tableName="t", dbName="db", sd=StorageDescriptor(location=location, serdeInfo=serde), parameters=parameters)


@pytest.mark.parametrize(
    ("path", "found"),
    [
        ("/data/t", "hdfs://s:8020/data/t"),
        ("hdfs:///data/t", "hdfs://s:8020/data/t"),
        ("HDFS:/data/t", "hdfs://s:8020/data/t"),
        *((same, same) for same in ("s3a://b/data/t", "file:/data/t", "s3a:///data/t", "hdfs://other/data/t")),
    ],
)
def test_a_table_without_a_directory_of_its_own_lies_where_spark_reads(path: str, found: str) -> None:
    made = table(NOWHERE, path, SPARKS)
    assert at_its_data(made).sd.location == found
    assert made.sd.location == NOWHERE


def test_a_local_place_is_on_the_local_store() -> None:
    assert at_its_data(table("file:/w/db.db/t-__PLACEHOLDER__", "/data/t", SPARKS)).sd.location == "file:/data/t"


@pytest.mark.parametrize(
    "other",
    [
        table("hdfs://s:8020/w/db.db/t", "hdfs://s:8020/x", SPARKS),
        table(NOWHERE, None, SPARKS),
        table(NOWHERE, "hdfs://s:8020/x", {}),
        table(None, "hdfs://s:8020/x", None),
        Table(tableName="v", dbName="db", sd=StorageDescriptor()),
    ],
)
def test_any_other_table_stays_where_it_is(other: Table) -> None:
    assert at_its_data(other) is other
