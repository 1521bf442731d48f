"""What operators ask for, without servers."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication import operate
from hive_replication.errors import BadRequest
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.types import FieldSchema, Partition, Table
from tests.lags import POLICY


class Metastore:
    """One table with some partitions."""

    def __init__(self, *days: str) -> None:
        self.days = days

    def table(self, _: str, name: str) -> Table:
        return Table(tableName=name, partitionKeys=[FieldSchema("ds", "string")])

    def partitions(self, _db: str, _table: str, names: list[str]) -> list[Partition]:
        return [Partition(values=[day]) for day in self.days if f"ds={day}" in names]


def test_a_partition_that_neither_side_has_is_no_difference(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is misspelt; one that a side lacks is to be repaired."""
    monkeypatch.setattr(operate, "_state", lambda *_: ReplicaState("u/sales", 5))
    monkeypatch.setattr(operate, "_different", lambda *_: ())
    sides = (SimpleNamespace(metastore=Metastore(*days), policy=POLICY) for days in (("1", "2"), ("1", "3")))
    connection: Any = SimpleNamespace(**dict(zip(("source", "target"), sides, strict=True)))
    assert not operate.repair(connection, "sales.orders", ["ds=2", "ds=3"], dry_run=True).needed
    with pytest.raises(BadRequest, match=r"neither side has the partition ds=typo of sales\.orders"):
        operate.repair(connection, "sales.orders", ["ds=1", "ds=typo"], dry_run=True)
