"""Operations that are carried out together: neighbours of a lane on different partitions of one table (pure).

A metastore takes many partitions in one call, which it carries out whole or not at all, so each partition's state id still rises
with its change. What concerns a whole table, or a partition again, begins a new group.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from hive_replication.load import operations as op

#: Operations on partitions whose calls take many.
Change = op.AlterPartitions | op.ReplaceData | op.AppendData
_KINDS = (op.AddPartitions, op.DropPartitions, op.RenamePartition, Change)
_MOST = 500  # partitions of a group; an operation of more is one alone


def groups(operations: Sequence[op.Operation]) -> Iterator[range]:
    """Numbers of the operations that go together, in order.

    Args:
        operations: of one lane.
    """
    start, seen = 0, set[str]()
    for number, one in enumerate(operations):
        names = set(op.partitions_of(one))
        if number > start and not (_alike(operations[start], one) and names.isdisjoint(seen) and len(seen | names) <= _MOST):
            yield range(start, number)
            start, seen = number, set[str]()
        seen |= names
    if operations:
        yield range(start, len(operations))


def _alike(first: op.Operation, second: op.Operation) -> bool:
    same = first.table == second.table and bool(op.partitions_of(first)) and bool(op.partitions_of(second))
    return same and any(isinstance(first, kind) and isinstance(second, kind) for kind in _KINDS)
