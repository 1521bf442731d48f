"""Partitions that are read of a table which is made again meanwhile, or of a view."""

from __future__ import annotations

import pytest

from hive_replication.load.layout.live_locations import live_locations
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.types import FieldSchema, Partition, StorageDescriptor, Table


def test_partitions_of_another_table_of_the_name_are_left_out() -> None:
    table = Table(tableName="t", partitionKeys=[FieldSchema("a", "string"), FieldSchema("b", "string")])
    parts = [Partition(values=values) for values in (["1", "2"], ["3"], ["4", "5", "6"])]
    assert by_name(table, parts) == {"a=1/b=2": parts[0]}


def test_partitions_of_views_have_no_storage_and_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """``ALTER VIEW ... ADD PARTITION``; retention ended where the target had such a view."""
    view = Table(tableName="v", dbName="db", partitionKeys=[FieldSchema("a", "string")], tableType="VIRTUAL_VIEW")
    view.sd = StorageDescriptor()
    table = Table(tableName="t", dbName="db", partitionKeys=view.partitionKeys, tableType="MANAGED_TABLE")
    table.sd = StorageDescriptor(location="hdfs://t/db/t")
    parts = {"v": [Partition(values=["1"])], "t": [Partition(values=["1"], sd=StorageDescriptor(location="hdfs://t/db/t/a=1"))]}
    metastore = Metastore("thrift://t:1")
    answers = {"get_partition_names db.v": ["a=1"], "get_partition_names db.t": ["a=1"], "get_tables db.*": ["v", "t"]}
    answers |= {"get_partitions db.v": parts["v"], "get_partitions db.t": parts["t"], "get_tables db": [view, table]}

    def call(what: str, _: object) -> object:
        return answers[what]

    monkeypatch.setattr(metastore, "call", call)
    assert list(metastore.partitions("db", "v")) == []
    assert list(metastore.partitions("db", "t")) == parts["t"]
    assert list(live_locations(metastore, "db").within("hdfs://t/db")) == ["hdfs://t/db/t"]
