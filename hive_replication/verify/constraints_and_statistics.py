"""Compares constraints and column statistics (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from hive_replication.dump.statistics import statistics_of
from hive_replication.metastore.constraints import Constraint
from hive_replication.metastore.statistics import are_same, claimed
from hive_replication.metastore.types import Partition, Table


def constraint_differences(source: Collection[Constraint], target: Collection[Constraint]) -> Iterator[str]:
    """Constraints that only one side has."""
    ours, theirs = ({_shown(one) for one in constraints} for constraints in (source, target))
    yield from (f"constraint {one} is on the source only" for one in sorted(ours - theirs))
    yield from (f"constraint {one} is on the target only" for one in sorted(theirs - ours))


def _shown(constraint: Constraint) -> str:
    return constraint.described() + (f" -> {constraint.parent[1]}" if constraint.parent else "")


def statistics_differences(source: Table | Partition, target: Table | Partition, *, logged: bool) -> Iterator[str]:
    """Columns whose statistics differ; those that the target does not claim to be accurate only where events tell of them."""
    ours, theirs = ({one.colName: one for one in statistics_of(thing)} for thing in (source, target))
    claims, replicas = claimed(source.parameters), claimed(target.parameters)
    for column in sorted(ours.keys() | theirs.keys()):
        if column in theirs and column in replicas and column not in claims:
            yield f"statistics of column {column} are accurate on the target only, as it says"
        elif not are_same(ours.get(column), theirs.get(column)) and (logged or (column in theirs and column in replicas)):
            yield f"statistics of column {column} differ"
