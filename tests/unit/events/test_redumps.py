"""Which events of a transactional table leave something that no transaction tells."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hive_replication.events import event_records as r
from hive_replication.events.redumps import why_redump
from hive_replication.events.transactions import Compaction
from hive_replication.metastore.types import Partition, StorageDescriptor, Table

ACID, PLAIN = {"transactional": "true"}, dict[str, str]()
FULL = {**ACID, "transactional_properties": "default"}
INSERT_ONLY = {**ACID, "transactional_properties": "Insert_Only"}


def table(parameters: dict[str, str], location: str = "hdfs://s/w/t", name: str = "t") -> Table:
    return Table(tableName=name, dbName="db", sd=StorageDescriptor(location=location), parameters=parameters)


def altered(before: Table, after: Table, *, truncate: bool = False, write_id: int = 0) -> r.AlterTable:
    return r.AlterTable(7, 8, "ALTER_TABLE", "db", "t", before, after, truncate, write_id)


def partition(location: str) -> Partition:
    return Partition(values=["1"], sd=StorageDescriptor(location=location))


MOVED = r.ChangedPartition("d=1", "d=1", partition("a"), partition("b"))
CHANGED = r.AlterPartition(7, 8, "ALTER_PARTITION", "db", "t", table(ACID), (MOVED,), truncate=False)
TRUNCATED = replace(CHANGED, changes=(), truncate=True)
INSERT = r.Insert(7, 8, "INSERT", "db", "t", table(ACID), None, "", replace=False, files=())


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (altered(table(PLAIN), table(ACID)), "made transactional"),
        (altered(table(PLAIN), table(INSERT_ONLY)), "made transactional"),
        (altered(table(INSERT_ONLY), table(FULL)), "made a full ACID table"),
        (altered(table(INSERT_ONLY), table(ACID)), "made a full ACID table"),
        (altered(table(INSERT_ONLY), table(INSERT_ONLY)), ""),
        (altered(table(ACID), table(FULL)), ""),
        (altered(table(ACID), table(ACID, "hdfs://s/w/u")), "another location"),
        (altered(table(ACID), table(ACID), truncate=True), "truncated"),
        (altered(table(ACID), table(ACID), truncate=True, write_id=3), ""),
        (altered(table(ACID), table(ACID)), ""),
        (altered(table(ACID), table(ACID, "hdfs://s/w/u", "u")), ""),  # a rename moves the directory
        (altered(table(PLAIN), table(PLAIN, "hdfs://s/w/u")), ""),
        (CHANGED, "other locations"),
        (replace(CHANGED, table_object=table(PLAIN)), ""),
        (TRUNCATED, "truncated"),
        (replace(TRUNCATED, write_id=3), ""),
        (INSERT, "without a transaction"),
        (replace(INSERT, table_object=table(PLAIN)), ""),
        (Compaction(7, 8, "COMMIT_COMPACTION_EVENT", "db", "t", "REBALANCE"), "rebalanced"),
        (Compaction(7, 8, "COMMIT_COMPACTION_EVENT", "db", "t", "MAJOR"), ""),
        (r.DropTable(7, 8, "DROP_TABLE", "db", "t", table(ACID)), ""),
    ],
)
def test_what_no_transaction_tells(event: r.Event, why: str) -> None:
    found = why_redump(event)
    assert why in found
    assert bool(found) is bool(why)
