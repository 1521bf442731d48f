"""The files of events: as a message names them, else as the object's directory holds them now.

A message names none for external tables, for locations that an ALTER brings in, for INSERTs of other engines, for functions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from hive_replication.dump.attached import function_record
from hive_replication.dump.moves import Asked, Moves, Place
from hive_replication.dump.records import FileGroup
from hive_replication.dump.source import Source, has_files, is_external, is_transactional
from hive_replication.events import records as r
from hive_replication.events.decode import UnreadableMessage, decode
from hive_replication.events.files import FileRef
from hive_replication.metastore.faults import NotFound
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.types import Partition, Table, columns_of


class EventFiles:
    """Finds the files of events.

    Args:
        source: the source side.
        database: source database.
        after: events up to this one are never asked for.
    """

    def __init__(self, source: Source, database: str, after: int) -> None:
        self._lister, self._metadata_only = source.lister(), source.policy.metadata_only
        self._source, self._cm_root = source, source.cm_root()
        self._moves = Moves(source.metastore, database, after)

    def groups(self, rows: Iterable[r.Notification]) -> list[tuple[FileGroup, ...]]:
        """The files of each event, object by object; what has to be listed is listed in parallel."""
        found = [tuple(self._groups(row)) for row in rows]
        listed = iter(self._listed([one for groups in found for one in groups if isinstance(one, Asked)]))
        return [tuple(next(listed) if isinstance(one, Asked) else one for one in groups) for groups in found]

    def _groups(self, row: r.Notification) -> Iterable[FileGroup | Asked]:
        if self._metadata_only:
            return ()
        try:
            event = decode(row)
        except UnreadableMessage:
            return ()  # kept in the dump as it is; its lane is held at load
        table = getattr(event, "after", None) or getattr(event, "table_object", None)
        without_files = isinstance(table, Table) and is_transactional(table)  # those are what transactions wrote
        if without_files and not (isinstance(event, r.AlterTable) and event.may_cascade):
            return ()
        return self._of(event)

    def _of(self, event: r.Event) -> Iterable[FileGroup | Asked]:
        match event:
            case r.CreateTable() if has_files(event.after):
                yield _asked(event, event.after) if is_external(event.after) else FileGroup("", event.files)
            case r.AlterTable(relocated=True) if has_files(event.after) and not event.truncate:
                yield _asked(event, event.after)
            case r.AlterTable(may_cascade=True):
                yield from (FileGroup(name, ()) for name in self._cascaded(event))
            case r.AddPartition():
                yield from (_added(event, added) for added in event.partitions)
            case r.AlterPartition(truncate=False):
                relocated = (change for change in event.changes if change.may_be_relocated(event.table_object))
                yield from (_asked(event, event.table_object, c.after_name, c.after) for c in relocated)
            case r.Insert() if event.files:
                yield FileGroup(event.partition_name, event.files)
            case r.CreateFunction():
                yield FileGroup("", function_record(self._source, event.after, self._cm_root).files)
            case r.Insert():
                yield _asked(event, event.table_object, event.partition_name, event.partition)
            case _:
                pass

    def _cascaded(self, event: r.AlterTable) -> list[str]:
        """Partitions that have the columns now that an event gave to their table; none where the table is gone by now."""
        table = self._moves.place(event.names[-1], event.evid).table
        try:
            found = self._source.metastore.partitions(event.database, table) if table else ()
            having = [partition for partition in found if columns_of(partition) == columns_of(event.after)]
        except NotFound:
            return []  # gone this moment, by a later event
        return sorted(by_name(event.after, having))

    def _listed(self, wanted: list[Asked]) -> Iterator[FileGroup]:
        """The directories' present content. Of an object that is gone by now, none: a later event drops it on the target, too."""
        found: dict[Asked, tuple[FileRef, ...]] = {}
        left = self._moves.places(wanted)
        while left := {asked: place for asked, place in left.items() if place.location is not None}:
            files, now = self._files(left), self._moves.places(left)
            found |= {asked: files[asked] for asked in left if now[asked] == left[asked]}
            left = {asked: place for asked, place in now.items() if asked not in found}
        return (FileGroup(asked.partition, found.get(asked, ()), listed=asked in found) for asked in wanted)

    def _files(self, places: dict[Asked, Place]) -> dict[Asked, tuple[FileRef, ...]]:
        found: dict[Asked, tuple[FileRef, ...]] = {}
        for kept in (True, False):
            asked = [one for one in places if one.kept is kept]
            listed = self._lister.many((places[one].location for one in asked), kept=kept)
            found |= dict(zip(asked, listed, strict=True))
        return found


def _added(event: r.AddPartition, added: r.AddedPartition) -> FileGroup | Asked:
    if added.files is None or is_external(event.table_object):
        return _asked(event, event.table_object, added.name, added.partition)
    return FileGroup(added.name, added.files)


def _asked(event: r.Event, table: Table, name: str = "", partition: Partition | None = None) -> Asked:
    return Asked((partition or table).sd.location, event.table, name, event.evid, kept=not is_external(table))
