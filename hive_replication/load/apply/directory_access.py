"""Directories of replicas get owner, group, mode and ACL before there are files in them (policy ``preserve``).

A directory of the source protects what lies below it, and its replica may lie elsewhere, such as in a staging directory. So each
directory that gets data has what all of the source's directories from the root down to it allow together. Those that exist
already are brought to that, too, whenever files are added.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import reduce

from hive_replication.copy.preserve import Place, Preserve
from hive_replication.copy.tasks import CopyTask
from hive_replication.load.apply.commit_places import DataKey
from hive_replication.load.apply.lane_placement import LanePlacement
from hive_replication.load.layout.directories import Layout, is_staging
from hive_replication.load.operations.base import Content
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.load.replica.target import Target
from hive_replication.storage import paths
from hive_replication.storage.access import Access
from hive_replication.storage.effective_access import EffectiveAccess

#: Of a directory that readers only pass: what it holds is named after values of partitions, which may be private.
_PASSED = 0o711


@dataclass(frozen=True, slots=True)
class _Wanted:
    """A directory of the target, and the one of the source that it takes after.

    Args:
        origin: of the source.
        up_to: the highest one above it that may stand in where it is gone.
        of_object: its object's. A transaction's is gone once it is compacted, and had its group of that one, as HDFS gives it.
        shown: its object, for reports.
    """

    origin: str
    up_to: str
    of_object: str
    shown: str


class DirectoryAccess:
    """Prepares the directories of one target database.

    Args:
        target: the target side.
        database: its database.
        location: the database's directory.
        told: takes what could not be preserved, by object or "" for all.
    """

    def __init__(self, target: Target, database: str, location: str, told: dict[str, str]) -> None:
        self._storage, self._database, self._told = target.storage, database, told
        self._source_storage = target.source_storage
        self._source, self._target = EffectiveAccess(self._source_storage), EffectiveAccess(self._storage)
        self._preserve = Preserve(frozenset(target.policy.preserve), told)
        self._location = location
        self._present: dict[str, Access | None] = {}
        self._places: dict[str, Place] = {}
        self._own = ""  # the account's name as the target knows it

    def prepare(self, placed: LanePlacement) -> None:
        """Makes the directories of a lane, or changes those that are there; its tasks know theirs afterwards."""
        if not self._preserve:
            return
        # By the directory: external_root may be on another store than the database, whose own directory may not be there yet.
        wanted = {place: like for place, like in _wanted(placed, self._database) if self._target.knows(place)}
        for level in sorted({directory.count("/") for directory in wanted}):
            now = [directory for directory in wanted if directory.count("/") == level]

            def give(directory: str) -> None:
                self._give(directory, wanted[directory], absent=directory in placed.absent)

            list(self._storage.threads.map(give, now))
        placed.tasks = [(key, replace(task, place=self._place(task, wanted))) for key, task in placed.tasks]

    def _place(self, task: CopyTask, wanted: Mapping[str, _Wanted]) -> Place | None:
        """The directory of a file's replica; a file from elsewhere, as of a function's resources, is as private as there."""
        directory, own = paths.parent(task.target), paths.parent(task.file.uri)
        place = self._places.get(directory)
        if place is None or own == wanted[directory].origin or not self._source_storage.holds(own):
            return place
        above = self._source.of(own)
        if above is None:  # gone, or of a store without access
            return replace(place, whose=None)
        within = above if place.within is None else above.below(place.within)
        return replace(place, asks=True, within=within, whose=self._source.own(own, own))

    def database_directory(self, origin: str) -> None:
        """Gives the database's directory what that of the source has; makes it where the metastore has not."""
        if not self._preserve or not self._target.knows(self._location):
            return
        if self._read(self._location) is not None or self._source.of(origin) is not None:
            self._give(self._location, _Wanted(origin, origin, origin, self._database))

    def hide_notes(self) -> None:
        """Keeps from others what replication notes for itself: names and partition values of private tables."""
        layout = Layout(self._location)
        for directory, mode in ((layout.journal, 0o700), (layout.listing, 0o700), (layout.retired_root, _PASSED)):
            if not self._preserve or not self._target.knows(directory):
                return
            present = self._read(directory)
            if present is None and directory == layout.journal:
                self._storage.mkdirs(paths.parent(directory))
                self._storage.mkdirs(directory, mode)
            elif present is not None and present.other & ~mode:
                kept = present.mode & (0o1770 | mode & 7)  # one that somebody opened to a group, or by an ACL, stays so
                with suppress(PermissionError):  # another account's
                    self._storage.about_access(directory, lambda store, path, kept=kept: store.set_mode(path, kept))

    def _give(self, directory: str, wanted: _Wanted, *, absent: bool = False) -> None:
        if not self._source.knows(wanted.origin):
            return
        access = self._source.nearest(wanted.origin, wanted.up_to)
        within, present = None, None if absent else self._read(directory)
        made = present is None
        if access is None and present is None:
            self._told[wanted.shown] = (
                f"the source's directory {wanted.origin} is gone, so that nobody knows who may read it: the replica's is for its "
                "owner alone, until a load of the table's data, or hive-repl repair --force, finds the source's"
            )
        try:
            present = self._made(directory, access) if present is None else self._changed(directory, access, present)
        except PermissionError as error:
            if present is None:
                raise
            within = access
            self._told[wanted.shown] = (
                f"the access to {directory} differs from the source's and may not be changed: {error.strerror}"
            )
        self._present[directory] = present
        with suppress(FileNotFoundError):  # what stands in for a directory that is gone lends its access only
            self._preserve.give_xattrs(self._source_storage, wanted.origin, self._storage, directory)
        new = Access(self._own, present.group, 6, 0, 0, default=present.default)
        asks, whose = access is not None and access.has_acl, self._source.own(wanted.origin, wanted.of_object)
        self._places[directory] = Place(self._preserve, new, asks=asks, within=within, made=made, whose=whose)

    def _changed(self, directory: str, access: Access | None, present: Access) -> Access:
        if access is None:  # it has what the source's had when there was one
            return present
        return self._preserve.give(self._storage, directory, _writable(access), present, is_dir=True)

    def _made(self, directory: str, access: Access | None) -> Access:
        """Makes a directory whose parent has its own already, or takes after no directory of the source."""
        parent = paths.parent(directory)
        if (above := self._read(parent)) is None:
            self._storage.mkdirs(parent, _PASSED if is_staging(parent) else None)
            above = self._present[parent] = self._looked_at(parent)
        new = Access(self._own, above.group, 7, 0, 0, default=above.default)
        wanted = new.private() if access is None else _writable(access)
        goal = self._preserve.attainable(wanted, new)
        if self._own and (goal.owner, goal.group) == (new.owner, new.group) and not (goal.has_acl or new.has_acl):
            self._storage.mkdirs(directory, goal.mode)
            return goal
        self._storage.mkdirs(directory, new.mode)
        new = self._looked_at(directory)
        self._own = self._own or new.owner
        return self._preserve.give(self._storage, directory, new.private() if access is None else wanted, new, is_dir=True)

    def _read(self, directory: str) -> Access | None:
        """What a directory of the target has; None where it is absent, or its store knows nothing of access."""
        if (known := self._present.get(directory)) is not None:
            return known
        with suppress(FileNotFoundError):
            self._present[directory] = self._storage.about_access(directory, lambda store, path: store.read(path))
        return self._present.get(directory)

    def _looked_at(self, directory: str) -> Access:
        found = self._storage.about_access(directory, lambda store, path: store.read(path))
        assert found is not None  # noqa: S101 - what lies below it is on the same store, which has access
        return found


def _writable(access: Access) -> Access:
    """For the account itself, which has to write to it."""
    return replace(access, user=7)


def _wanted(placed: LanePlacement, database: str) -> Iterator[tuple[str, _Wanted]]:
    """Directories of the target that get data, or are made, with those that they take after."""
    below: dict[DataKey, set[tuple[str, str]]] = {}
    for key, task in placed.tasks:
        if task.file.subdir:
            below.setdefault(key, set()).add((paths.parent(task.target), paths.parent(task.file.uri)))
    copied = {key for key, _ in placed.tasks}
    for number, operation in enumerate(placed.lane.operations):
        for name, content in operation.contents:
            key, origin = (number, name), _origin(content)
            directory, live = placed.directories.get(key, ""), placed.live.get(key, "")
            if not origin:
                continue
            shown = object_name(database, operation.table, name)
            for place in (directory if key in copied or not live else "", live):
                if place:
                    yield from _levels(place, origin, shown)
            for made, of in below.get(key, ()):
                while made != directory and paths.is_under(made, directory):
                    yield made, _Wanted(of, origin, origin, shown)
                    made, of = paths.parent(made), paths.parent(of)


def _origin(content: Content) -> str:
    """The source's directory of an object; "" where nothing tells."""
    for file in content.files[:1]:
        if not file.is_unlisted_directory:
            return reduce(lambda uri, _: paths.parent(uri), file.relative.split("/"), file.uri)
    return content.origin.rstrip("/")


def _levels(place: str, origin: str, shown: str) -> Iterator[tuple[str, _Wanted]]:
    """The directory of an object and, of a partition with several keys, those above it that are not the table's."""
    table = origin
    while "=" in paths.name(table):
        table = paths.parent(table)
    yield place, _Wanted(origin, table, origin, shown)
    while paths.name(place) == paths.name(origin) and "=" in paths.name(origin):
        place, origin = paths.parent(place), paths.parent(origin)
        if paths.name(place) == paths.name(origin) and "=" in paths.name(origin):
            yield place, _Wanted(origin, table, origin, shown)
