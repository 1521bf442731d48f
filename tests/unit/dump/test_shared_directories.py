"""External partitions at one directory, as the source's metastore has them."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from hive_replication.dump.incremental.shared_directories import SharedDirectories
from hive_replication.events import event_records as r
from hive_replication.metastore.types import FieldSchema, Partition, StorageDescriptor, Table

TABLE = Table(
    tableName="t",
    dbName="db",
    tableType="EXTERNAL_TABLE",
    sd=StorageDescriptor(location="hdfs://nn/d"),
    partitionKeys=[FieldSchema(name="p", type="string")],
    parameters={"EXTERNAL": "TRUE"},
)


def partition(value: str, location: str) -> Partition:
    return Partition(values=[value], dbName="db", tableName="t", sd=StorageDescriptor(location=location), parameters={})


def beside(there: str, here: str) -> str:
    """What is at the directory of a new partition 1, where the table has a partition 0."""
    new = partition("1", here)
    metastore = SimpleNamespace(partition_count=lambda *_: 2, partitions=lambda *_: [partition("0", there), new])
    source = SimpleNamespace(policy=SimpleNamespace(metadata_only=False), metastore=metastore)
    locations = SimpleNamespace(database="db", find_table=lambda *_: SimpleNamespace(table="t"))
    event = r.AddPartition(5, 0, "ADD_PARTITION", "db", "t", TABLE, (r.AddedPartition("p=1", new, None),))
    read = SharedDirectories(source, locations)  # type: ignore[arg-type]
    return read.beside(SimpleNamespace(decoded=event, row=SimpleNamespace(table="t"), evid=5))  # type: ignore[arg-type]


@pytest.mark.parametrize("odd", ["/d/x", "hdfs://nn/d//p=0", "hdfs://nn/d/../p=0", "", "d/x"])
def test_an_odd_location_of_one_partition_does_not_end_the_dump(odd: str) -> None:
    assert beside(odd, "hdfs://nn/d/p=1") == ""
    assert beside("hdfs://nn/d/p=0", odd) == ""


@pytest.mark.parametrize("same", ["hdfs://nn/d/x", "hdfs://nn/d/x/", "/d/x", "HDFS://nn/d/x"])
def test_spellings_of_one_directory(same: str) -> None:
    assert beside(same, "hdfs://nn/d/x") == "p=0"
    assert beside("hdfs://nn/d/x", same) == "p=0"
