"""Functions on the target: where their resources go, and the operations on them.

A function has no parameters to carry a state id. Its resources lie below ``<root>/<db>/<function>/<evid>/``, as with Hive's
``hive.repl.replica.functions.root.dir``: so the paths that it names tell that it is our replica, and of which event. Below the
database's own directory they tell so whatever root the policy names since. One that is no replica is left, but where the
policy's ``conflicts`` let replicas take its place, and in a failback, whose old source had it first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass

from hive_replication.dump.format.record_types import FunctionRecord
from hive_replication.errors import Refused
from hive_replication.events.event_records import function_name
from hive_replication.events.files import FileRef
from hive_replication.load.layout.directories import Layout
from hive_replication.load.operations.kinds import Content, CustomOperation
from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.failover_marks import failover_marks
from hive_replication.load.replica.name_mapping import NameMapping
from hive_replication.load.replica.owners import owned_on_target
from hive_replication.load.replica.parameters import number_of
from hive_replication.load.replica.target import Target
from hive_replication.metastore.types import Function
from hive_replication.storage import NoChecksum, Storage, paths

#: The way out for replicas that are not known by their paths any more.
EARLIER_ROOT = "if it is a replica whose files lie below an earlier functions_root, set that in the policy again"


@dataclass(frozen=True, slots=True)
class CreateFunction(CustomOperation):
    """Creates a function, after its resources are copied; one of an earlier event is replaced.

    Args:
        image: with the target's paths.
        content: the resources to copy.
        directory: where they go.
        homes: where resources of this function's replicas lie; new ones go below the first.
        force: replace one of a later event, too: it is of another history.
    """

    kind = "CreateFunction"
    image: Function
    content: Content
    directory: str
    homes: tuple[str, ...]
    force: bool = False

    @property
    def contents(self) -> Iterator[tuple[str, Content]]:
        """The resources."""
        yield "", self.content

    @property
    def places(self) -> Iterator[tuple[str, str]]:
        """The directory of the resources."""
        yield "", self.directory

    def carry_out(self, target: Target, database: str) -> None:
        """Creates it.

        Raises:
            Refused: the target has a function of that name that is no replica, and stays.
        """
        found = target.metastore.function(database, self.image.functionName)
        if found is not None:
            there = state_id(found, self.homes)
            if there is None and not (self._may_replace(found, target) or is_of_old_source(target, database, found)):
                raise Refused(
                    f"the target function {database}.{self.image.functionName} exists and is not a replica: drop it "
                    f"there, or {EARLIER_ROOT}"
                )
            if covers(there, self.evid) and not self.force:
                return
            target.metastore.drop_function(database, self.image.functionName)
        target.metastore.create_function(self.image)

    def _may_replace(self, found: Function, target: Target) -> bool:
        """Whether the policy lets it take the place of one that is no replica; there is no other name to keep that under."""
        conflicts = target.policy.conflicts
        return conflicts == "replace" or (conflicts != "refuse" and _named(found) == _named(self.image))


@dataclass(frozen=True, slots=True)
class DropFunction(CustomOperation):
    """Drops a function. Its resources stay: who has loaded them goes on using them."""

    kind = "DropFunction"
    function: str
    homes: tuple[str, ...]
    force: bool = False

    def carry_out(self, target: Target, database: str) -> None:
        """Drops it; none, one of a later event, or one that is no replica and was none of an old source is left alone."""
        found = target.metastore.function(database, self.function)
        if found is None:
            return
        there = state_id(found, self.homes)
        if is_of_old_source(target, database, found) if there is None else self.force or covers(self.evid, there):
            target.metastore.drop_function(database, self.function)


def is_of_old_source(target: Target, database: str, function: Function) -> bool:
    """Whether a function that is no replica becomes one by the failback that is under way, as the tables of its database do.

    Functions without resources are never replicated. What the old source changed itself stays where it is kept aside.
    """
    marks = failover_marks(target.metastore.database(database))
    aside = target.policy.conflicts == "keep-aside" and function_name(function.functionName.lower()) in marks.behind
    return marks.role == "closed" and bool(function.resourceUris) and not aside


def given_up_functions(target: Target, database: str, found: Iterable[Function]) -> frozenset[str]:
    """Names of functions that an old source had made itself, and that the failback under way was allowed to give up."""
    names = {one.functionName.lower() for one in found if is_of_old_source(target, database, one)}
    settled = failover_marks(target.metastore.database(database)).behind if names else ()
    return frozenset(name for name in names if function_name(name) in settled)


def _named(function: Function) -> tuple[str, str | None, list[str]]:
    """What tells a function, wherever its resources lie."""
    return function.className, function.ownerName, [paths.name(one.uri) for one in function.resourceUris or ()]


def homes_of(mapping: NameMapping, function: str) -> tuple[str, ...]:
    """The directories of all resources of a function's replicas: where new ones go, and where those without a root went."""
    return _homes(mapping.functions_root, mapping.target_location, mapping.target_database, function)


def _homes(root: str, location: str, database: str, function: str) -> tuple[str, ...]:
    roots = dict.fromkeys((root or Layout(location).functions, Layout(location).functions))
    return tuple(f"{one.rstrip('/')}/{database}/{function}" for one in roots)


def foreign_functions(target: Target, database: str, location: str, found: Iterable[Function]) -> list[str]:
    """Names of a target database's functions that are no replicas, and do not become some by a failback that is under way.

    Args:
        target: the target side.
        database: the database.
        location: its directory.
        found: its functions.
    """
    root = target.policy.functions_root or ""
    strange = [one for one in found if state_id(one, _homes(root, location, database, one.functionName.lower())) is None]
    return [one.functionName for one in strange if not is_of_old_source(target, database, one)]


def state_id(function: Function, homes: tuple[str, ...]) -> int | None:
    """Event id that a target function is of, or None where it is no replica."""
    found = (number_of(below.partition("/")[0]) for _, below in _below(function, homes))
    return next((evid for evid in found if evid is not None), None)


def _below(function: Function, homes: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The homes that a function's resources lie in, with their paths there."""
    for resource in function.resourceUris or ():
        for home in homes:
            if resource.uri.startswith(f"{home}/"):
                yield home, resource.uri.removeprefix(f"{home}/")


def differing_copies(
    storage: Storage, mapping: NameMapping, records: Iterable[FunctionRecord], found: Mapping[str, Function], evid: int
) -> frozenset[str]:
    """Names of functions of an event whose copied resources are not proven to be those of a dump: damaged, older or gone.

    Args:
        storage: the target's.
        mapping: names and paths.
        records: of the dump.
        found: the target's functions, by name.
        evid: the event; functions of others get their resources anew, or are left.
    """
    there = ((one, found[one.name]) for one in records if one.name in found)
    alike = [(one, made) for one, made in there if state_id(made, homes_of(mapping, one.name)) == evid]
    return frozenset(one.name for one, made in alike if not all(_proven(storage, *pair) for pair in _copies(one, made)))


def _copies(record: FunctionRecord, there: Function) -> Iterator[tuple[FileRef, str]]:
    """Resources that are copied, and where their copies are."""
    files = {file.uri: file for file in record.files}
    for ours, theirs in zip(record.function.resourceUris or (), there.resourceUris or (), strict=False):
        if ours.uri in files:
            yield files[ours.uri], theirs.uri


def _proven(storage: Storage, file: FileRef, copy: str) -> bool:
    with suppress(NoChecksum, FileNotFoundError, Refused):  # its blocks are lost, it is gone, or no place of ours
        found = storage.checksum(copy)
        return found is not None and found.value == file.checksum
    return False


def _beside(there: Function, homes: tuple[str, ...]) -> str:
    """A directory of the same event for resources whose copies are not to be touched: who has loaded them goes on using them."""
    for home, below in _below(there, homes):
        evid, *rest = below.split("/")
        return f"{home}/{evid}/{(number_of(rest[0]) or 0) + 1 if len(rest) > 1 else 1}"
    raise AssertionError(f"{there.functionName} has no resource below {homes}")


def create_function(
    mapping: NameMapping, function: Function, files: tuple[FileRef, ...], evid: int, instead: Function | None = None
) -> CreateFunction:
    """The operation for a function of the source (pure).

    Args:
        mapping: names and paths.
        function: as the source has it.
        files: its resources that are copied.
        evid: event id that it is of.
        instead: the replica of that very event whose resources are not what they were.
    """
    name = function.functionName.lower()
    homes = homes_of(mapping, name)
    directory = _beside(instead, homes) if instead else f"{homes[0]}/{evid}"
    copied = {file.uri: f"{directory}/{file.relative}" for file in files}
    image = owned_on_target(function, mapping.owners)
    image.dbName, image.catName = mapping.target_database, None
    for resource in image.resourceUris or ():
        resource.uri = copied.get(resource.uri, resource.uri)
    return CreateFunction(evid, function_name(name), image, Content(files, ""), directory, homes)
