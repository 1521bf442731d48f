"""What an accepted plan may name, by rules of the test's own: tables of the scope, and directories of the policy.

A plan is followed one stage further, to the places of its files, which a load chooses before it changes anything. Nothing here
asks the product which tables or paths are allowed.
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from functools import cache
from typing import Any

from hive_replication.errors import ReplicationError
from hive_replication.load.apply.database import TargetDatabase
from hive_replication.load.apply.lane_placement import LanePlacement
from hive_replication.load.apply.placement import Placer
from hive_replication.load.operations.avro_schemas import CopySchemas
from hive_replication.load.operations.functions import CreateFunction
from hive_replication.load.operations.mark_left import MarkLeft
from hive_replication.load.plan.load_plan import LanePlan
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.target_view import KnownObjects

_URI = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*)://([^/]*)(/.*)", re.DOTALL)
_STAGED = re.compile(r"\d+-\d+(-\d+)?")


@dataclass(frozen=True)
class Bounds:
    """What a policy lets a dump do.

    Args:
        database: of the target.
        tables, exclude: patterns of a shell.
        table: the only table, of a dump of one; else "".
        read: directories of the source.
        home: the target database's directory.
        written: further directories of the target.
        bare: whether the dump says that it has no data: then its objects may lie anywhere, and no file of theirs is read.
    """

    database: str
    tables: Sequence[str]
    exclude: Sequence[str]
    table: str
    read: Sequence[str]
    home: str
    written: Sequence[str]
    bare: bool = False

    def of(self, header: dict[str, Any]) -> Bounds:
        """With the tables that a dump's header says: a statement's own expressions replace those of the policy."""
        taken = json.loads(header["taken"]) if header.get("taken") else {"tables": self.tables, "exclude": self.exclude}
        table = (header.get("scope") or {}).get("table") or ""
        bare = bool(header.get("metadata_only"))
        return replace(self, tables=taken["tables"], exclude=taken["exclude"], table=table, bare=bare)

    def wrong(self, target: Target, made: Any) -> Iterator[str]:
        """What a plan would do beyond them."""
        for lane in made.lanes:
            for one in lane.operations:
                yield from self._wrong_names(one, target)
            yield from self._wrong_places(target, lane)
        for segment in made.segments:
            for one in filter(None, (*segment.alters, segment.barrier)):
                image = getattr(one, "image", None)
                if image is not None and (image.name, image.locationUri, image.managedLocationUri) != (self.database, None, None):
                    yield f"{one.kind} of the database {image.name} at {image.locationUri}, {image.managedLocationUri}"

    def _wrong_names(self, one: Any, target: Target) -> Iterator[str]:
        image = getattr(one, "image", None)
        images = [image, *(new.image for new in getattr(one, "added", ())), *(it for _, it in getattr(one, "images", ()))]
        names = {one.table, *(it.tableName for it in images if hasattr(it, "tableName"))}
        if isinstance(one, CreateFunction):
            names = set[str]()
            if self.table or re.search(r"\W", one.image.functionName):
                yield f"the function {one.image.functionName!r}"
        if isinstance(one, MarkLeft) and target.metastore.table(self.database, one.table) is not None:
            names.discard(one.table)  # a replica that has left the scope
        for name in names:
            if not self._in_scope(name):
                yield f"{one.kind} of {name!r}, which is outside the scope"
        for it in images:
            if it is not None and getattr(it, "dbName", self.database) != self.database:
                yield f"{one.kind} in the database {it.dbName!r}"

    def _in_scope(self, name: str) -> bool:
        if name.endswith("()"):  # a function, or a transaction whose tables nobody tells
            return not self.table or name.startswith("transaction ")
        if self.table:
            return name == self.table
        found, left_out = ([fnmatchcase(name.lower(), one.lower()) for one in some] for some in (self.tables, self.exclude))
        return any(found) and not any(left_out)

    def _wrong_places(self, target: Target, lane: LanePlan) -> Iterator[str]:
        """What a lane would read and write at wrong places, as far as the load would not refuse it before it changes anything."""
        for one in lane.operations:
            if isinstance(one, CopySchemas):
                for place, uri in one.files:
                    yield from self._outside(one, uri, self.read, "reads")
                    yield from self._outside(one, place, (self.home, *self.written), "writes")
        try:
            placed = places_of(target, self.database, lane)
        except (ReplicationError, AssertionError):  # files of a table without a directory, for one: the load holds the lane
            return
        for (number, name), directory in placed.directories.items():
            one = lane.operations[number]
            content = dict(one.contents)[name]
            if content.origin and not self.bare:
                yield from self._outside(one, content.origin, self.read, "looks at")
            yield from self._outside(one, self._without_staging(one, content.staging, directory), self._targets, "writes")
        for (number, name), task in placed.tasks:
            one = lane.operations[number]
            staging = dict(one.contents)[name].staging
            for uri in filter(None, (task.file.uri, task.file.cm_uri)):
                yield from self._outside(one, uri, self.read, "reads")
            yield from self._outside(one, self._without_staging(one, staging, task.target), self._targets, "writes")

    @property
    def _targets(self) -> tuple[str, ...]:
        return (self.home, *self.written)

    def _without_staging(self, one: Any, staging: str, uri: str) -> str:
        """A path without replication's own directory that the load itself has chosen for the content, by its event's number."""
        own = f"{self.home}/.repl/{staging}" if _STAGED.fullmatch(staging) else ""
        if isinstance(one, CreateFunction):
            own = f"{self.home}/.repl/functions/{self.database}/{one.image.functionName.lower()}"
        found = normal(uri)
        return f"{self.home}{found[len(own) :]}" if own and (found == own or found.startswith(f"{own}/")) else uri

    def _outside(self, one: Any, uri: str, allowed: Sequence[str], what: str) -> Iterator[str]:
        found = normal(uri)
        inside = any(found == root or found.startswith(f"{root}/") for root in allowed)
        if not inside or ".repl" in found.split("/"):
            yield f"{one.kind} of {one.table!r} at event {one.evid} {what} {uri!r}"


@cache
def normal(uri: str) -> str:
    """A full URI with store and scheme in small letters and without odd segments in its path; anything else as it is."""
    parts = _URI.fullmatch(uri)
    if parts is None:
        return f"no URI: {uri}"
    scheme, store, path = parts.groups()
    return f"{scheme.lower()}://{store.lower()}{'/' + posixpath.normpath(path).lstrip('/')}"


def places_of(target: Target, database: str, lane: LanePlan) -> LanePlacement:
    """The places of a lane's files as a load chooses them."""
    replica = TargetDatabase(target, database, lambda: None, dry=True)
    known = KnownObjects(target.metastore, database, replica.state)
    kept = cache(replica.journal.kept)
    return Placer(target, database, replica.location, kept, known, replica.taken).place(lane)
