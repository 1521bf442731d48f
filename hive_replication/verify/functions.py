"""Compares functions (pure)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from hive_replication.metastore.types import Function


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
