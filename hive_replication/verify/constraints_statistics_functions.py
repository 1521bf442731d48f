"""Compares constraints, column statistics and functions (pure)."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from pathlib import PurePosixPath

from hive_replication.dump.constraints_statistics_functions import statistics_of
from hive_replication.metastore.constraints import Constraint
from hive_replication.metastore.statistics import claimed
from hive_replication.metastore.types import Function, Partition, Table


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
        elif ours.get(column) != theirs.get(column) and (logged or (column in theirs and column in replicas)):
            yield f"statistics of column {column} differ"


def function_differences(source: Function | None, target: Function | None) -> Iterator[str]:
    """What differs between a function and its replica; paths of resources do not count, their names do."""
    if source is None or target is None:
        yield f"the function is on the {'source' if target is None else 'target'} only"
        return
    for what, ours, theirs in zip(("class", "owner", "resources"), _function(source), _function(target), strict=True):
        if ours != theirs:
            yield f"{what} is {theirs!r} on the target, {ours!r} on the source"


def _function(function: Function) -> tuple[str, str | None, str]:
    return function.className, function.ownerName, _names(resource.uri for resource in function.resourceUris or ())


def _names(uris: Iterable[str]) -> str:
    return ", ".join(PurePosixPath(uri).name for uri in uris)
