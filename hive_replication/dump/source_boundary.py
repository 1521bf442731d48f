"""What of the source may be read for a database: the directories that its policy allows, and the paths that objects name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache

from hive_replication.dump.cm_roots import in_zones
from hive_replication.errors import Refused
from hive_replication.events import event_records as r
from hive_replication.events.files import FileRef
from hive_replication.metastore.avro import NO_URL, SCHEMA_URL
from hive_replication.metastore.spark_tables import PATH
from hive_replication.metastore.table_kinds import is_view
from hive_replication.metastore.types import Database, Function, Partition, StorageDescriptor, Table
from hive_replication.policy import Policy
from hive_replication.storage import paths
from hive_replication.storage.boundary import EVERYWHERE, Boundary, comparable, qualified

#: Reads a setting of the source's metastore; the default where it is not set.
Setting = Callable[[str, str], str]

#: Parameters of tables and serdes that name data or schemas to read, in lower case.
_PATHS = frozenset({PATH, SCHEMA_URL})
_LOCATION = "the location of "
_WAREHOUSES = ("hive.metastore.warehouse.dir", "hive.metastore.warehouse.external.dir")
_CM_ROOTS = ("hive.repl.cmrootdir", "hive.repl.cm.nonencryptionzone.rootdir")


@dataclass(frozen=True)
class SourceBoundary:
    """What may be read of one source database.

    Args:
        data: of tables, partitions, and what they and functions name.
        deleted: of deleted files: cmroot.
        beside: the database's directory, on whose store paths without a scheme lie; "" where it is not known.
        in_zones: asks where in an encryption zone its cmroot lies; called only where another cmroot is named.
        homes: asks for the database's own directories in the source's warehouses, of external and of managed tables.
        named: those that the database itself names, without those of a policy that reads no data.
    """

    data: Boundary
    deleted: Boundary
    beside: str = ""
    in_zones: Callable[[], str] = str
    homes: Callable[[], tuple[str, ...]] = tuple
    named: tuple[str, ...] = ()

    @property
    def directories(self) -> tuple[str, ...]:
        """The database's own of external and of managed tables, without those of a policy that reads no data."""
        return tuple(dict.fromkeys((*self.named, *self.homes())))

    def why_outside(self, thing: Table | Partition | Function) -> str:
        """Why an object may not be read, or "" where it may."""
        for what, uri in _paths(thing):
            whole = qualified(uri, self.beside)
            reason = self.data.why_outside(whole)
            if not reason and whole != uri and what.startswith(_LOCATION) and not self.data.everywhere:
                reason = f"{uri} names no store, and is not listed: set it to {whole} at the source (SET LOCATION)"
            if reason:
                return f"{what}: {reason}"
        return ""

    def why_files_outside(self, files: tuple[FileRef, ...]) -> str:
        """Why one of several files may not be read, or "" where all may."""
        checked: set[str] = set()
        for file in files:
            directory = file.uri.rpartition("/")[0]
            if directory not in checked:
                if self.data.holds(directory):
                    checked.add(directory)
                elif reason := self.data.why_outside(file.uri):
                    return f"a file: {reason}"
            if file.cm_uri and file.cm_root not in checked:
                if (reason := self.deleted.why_outside(file.cm_root)) and not self._is_in_zone(file.cm_root):
                    return f"the cmroot of {file.uri}: {reason}"
                checked.add(file.cm_root)
        return ""

    def _is_in_zone(self, cm_root: str) -> bool:
        path = self.in_zones()
        return bool(path) and cm_root.rstrip("/").endswith(f"/{path}")

    def why_event_outside(self, event: r.Event | None) -> str:
        """Why an object may not be read as an event leaves it, or "" where it may."""
        return next((reason for image in images_after(event) if (reason := self.why_outside(image))), "")


#: Of loads and dumps that read no data.
ANYWHERE = SourceBoundary(EVERYWHERE, EVERYWHERE)


def source_boundary(policy: Policy, name: str, database: Database | None, setting: Setting | None) -> SourceBoundary:
    """The boundary of a source database.

    Args:
        policy: the policy.
        name: of the database.
        database: as the source has it; None where it has none of the name.
        setting: reads settings of the source's metastore; called only where a directory ``<name>.db`` does not suffice. None
            where it cannot be asked: then its warehouses are not known, and any cmroot is taken.
    """
    locations = _locations(database)
    beside = locations[0] if locations else policy.source.roots[0].uri
    if policy.metadata_only:
        return SourceBoundary(EVERYWHERE, EVERYWHERE, beside)

    @cache
    def homes() -> tuple[str, ...]:
        return tuple(one if name == "default" else f"{one}/{name}.db" for one in _set(setting, beside, _WAREHOUSES))

    @cache
    def further() -> tuple[str, ...]:
        others = [other for other in policy.databases if other not in (name, "default")]
        return (*homes(), *(f"{one}/{other}.db" for one in _set(setting, beside, _WAREHOUSES) for other in others))

    @cache
    def cm_roots() -> tuple[str, ...]:
        return _set(setting, beside, _CM_ROOTS)

    def zones() -> str:
        return in_zones(setting) if setting else ""

    paths_of_policy = tuple(qualified(one, beside) for one in policy.source.paths)
    replica = locations[0] if locations and has_our_state(database) else ""
    shared = (*locations, *homes()) if name == "default" else ()
    own = tuple(one for one in locations if not _why_not_own(name, one, setting))
    data = Boundary("source.paths", (*own, *paths_of_policy), further, shared, replica)
    deleted = Boundary("source.paths", paths_of_policy, cm_roots) if setting else EVERYWHERE
    return SourceBoundary(data, deleted, beside, cache(zones), homes, locations)


def _locations(database: Database | None) -> tuple[str, ...]:
    named = (database.locationUri, database.managedLocationUri) if database else ()
    return tuple(one.rstrip("/") for one in named if one)


def _set(setting: Setting | None, beside: str, keys: tuple[str, ...]) -> tuple[str, ...]:
    """Directories that settings of the source's metastore name."""
    found = (setting(key, "").rstrip("/") for key in keys) if setting else ()
    return tuple(qualified(one, beside) for one in found if one)


def not_its_own(policy: Policy, database: Database, setting: Setting) -> list[str]:
    """Why directories that a database names do not count as its own, each where it is so, and ``source.paths`` has it not."""
    locations = _locations(database)
    named = Boundary("source.paths", tuple(qualified(one, locations[0]) for one in policy.source.paths if locations))
    found = [(one, _why_not_own(database.name, one, setting)) for one in locations]
    return [reason for one, reason in found if reason and not policy.metadata_only and not named.holds(one)]


def _why_not_own(name: str, location: str, setting: Setting | None) -> str:
    """Why a directory that a database names does not count as its own, or "" where it does.

    Whoever may alter the database chooses it, and with it what replication reads with rights of its own.
    """
    try:
        plain, path = comparable(location), paths.split(location)[2]
    except Refused as error:
        return str(error)
    if path.endswith(f"/{name}.db"):  # Hive's choice; no setting is asked for
        return ""
    warehouses, cm_roots = (tuple(_comparable(_set(setting, location, keys))) for keys in (_WAREHOUSES, _CM_ROOTS))
    if name == "default" and plain in warehouses:  # which may be a bucket
        return ""
    if path == "/":
        return f"{location} is a whole store"
    for one in (*warehouses, *cm_roots):
        if paths.is_under(one, plain):
            return f"{location} holds {one}, a warehouse or cmroot"
    for one in warehouses:
        first = plain.removeprefix(f"{one}/").partition("/")[0] if paths.is_under(plain, one) else ""
        if first.endswith(".db") and first != f"{name}.db":
            return f"{location} lies in {one}/{first}, the directory of another database"
    return ""


def _comparable(directories: Iterable[str]) -> Iterator[str]:
    for one in directories:
        with suppress(Refused):  # a setting that is no full URI names no directory
            yield comparable(one)


def has_our_state(database: Database | None) -> bool:
    """Whether a source database is a replica itself, or was one: what loads placed below its ``.repl`` is its own."""
    return any(key.startswith("hive_replication.") for key in (database and database.parameters) or {})


def images_after(event: r.Event | None) -> Iterator[Table | Partition | Function]:
    """The objects whose data an event brings, as they are after it."""
    match event:
        case r.CreateTable() | r.AlterTable() | r.CreateFunction():
            yield event.after
        case r.AddPartition():
            yield from (added.partition for added in event.partitions)
        case r.AlterPartition():
            yield from (change.after for change in event.changes)
        case r.Insert():
            yield event.partition or event.table_object
        case _:
            pass


def _paths(thing: Table | Partition | Function) -> Iterator[tuple[str, str]]:
    """What an object names that is read, or that its replica would name."""
    if isinstance(thing, Function):
        yield from ((f"the resource of the function {thing.functionName}", one.uri) for one in thing.resourceUris or ())
        return
    owner = f"{thing.tableName}/{'/'.join(thing.values or ())}" if isinstance(thing, Partition) else thing.tableName
    if thing.sd is None or (  # pyright: ignore[reportUnnecessaryComparison] - of a view in a message
        isinstance(thing, Table) and is_view(thing)
    ):
        return
    if thing.sd.location:
        yield f"{_LOCATION}{owner}", thing.sd.location
    for name, value in _named(thing.parameters, thing.sd):
        yield f"the parameter {name} of {owner}", value


def _named(parameters: Mapping[str, str] | None, sd: StorageDescriptor) -> Iterator[tuple[str, str]]:
    for found in (parameters, sd.parameters, sd.serdeInfo.parameters if sd.serdeInfo else None):
        for key, value in (found or {}).items():
            if key.lower() in _PATHS and (value or "").lower() not in NO_URL:
                yield key, value
    skewed = sd.skewedInfo.skewedColValueLocationMaps if sd.skewedInfo else None
    yield from (("skewed location", value) for value in (skewed or {}).values())
