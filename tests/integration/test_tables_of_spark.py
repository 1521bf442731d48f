"""External tables of Spark in a format that Hive does not read: their location does not exist, their data is at ``path``."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from hive_replication.api import verify
from hive_replication.connect import Connection, connect
from hive_replication.metastore.types import Table, copy_of
from hive_replication.verify.witness import witness
from resources.embedded.cluster import Cluster
from resources.embedded.side import Side
from tests.origin import TEXT, Origin
from tests.warehouse import Warehouse

pytestmark = pytest.mark.servers

#: Runs SQL on Spark with a Hive catalog, in a process of its own; prints the last statement's rows.
_SPARK = """
import json, sys
from pyspark.sql import SparkSession
metastore, store, *statements = sys.argv[1:]
settings = {
    "spark.ui.enabled": "false", "spark.sql.catalogImplementation": "hive", "spark.hadoop.hive.metastore.uris": metastore,
    "spark.hadoop.fs.defaultFS": store, "spark.sql.warehouse.dir": f"{store}tmp/spark",
}
spark = SparkSession.builder.master("local[1]").config(map=settings).getOrCreate()
*_, last = [spark.sql(one) for one in statements]
print("rows", json.dumps([list(row) for row in last.collect()]))
"""


def of_spark(side: Connection, database: str, name: str) -> tuple[Table, str]:
    """A table as Spark describes it to the metastore, and the directory of the database."""
    found = side.source.metastore.database(database)
    assert found is not None
    sd = copy_of(TEXT)
    sd.location = f"{found.locationUri}/{name}-__PLACEHOLDER__"
    parameters = {"EXTERNAL": "TRUE", "spark.sql.sources.provider": "json"}
    table = Table(tableName=name, dbName=database, sd=sd, partitionKeys=[], parameters=parameters, tableType="EXTERNAL_TABLE")
    return table, str(found.locationUri)


@pytest.mark.parametrize("bootstrapped", [True, False])
def test_they_are_replicated_from_where_spark_reads_them(connection: Connection, unique: str, bootstrapped: bool) -> None:
    """They were held as if their directory were missing, and comparisons saw nothing of them."""
    policy = connection.source.policy.model_copy(update={"databases": {unique: unique}})
    side = connect(policy)
    origin, warehouse = Origin(side, unique), Warehouse(side, None, unique)  # type: ignore[arg-type]
    origin.create_database()
    if not bootstrapped:
        warehouse.replicate()
    table, directory = of_spark(side, unique, "t")
    storage, metastore = side.source.storage, side.source.metastore
    table.sd.serdeInfo.parameters["path"] = f"{directory}/data/first"
    storage.write(f"{directory}/data/first/part-0.json", b'{"a": 1}\n')
    storage.write(f"{directory}/data/second/part-0.json", b'{"a": 2}\n')
    metastore.call("create", lambda client: client.create_table(table))
    storage.delete(str(table.sd.location), recursive=True)

    def assert_replica(content: bytes) -> None:
        replica = side.target.metastore.table(unique, "t")
        assert replica is not None
        place = str(replica.sd.location)
        assert replica.sd.serdeInfo.parameters["path"] == place
        assert [side.target.storage.read(file.uri) for file in side.target.storage.files(place)] == [content]
        assert [one.differences for one in verify(side, unique)] == [()]
        found = witness(side.source, side.target, unique)
        assert (found.wrong, found.counts.files) == ([], (1, 1))

    assert warehouse.replicate().held == ()
    assert_replica(b'{"a": 1}\n')
    altered = copy_of(table)
    altered.sd.serdeInfo.parameters["path"] = f"{directory}/data/second"
    metastore.call("alter", lambda client: client.alter_table_with_environment_context(unique, "t", altered, None))
    assert warehouse.replicate().held == ()
    assert_replica(b'{"a": 2}\n')


def on_spark(side: Side, *statements: str) -> list[list[object]]:
    """Rows of the last of the statements."""
    command = [sys.executable, "-c", _SPARK, side.metastore, side.hdfs, *statements]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600, check=False)
    rows = [line.removeprefix("rows ") for line in done.stdout.splitlines() if line.startswith("rows ")]
    assert rows, done.stderr[-3000:]
    found: list[list[object]] = json.loads(rows[0])
    return found


@pytest.mark.long
def test_spark_reads_the_replicas_of_its_tables(connection: Connection, cluster: Cluster, unique: str) -> None:
    side = connect(connection.source.policy.model_copy(update={"databases": {unique: unique}}))
    origin, warehouse = Origin(side, unique), Warehouse(side, None, unique)  # type: ignore[arg-type]
    origin.create_database()
    database = side.source.metastore.database(unique)
    assert database is not None
    place = f"{database.locationUri}/data"
    on_spark(
        cluster.side("source"),
        f"CREATE TABLE {unique}.plain (a INT, b STRING) USING json LOCATION '{place}/plain'",
        f"INSERT INTO {unique}.plain VALUES (1, 'x'), (2, 'y')",
        f"CREATE TABLE {unique}.parts (a INT, b STRING) USING json PARTITIONED BY (b) LOCATION '{place}/parts'",
        f"INSERT INTO {unique}.parts VALUES (1, 'x'), (2, 'y')",
    )
    found = side.source.metastore.table(unique, "plain")
    assert found is not None
    assert (found.tableType, found.sd.location) == ("EXTERNAL_TABLE", f"{place}/plain")
    assert warehouse.replicate().held == ()
    assert [one.differences for one in verify(side, unique)] == [(), ()]
    query = "SELECT * FROM {0}.plain UNION ALL SELECT * FROM {0}.parts ORDER BY 1"
    assert on_spark(cluster.side("target"), query.format(unique)) == [[1, "x"], [1, "x"], [2, "y"], [2, "y"]]
