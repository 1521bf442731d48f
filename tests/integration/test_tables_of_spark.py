"""External tables of Spark in a format that Hive does not read: their location does not exist, their data is at ``path``."""

from __future__ import annotations

import pytest

from hive_replication.api import verify
from hive_replication.connect import Connection, connect
from hive_replication.metastore.types import Table, copy_of
from hive_replication.verify.witness import witness
from tests.origin import TEXT, Origin
from tests.warehouse import Warehouse

pytestmark = pytest.mark.servers


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
