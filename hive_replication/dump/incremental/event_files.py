"""The files of events: as a message names them, else as the object's directory holds them now.

A message names none for external tables, for locations that an ALTER brings in, for INSERTs of other engines, for functions.
Of a new table or partition Hive names no files in sub-directories, which a UNION ALL leaves, for example: they are listed where
it has more files than the message names, or may have.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import product

from hive_replication.dump.format.record_types import FileGroup
from hive_replication.dump.functions import function_record
from hive_replication.dump.incremental.present_location import Location, Lookup, PresentLocations, table_of
from hive_replication.dump.listing import Lister
from hive_replication.dump.source import Source
from hive_replication.dump.source_boundary import SourceBoundary
from hive_replication.dump.statistics import names_all
from hive_replication.events import event_records as r
from hive_replication.events.events_of_policy import LogEvent
from hive_replication.events.files import FileRef
from hive_replication.logs import About, about
from hive_replication.metastore.faults import MetastoreError, NotFound
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.table_kinds import has_files, is_external, is_transactional
from hive_replication.metastore.types import Partition, Table, columns_of

_LOG = logging.getLogger(__name__)


class EventFiles:
    """Finds the files of events.

    Args:
        source: the source side.
        locations: where objects of the database lie now.
        boundary: what may be read of it.
    """

    def __init__(self, source: Source, locations: PresentLocations, boundary: SourceBoundary) -> None:
        self._source, self._locations, self._boundary = source, locations, boundary
        self._metadata_only = source.policy.metadata_only

    @cached_property
    def _lister(self) -> Lister:
        """Made when it is needed: it asks for cmroots, and most windows list nothing."""
        return self._source.lister(self._boundary)

    def groups(self, events: Iterable[LogEvent]) -> list[tuple[FileGroup, ...]]:
        """The files of each event, object by object; what has to be listed is listed in parallel."""
        events = list(events)
        found = [tuple(self._groups(event)) for event in events]
        listed = iter(self._listed([one for groups in found for one in groups if isinstance(one, Lookup)]))
        filled = [tuple(next(listed) if isinstance(one, Lookup) else one for one in groups) for groups in found]
        later = self._locations.later(events[-1].evid) if any(one.listed for groups in filled for one in groups) else []
        known = [*(event.event for event in events), *later]
        brought = without_later_files(known, [*filled, *((),) * len(later)])[: len(events)]
        return [tuple(map(_with_named, *pair)) for pair in zip(found, brought, strict=True)]

    def _groups(self, found: LogEvent) -> Iterable[FileGroup | Lookup]:
        if self._metadata_only:
            return ()
        event, row = found.event, found.row
        if event is None:
            _LOG.info(
                "the event is dumped without files: the load holds its table", extra=about(row.database, row.table, row.evid)
            )
            return ()
        table = table_of(event)
        without_files = table is not None and is_transactional(table)  # those are what transactions wrote
        if without_files and not (isinstance(event, r.AlterTable) and event.may_cascade):
            return ()
        return self._of(event)

    def _of(self, event: r.Event) -> Iterable[FileGroup | Lookup]:
        match event:
            case r.CreateTable() if has_files(event.after):
                yield self._new(event, event.after, event.files)
            case r.AlterTable(relocated=True) if has_files(event.after) and not event.truncate:
                yield _lookup(event, event.after)
            case r.AlterTable(may_cascade=True):
                yield from self._cascaded(event)
            case r.AddPartition():
                yield from (self._new(event, event.table_object, a.files, a.name, a.partition) for a in event.partitions)
            case r.AlterPartition(truncate=False):
                relocated = (change for change in event.changes if change.may_be_relocated)
                yield from (_lookup(event, event.table_object, c.after_name, c.after) for c in relocated)
            case r.Insert() if event.files:
                yield FileGroup(event.partition_name, event.files)
            case r.CreateFunction():
                yield FileGroup("", function_record(self._source, event.after, self._lister.cm_roots, self._boundary).files)
            case r.Insert():
                yield _lookup(event, event.table_object, event.partition_name, event.partition)
            case _:
                pass

    def _new(
        self, event: r.Event, table: Table, files: tuple[FileRef, ...] | None, name: str = "", partition: Partition | None = None
    ) -> FileGroup | Lookup:
        """The files of a new table or partition: those that are named and those in sub-directories; later INSERTs name others."""
        if files is None or is_external(table):
            return _lookup(event, table, name, partition)
        if names_all(files, partition or table):
            return FileGroup(name, self._kept(files))
        return replace(_lookup(event, table, name, partition), named=self._kept(files))

    def _kept(self, files: tuple[FileRef, ...]) -> tuple[FileRef, ...]:
        return tuple(map(self._lister.as_kept, files)) if self._source.is_hive2 else files

    def _cascaded(self, event: r.AlterTable) -> list[FileGroup]:
        """Partitions that have the columns now that an event gave to their table; none where the table is gone by now.

        Where the metastore does not show them, what stands for the table: the load holds it.
        """
        table = self._locations.find_table(event.names[-1], event.evid, event.after).table
        try:
            found = self._source.metastore.partitions(event.database, table) if table else ()
            having = [partition for partition in found if columns_of(partition) == columns_of(event.after)]
        except NotFound:
            return []  # gone this moment, by a later event
        except MetastoreError as error:
            _LOG.warning("the load holds the table: %s", error, extra=about(event.database, event.table, event.evid))
            return [FileGroup("", (FileRef.unshown_table(event.after.sd.location or ""),))]
        return [FileGroup(name, ()) for name in sorted(by_name(event.after, having))]

    def _listed(self, lookups: list[Lookup]) -> Iterator[FileGroup]:
        """The present content of the objects' directories; nothing for a dropped object: a later event drops it."""
        found: dict[Lookup, tuple[FileRef, ...]] = {}
        pending = self._locations.find(lookups)
        if any(location.location is not None for location in pending.values()):
            self._locations.read_ahead()
        while pending := {lookup: location for lookup, location in pending.items() if location.location is not None}:
            files, now = self._files(pending), self._locations.find(pending)
            found |= {lookup: files[lookup] for lookup in pending if now[lookup] == pending[lookup]}
            pending = {lookup: location for lookup, location in now.items() if lookup not in found}
            for lookup in pending:
                _LOG.debug("the object moved while it was listed; it is listed again", extra=self._about(lookup))
        listed = {one for one, files in found.items() if files or not one.nested}  # else the event named all: none
        return (FileGroup(lookup.partition, found.get(lookup, ()), listed=lookup in listed) for lookup in lookups)

    def _about(self, lookup: Lookup) -> About:
        return about(self._locations.database, lookup.table, lookup.evid)

    def _files(self, locations: dict[Lookup, Location]) -> dict[Lookup, tuple[FileRef, ...]]:
        found: dict[Lookup, tuple[FileRef, ...]] = {}
        for kept, nested in product((True, False), repeat=2):
            lookups = [one for one in locations if (one.kept, one.nested) == (kept, nested)]
            places = dict.fromkeys(locations[one].location for one in lookups)  # many events may be of one partition
            listed = dict(zip(places, self._lister.many(places, kept=kept, nested=nested), strict=True))
            found |= {one: listed[locations[one].location] for one in lookups}
        return found


@dataclass
class _Later:
    """What happens to a table after a point of the log: names of files of INSERTs, and partitions ("": the table) made anew."""

    uris: set[str] = field(default_factory=set[str])
    anew: set[str] = field(default_factory=set[str])

    def without(self, group: FileGroup) -> FileGroup:
        """A listing as it was at that point: nothing is known of what a later event replaces, which is gone from there."""
        if group.partition in self.anew:
            return replace(group, files=(), listed=False)
        return replace(group, files=tuple(file for file in group.files if file.uri not in self.uris))

    def precede(self, event: r.Event) -> None:
        """Goes back over an event of the table, except one of its names."""
        match event:
            case r.Insert():
                self.uris.update(file.uri for file in event.files)
                self.anew |= {event.partition_name} if event.replace else set[str]()
            case r.AlterTable(truncate=True):
                self.anew.add("")
            case r.AlterPartition():
                self.anew |= {one.after_name for one in event.changes if event.truncate}
                for one in (change for change in event.changes if change.rename):
                    moved = {one.before_name} if one.after_name in self.anew else set[str]()
                    self.anew = self.anew - {one.before_name, one.after_name} | moved
            case r.AddPartition():
                self.anew -= {one.name for one in event.partitions}
            case _:
                pass


def without_later_files(events: Sequence[r.Event | None], groups: Sequence[tuple[FileGroup, ...]]) -> list[tuple[FileGroup, ...]]:
    """Groups of events without listed files that a later INSERT of their table names: those were not there yet (pure).

    What a later event overwrites or truncates is not listed any more: its event counts as one of metadata, not of no files.
    What is written into another table at the same directory is left: no event of its own table brings it.
    """
    later: dict[str, _Later] = {}  # by the table's name at this point, going back in time
    found: list[tuple[FileGroup, ...]] = []
    for event, own in zip(reversed(events), reversed(groups), strict=True):
        known = later.setdefault(event.names[-1], _Later()) if event and event.names else _Later()
        found.append(tuple(known.without(group) if group.listed else group for group in own))
        match event:
            case r.AlterTable(rename=True):
                before, after = event.names
                later[before] = later.pop(after)
            case r.CreateTable():
                later.pop(event.table)
            case r.Event():
                known.precede(event)
            case _:
                pass
    return found[::-1]


def _with_named(found: FileGroup | Lookup, group: FileGroup) -> FileGroup:
    """The group of what was found, with the files that its event names beside those that were listed."""
    if isinstance(found, FileGroup) or not found.named:
        return group
    files = {file.relative: file for file in (*group.files, *found.named)}
    return replace(group, files=tuple(files.values()), listed=False)


def _lookup(event: r.Event, table: Table, name: str = "", partition: Partition | None = None) -> Lookup:
    thing = partition or table
    return Lookup(thing.sd.location, event.table, name, event.evid, kept=not is_external(table), created=thing.createTime or 0)
