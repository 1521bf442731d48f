"""What the doctor says of snapshots of external tables."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

from hive_replication.doctor.snapshots import snapshots
from hive_replication.metastore.types import StorageDescriptor, Table
from hive_replication.policy.checks import Drift
from hive_replication.storage import Storage
from tests.lags import POLICY

PLACES = {"odd": "hdfs://source:8020/a//b", "plain": "hdfs://source:8020/a/c"}


def test_a_table_whose_location_is_refused_hides_nothing_of_others() -> None:
    tables = [
        Table(name, "sales", tableType="EXTERNAL_TABLE", sd=StorageDescriptor(location=place), parameters={"EXTERNAL": "TRUE"})
        for name, place in PLACES.items()
    ]
    policy = POLICY.model_copy(update={"drift": Drift(snapshots=True)})
    metastore = SimpleNamespace(table_names=lambda _: [*PLACES], tables=lambda *_: tables)
    source = SimpleNamespace(metastore=metastore, policy=policy, storage=Storage(policy.source.roots))
    connection: Any = SimpleNamespace(source=source, target=SimpleNamespace(identity="t", policy=policy))
    (found,) = snapshots(connection, "sales")
    assert found.found.startswith("none of external tables (1): /a/c; ")
