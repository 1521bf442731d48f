"""Partitions that are read of a table which is made again meanwhile."""

from __future__ import annotations

from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.types import FieldSchema, Partition, Table


def test_partitions_of_another_table_of_the_name_are_left_out() -> None:
    table = Table(tableName="t", partitionKeys=[FieldSchema("a", "string"), FieldSchema("b", "string")])
    parts = [Partition(values=values) for values in (["1", "2"], ["3"], ["4", "5", "6"])]
    assert by_name(table, parts) == {"a=1/b=2": parts[0]}
