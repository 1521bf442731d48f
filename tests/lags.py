"""Lags of one database, and its policy, without servers."""

from __future__ import annotations

from dataclasses import replace

from hive_replication.lag import Lag
from hive_replication.policy import Policy, Root
from hive_replication.policy.model import Warehouse

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
