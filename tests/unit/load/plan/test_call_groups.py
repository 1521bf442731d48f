"""Which operations of a lane are carried out together."""

from __future__ import annotations

import pytest

from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.call_groups import at_once, groups
from hive_replication.metastore.types import Partition, Table

NOTHING = op.Content((), "1-0")


def alter(*names: str, table: str = "t") -> op.AlterPartitions:
    return op.AlterPartitions(1, table, tuple((name, Partition()) for name in names))


def append(name: str) -> op.AppendData:
    return op.AppendData(1, "t", name, Partition(), NOTHING)


def add(name: str, table: str = "t") -> op.AddPartitions:
    return op.AddPartitions(1, table, (op.NewPartition(name, Partition(), NOTHING),))


@pytest.mark.parametrize(
    ("operations", "sizes"),
    [
        ([], []),
        ([alter("a"), append("b"), alter("c")], [3]),
        ([append("a"), append("b"), append("a")], [2, 1]),
        ([alter("a"), alter("b", table="u")], [1, 1]),
        ([append("a"), append(""), append("b")], [1, 1, 1]),
        ([alter("a"), op.DropPartitions(2, "t", ("b",)), op.DropPartitions(3, "t", ("c",))], [1, 2]),
        ([op.RenamePartition(1, "t", "a", "b", Partition()), op.RenamePartition(2, "t", "b", "c", Partition())], [1, 1]),
        ([alter("a"), op.AlterTable(2, "t", Table()), alter("b")], [1, 1, 1]),
        ([alter(*map(str, range(600))), alter("x")], [1, 1]),
        ([append(str(n)) for n in range(501)], [500, 1]),
        ([add(str(n)) for n in range(250)], [100, 100, 50]),
    ],
)
def test_neighbours_on_different_partitions_of_one_table(operations: list[op.Operation], sizes: list[int]) -> None:
    found = list(groups(operations))
    assert list(map(len, found)) == sizes
    assert [number for numbers in found for number in numbers] == list(range(len(operations)))


def test_only_additions_to_one_table_are_made_at_the_same_time() -> None:
    added = [add(str(n)) for n in range(250)]
    operations = [*added, *(add(str(n), table="u") for n in range(2)), alter("1"), append("2"), append("1")]
    assert [list(map(len, some)) for some in at_once(operations, groups(operations))] == [[100, 100, 50], [2], [2], [1]]
