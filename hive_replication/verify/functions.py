"""Compares functions and the copies of their resources."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import PurePosixPath

from hive_replication.dump.format.record_types import FunctionRecord
from hive_replication.dump.functions import why_left_out
from hive_replication.errors import Refused
from hive_replication.events.files import FileRef
from hive_replication.load.replica.owners import owned_on_target
from hive_replication.metastore.types import Function
from hive_replication.storage import Late, NoChecksum, Storage


@dataclass(frozen=True, slots=True)
class FunctionPair:
    """A function and its replica.

    Args:
        name: in small letters.
        record: the source's, where it is replicated.
        source: the same with the owner that it has on the target.
        target: the target's.
    """

    name: str
    record: FunctionRecord | None
    source: Function | None
    target: Function | None

    def differences(self) -> Iterator[str]:
        """What differs, but for the content of resources."""
        return function_differences(self.source, self.target)


def function_pairs(
    records: Iterable[FunctionRecord], targets: Mapping[str, Function], owners: Mapping[str, str]
) -> Iterator[FunctionPair]:
    """Functions that are replicated, and those on the target that no function of the source explains, by name.

    Of functions that are left out, and of those without resources, operators make the target's themselves.

    Args:
        records: all functions of the source.
        targets: all of the target, by their names in small letters.
        owners: of the policy.
    """
    every = {record.name: record for record in records}
    ours = {name: record for name, record in every.items() if not why_left_out(record.function, record.files)}
    theirs = {name: one for name, one in targets.items() if name in ours or (one.resourceUris and name not in every)}
    for name in sorted(ours.keys() | theirs.keys()):
        record = ours.get(name)
        yield FunctionPair(name, record, record and owned_on_target(record.function, owners), theirs.get(name))


def function_differences(source: Function | None, target: Function | None) -> Iterator[str]:
    """What differs between a function and its replica; paths of resources do not count, their names do."""
    if source is None or target is None:
        yield f"the function is on the {'source' if target is None else 'target'} only"
        return
    for what, ours, theirs in zip(("class", "owner", "resources"), _function(source), _function(target), strict=True):
        if ours != theirs:
            yield f"{what} is {theirs!r} on the target, {ours!r} on the source"


@dataclass(frozen=True)
class Resources:
    """Compares copies of resources with what the source has: a function whose jar is damaged or gone calls as if it were not.

    Args:
        source, target: storage of both sides.
        same_content: reads two files where their stores' checksums do not decide.
    """

    source: Storage
    target: Storage
    same_content: Callable[[FileRef, FileRef], bool]

    def differences(self, source: FunctionRecord, target: Function) -> Iterator[str]:
        """What is wrong with the copies that a replica names; those that the source lacks too are left."""
        files = {file.uri: file for file in source.files}
        for ours, theirs in zip(source.function.resourceUris or (), target.resourceUris or (), strict=False):
            with suppress(Refused):  # of a store that is not the policy's: no replica of ours
                if ours.uri in files and (said := self._difference(files[ours.uri], theirs.uri)):
                    yield f"its resource {theirs.uri} {said}"

    def _difference(self, source: FileRef, target: str) -> str:
        if not self.source.exists(source.uri):
            return ""
        if not self.target.exists(target):
            return "is missing on the target"
        checksum = None
        with suppress(NoChecksum, Late):  # of lost or damaged blocks, which cannot be read either, or too large
            checksum = self.target.checksum(target)
        same = checksum is not None and checksum.value == source.checksum
        return "" if same or self.same_content(source, FileRef(target)) else f"has other content than {source.uri} at the source"


def _function(function: Function) -> tuple[str, str | None, str]:
    return function.className, function.ownerName, _names(resource.uri or "" for resource in function.resourceUris or ())


def _names(uris: Iterable[str]) -> str:
    return ", ".join(PurePosixPath(uri).name for uri in uris)
