"""A table that a user of the target made anew after the plan, under the name of a replica: the load changes nothing of it."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.errors import Refused
from hive_replication.load.apply.change_tables import TableChanges
from hive_replication.load.apply.lane_placement import LanePlacement
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.columns import SetColumns
from hive_replication.load.operations.constraints import DropConstraint, SetConstraints
from hive_replication.load.operations.mark_left import MarkLeft
from hive_replication.load.operations.statistics import DeleteStatistics, SetStatistics
from hive_replication.load.replica.state import SOURCE
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.target_boundary import TargetBoundary
from hive_replication.metastore.types import FieldSchema, Partition, StorageDescriptor, Table


class _Metastore:
    """One table; counts calls, and answers those that read."""

    def __init__(self, source: str) -> None:
        keys, parameters = [FieldSchema("ds", "string", "")], {SOURCE: source} if source else {}
        self.found = Table("t", "db", sd=StorageDescriptor(cols=[]), partitionKeys=keys, parameters=parameters)
        self.calls: list[str] = []

    def table(self, _database: str, _name: str) -> Table:
        self.calls.append("table")
        return self.found

    def __getattr__(self, name: str) -> Any:
        def call(*_: object, **__: object) -> Any:
            self.calls.append(name)
            return iter([Partition(["1"], "db", "t", sd=StorageDescriptor(cols=[]), parameters={})])

        return call


def _new(day: int) -> op.NewPartition:
    image = Partition([str(day)], "db", "t", sd=StorageDescriptor(cols=[]), parameters={})
    return op.NewPartition(f"ds={day}", image, op.Content((), "s"))


ADDITION = op.AddPartitions(7, "t", tuple(_new(day) for day in range(5)))
OPERATIONS = [
    ADDITION,
    op.DropPartitions(7, "t", ("ds=1",)),
    SetColumns(7, "t", ("ds=1",), (FieldSchema("a", "int", ""),)),
    SetConstraints(7, "t", ()),
    DropConstraint(7, "t", "key"),
    SetStatistics(7, "t", ()),
    DeleteStatistics(7, "t", "", "a"),
    MarkLeft(7, "t", 7),
]


def _carry_out(metastore: _Metastore, operation: op.Operation) -> None:
    directories = {(0, new.name): "hdfs://d/w" for new in ADDITION.added}
    lane = cast("LanePlacement", SimpleNamespace(lane=SimpleNamespace(operations=(operation,)), directories=directories))
    target, boundary = SimpleNamespace(metastore=metastore), cast("TargetBoundary", None)
    TableChanges(cast("Target", target), "db", "uuid/db", boundary, lambda: None).carry_out(lane, 0)


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: type(one).__name__)
def test_nothing_of_it_is_changed(operation: op.Operation) -> None:
    metastore = _Metastore(source="")
    with pytest.raises(Refused, match=r"db\.t is not a replica of this source: rename or drop it there"):
        _carry_out(metastore, operation)
    assert set(metastore.calls) == {"table"}


def test_a_call_that_adds_partitions_reads_its_table_once() -> None:
    metastore = _Metastore(source="uuid/db")
    _carry_out(metastore, ADDITION)
    assert metastore.calls == ["table", "add_partitions"]
