"""Lags of one database, and its policy, without servers."""

from __future__ import annotations

from dataclasses import replace

from hive_replication.events import event_records as r
from hive_replication.events.files import FileRef
from hive_replication.lag import Lag
from hive_replication.metastore.types import FieldSchema, NotificationEvent, Partition, StorageDescriptor, Table
from hive_replication.policy import Policy, Root
from hive_replication.policy.model import Warehouse
from tests.messages import row

NOWHERE = "thrift://127.0.0.1:1"
POLICY = Policy(
    source=Warehouse(metastore=NOWHERE, roots=(Root(uri="hdfs://source:8020/"),)),
    target=Warehouse(metastore=NOWHERE, roots=(Root(uri="hdfs://target:8020/"),)),
    dump_root="hdfs://target:8020/dumps",
    databases={"sales": "sales"},
)
WELL = Lag("sales", "sales", 100, 100, 0, 0.0)
LATE = replace(WELL, current=150, waiting=50, seconds_behind=1200.0)
HELD = replace(WELL, held=(("orders", "no <space>"), ("old", "undone to 90")))
FILTERED = POLICY.model_copy(update={"partition_filters": {"sales": {"t": "ds >= '2026'"}}})


def insert_outside(evid: int) -> NotificationEvent:
    """An INSERT into a partition outside the filter of ``sales.t``, which is external: one inside may have its directory."""
    keys, place = [FieldSchema(name="ds", type="string")], StorageDescriptor(location="hdfs://source:8020/d", cols=[])
    table = Table(tableName="t", dbName="sales", tableType="EXTERNAL_TABLE", sd=place, partitionKeys=keys)
    table.parameters = {"EXTERNAL": "TRUE"}
    day = StorageDescriptor(location="hdfs://source:8020/d/day")
    part = Partition(values=["2025"], dbName="sales", tableName="t", sd=day, parameters={})
    files = (FileRef("hdfs://source:8020/d/day/f"),)
    return row(r.Insert(evid, 1000 + evid, "INSERT", "sales", "t", table, part, "ds=2025", replace=False, files=files))
