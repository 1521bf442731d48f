"""Operations that are carried out together: neighbours of a lane on different partitions of one table (pure).

A metastore takes many partitions in one call, which it carries out whole or not at all, so each partition's state id still rises
with its change. What concerns a whole table, or a partition again, begins a new group. Groups that add partitions to one table
are carried out at the same time: a metastore works on one call with one processor.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby, islice

from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.statistics import SetStatistics

#: Operations on partitions whose calls take many.
Change = op.AlterPartitions | op.ReplaceData | op.AppendData
_KINDS = (op.AddPartitions, op.DropPartitions, op.RenamePartition, Change, SetStatistics)
_MOST = 500  # partitions of a group; an operation of more is one alone
#: Partitions that are added by one call, where they need not be more: the other processors of the metastore get some, too.
MOST_ADDED = 100


def groups(operations: Sequence[op.Operation], first: int = 0) -> Iterator[range]:
    """Numbers of the operations that go together, in order.

    Args:
        operations: of one lane.
        first: number of the first that is wanted.
    """
    start, seen = first, set[str]()
    for number, one in enumerate(operations[first:], first):
        names = _partitions(one)
        most = MOST_ADDED if isinstance(one, op.AddPartitions) else _MOST
        together = seen and names and names.isdisjoint(seen) and len(seen) + len(names) <= most
        if number > start and not (together and _alike(operations[start], one)):
            yield range(start, number)
            start, seen = number, set[str]()
        seen |= names
    if operations[first:]:
        yield range(start, len(operations))


def at_once(operations: Sequence[op.Operation], found: Iterable[range]) -> Iterator[list[range]]:
    """Those of the groups found that are carried out at the same time, in order; most are alone."""

    def key(numbers: range) -> str | int:
        first = operations[numbers.start]
        return first.table if isinstance(first, op.AddPartitions) else numbers.start

    return (list(same) for _, same in groupby(found, key))


def only_adds(operations: Sequence[op.Operation]) -> bool:
    """Whether operations do nothing but add partitions, by several calls: each can be made as soon as its files are copied."""
    return all(isinstance(one, op.AddPartitions) for one in operations) and len(list(islice(groups(operations), 2))) > 1


def _alike(first: op.Operation, second: op.Operation) -> bool:
    return first.table == second.table and any(isinstance(first, kind) and isinstance(second, kind) for kind in _KINDS)


def _partitions(one: op.Operation) -> set[str]:
    """Names of the partitions that it is about; none where it is about the table, too."""
    names = {change.partition for change in one.changes} if isinstance(one, SetStatistics) else set(one.partitions)
    return set() if "" in names else names
