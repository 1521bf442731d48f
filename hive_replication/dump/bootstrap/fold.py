"""Consolidation at the source (seed replication-v2, approach 2): the events of a dump's time, folded over the dumped objects.

A dump begins at event b and ends reading at e. Each table was read at some moment in between, so events of b..e are partly in
it. The fold makes every object stand at e: drops remove, creates add, alters and inserts replace. An event is folded only over
an object that was read before it. Events of the moment while an object was read may be in it or not; folding them again does no
harm, since each sets the object to its own after image, except a rename, which would move the wrong content: what a rename
yields is then read again, and the events of that time are folded, too.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass, field, replace

from hive_replication.dump.bootstrap.folded_files import inserted, is_not_told, is_unlisted, moved_files
from hive_replication.dump.bootstrap.shared_partitions import SharedPartitions
from hive_replication.dump.bootstrap.table_reader import Read
from hive_replication.dump.format.interface import DumpWriter
from hive_replication.dump.format.record_types import PartitionRecord, TableRecord
from hive_replication.dump.source import why_skipped
from hive_replication.dump.statistics import changed_statistics, with_kept_statistics
from hive_replication.errors import BadRequest
from hive_replication.events import event_records as r
from hive_replication.events.events_of_policy import refiltered
from hive_replication.events.files import FileRef
from hive_replication.events.partition_filters import Entered, within
from hive_replication.events.untold import is_untold
from hive_replication.metastore.table_kinds import has_files
from hive_replication.metastore.types import Database, Function, Table, columns_of
from hive_replication.policy.scope import PartitionFilters
from hive_replication.storage import paths


@dataclass
class Fold:
    """The fold's state: the draft of the dump, when each table was read, and what is left to look at.

    Args:
        draft: the dump being written.
        database: name of the source database.
        reads: when each table in the draft was read.
        includes: whether a table's name belongs to the dump.
        unread: tables to read again after the fold.
        unlisted: (table, partition or "") to list again after the fold.
        source_database: the database object, as altered.
        left: tables that the dump leaves out; one that an event concerns is read like any other.
        metadata_only: whether no data is replicated.
        acid: whether transactional tables are replicated; their files are listed after the fold (``snapshot``).
        functions: the database's functions by name, read at the dump's begin.
        children: for each table those with foreign keys that point at it.
        filters: which partitions are in the dump; events are folded without the others.
        absent: tables that are there and not in the dump, as of a kind that is left out; one that goes is read again.
    """

    draft: DumpWriter
    database: str
    reads: dict[str, Read]
    includes: Callable[[str], bool]
    source_database: Database
    left: set[str] = field(default_factory=set[str])
    metadata_only: bool = False
    acid: bool = False
    functions: dict[str, Function] = field(default_factory=dict[str, Function])
    children: dict[str, set[str]] = field(default_factory=dict[str, set[str]])
    filters: PartitionFilters = field(default_factory=PartitionFilters)
    absent: Container[str] = ()
    unread: set[str] = field(default_factory=set[str])
    unlisted: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    def __post_init__(self) -> None:
        self._shared = SharedPartitions(self.draft, self.database)

    def apply(self, whole: r.Event) -> None:
        """Folds one event; events come in order.

        Args:
            whole: the event with what it says of partitions outside a filter, too.

        Raises:
            BadRequest: the database itself was dropped.
        """
        found = self.filters.of(whole.table)
        event = within(whole, found) if found else whole
        met = self.left.intersection(event.names)
        self.left -= met
        self.unread |= met
        if not (is_untold(event) or isinstance(event, Entered)):
            self._fold(event)
        elif self._behind(event.table, event.evid):
            self.read_again([event.table])
        if isinstance(event, r.AlterTable) and event.table not in self.reads and self._is_skipped_no_more(event):
            self.read_again([event.table])
        if self._behind(whole.table, whole.evid) and not self.metadata_only:
            self.unlisted |= {(whole.table, name) for name in self._shared.beside(whole)}

    def _fold(self, event: r.Event) -> None:
        match event:
            case r.CreateTable():
                self._create_table(event)
            case r.DropTable():
                self._drop_table(event)
            case r.AlterTable():
                self._rename_table(event) if event.rename else self._alter_table(event)
            case r.AddPartition() | r.AlterPartition() | r.DropPartition() | r.Insert():
                if self._behind(event.table, event.evid):
                    self._change_content(event)
            case r.FunctionEvent():
                self.functions.pop(event.function, None)
                if isinstance(event, r.CreateFunction):
                    self.functions[event.function] = event.after
            case r.AlterDatabase():
                self.source_database = event.after
            case r.DropDatabase():
                raise BadRequest(f"the source database {self.database!r} was dropped at event {event.evid}, while it was dumped")
            case _:
                self._change_attached(event)

    def read_again(self, names: Iterable[str]) -> None:
        """Tables whose state no event tells any more: they are read after the fold."""
        for name in filter(self.includes, names):
            self._remove(name)
            self.left.discard(name)
            self.unread.add(name)

    def _change_attached(self, event: r.Event) -> None:
        record = self.draft.table(event.table) if self._behind(event.table, event.evid) else None
        match event:
            case r.AddConstraints() | r.DropConstraint() if record is not None:
                self.draft.put_table(changed_constraints(record, event))
                for name in event.names[1:]:
                    self.children.setdefault(name, set()).add(event.table)
            case r.UpdateStatistics() | r.DeleteStatistics() if event.partition_name:
                part = self.draft.partition(event.table, event.partition_name) if record is not None else None
                if part is not None:
                    self.draft.put_partition(replace(part, partition=changed_statistics(part.partition, event)))
            case r.UpdateStatistics() | r.DeleteStatistics() if record is not None:
                self.draft.put_table(replace(record, table=changed_statistics(record.table, event)))
            case _:
                pass  # nothing that a dump of objects holds

    def _change_content(self, event: r.AddPartition | r.AlterPartition | r.DropPartition | r.Insert) -> None:
        match event:
            case r.AddPartition():
                self._add_partition(event)
            case r.AlterPartition():
                for change in event.changes:
                    self._change_partition(event, change)
            case r.DropPartition():
                for name in event.partitions:
                    self.draft.drop_partition(event.table, name)
                    self.unlisted.discard((event.table, name))
            case r.Insert():
                self._insert(event)

    def _behind(self, name: str, evid: int) -> bool:
        """Whether the draft has the table as it was before the event."""
        read = self.reads.get(name)
        return read is not None and read.begin < evid

    def _why_skipped(self, table: Table) -> str:
        return why_skipped(table, metadata_only=self.metadata_only, acid=self.acid)

    def _is_skipped_no_more(self, event: r.AlterTable) -> bool:
        return bool(self._why_skipped(event.before)) and not self._why_skipped(event.after)

    def _remove(self, name: str) -> None:
        self.draft.drop_table(name)
        self._shared.forget(name)
        self.reads.pop(name, None)
        self.unlisted = {key for key in self.unlisted if key[0] != name}

    def _go(self, name: str) -> None:
        """A table that goes is not read; but where the dump says why it lacks it, which it says of tables that are there."""
        self.unread.discard(name)
        self.unread |= {name} if name in self.absent else set()

    def _create_table(self, event: r.CreateTable) -> None:
        name = event.table
        if name in self.reads or not self.includes(name):
            return
        if self._why_skipped(event.after):  # the dump says so of it
            self.unread.add(name)
            return
        self.unread.discard(name)
        self.draft.put_table(TableRecord(event.after, event.files if has_files(event.after) and not self.metadata_only else ()))
        self.reads[name] = Read(event.evid, event.evid)
        if has_files(event.after) and is_not_told(event.after, event.files, event.after):
            self.unlisted.add((name, ""))

    def _drop_table(self, event: r.DropTable) -> None:
        self._go(event.table)
        if self._behind(event.table, event.evid):
            self._remove(event.table)
        self.read_again(self.children.pop(event.table, set()) - {event.table})  # their foreign keys are gone

    def _alter_table(self, event: r.AlterTable) -> None:
        if columns_of(event.before) != columns_of(event.after):
            self.read_again(self.children.get(event.table, ()))  # their foreign keys name its columns
        record = self.draft.table(event.table) if self._behind(event.table, event.evid) else None
        if record is None:
            return
        if event.may_cascade or self._why_skipped(event.after) or self._changes_constraints(event):
            self.read_again([event.table])
            return
        table = with_kept_statistics(event.after, record.table)
        self.draft.put_table(replace(record, table=table, files=() if event.truncate else record.files))
        if event.relocated and has_files(event.after):
            self.unlisted.add((event.table, ""))

    def _changes_constraints(self, event: r.AlterTable) -> bool:
        """Whether what a table's constraints name changes with it: its columns, or in a rename the parent that it is itself."""
        name, record = event.names[0], self.draft.table(event.names[0])
        itself = event.rename and name in self.children.get(name, ())
        return bool(record and record.constraints) and (itself or columns_of(event.before) != columns_of(event.after))

    def _rename_table(self, event: r.AlterTable) -> None:
        old, new = event.names
        wanted = event.after.dbName.lower() == self.database and self.includes(new)
        read = self.reads.get(old)
        self._go(old)
        present = read is not None and read.begin < event.evid
        certain = present and read is not None and read.end < event.evid and not refiltered(event, self.filters.of)
        certain = certain and not (self._changes_constraints(event) or self._why_skipped(event.after))
        arrived = new in self.reads and not self._behind(new, event.evid)
        if wanted and not arrived and certain:
            self._move_table(event, old, new)
        elif wanted and not arrived:
            self._remove(new)
            self.unread.add(new)
        if present:
            self._remove(old)
        for child in self.children.pop(old, set()) - {old, new}:
            self._remove(child)  # its foreign key has another parent now: read again
            self.unread.add(child)

    def _move_table(self, event: r.AlterTable, old: str, new: str) -> None:
        record = self.draft.table(old)
        assert record is not None  # noqa: S101 - reads and draft hold the same names
        self._remove(new)
        before, after = event.before.sd.location, event.after.sd.location
        table = with_kept_statistics(event.after, record.table)
        self.draft.put_table(replace(record, table=table, files=moved_files(record.files, before, after)))
        if is_unlisted(record.files):  # it may have been listed in the middle of the rename
            self.unlisted.add((new, ""))
        for part in self.draft.partitions(old):
            if is_unlisted(part.files):
                self.unlisted.add((new, part.name))
            part.partition.tableName = new
            part.partition.sd.location = paths.moved(part.partition.sd.location, before, after)
            self.draft.put_partition(PartitionRecord(new, part.name, part.partition, moved_files(part.files, before, after)))
        self.reads[new] = Read(event.evid, event.evid)
        self.unread.discard(new)  # read over what the draft has now, it would keep partitions that were dropped meanwhile
        self.unlisted |= {(new, part) for name, part in self.unlisted if name == old}
        for tables in self.children.values():  # its foreign keys go with it
            tables |= {new} if old in tables else set()

    def _add_partition(self, event: r.AddPartition) -> None:
        for added in event.partitions:
            self.draft.put_partition(PartitionRecord(event.table, added.name, added.partition, added.files or ()))
            self._shared.note(event.table, added.name, added.partition)
            if is_not_told(event.table_object, added.files, added.partition):
                self.unlisted.add((event.table, added.name))

    def _change_partition(self, event: r.AlterPartition, change: r.ChangedPartition) -> None:
        table = event.table
        record = self.draft.partition(table, change.before_name)
        if record is None and not change.rename:
            return
        # Read while it was altered: what was read before and after may be mixed.
        mixed = event.evid <= self.reads[table].end
        relocated = change.relocated or (mixed and change.may_be_relocated)
        if record is not None and change.before is None:
            relocated |= record.partition.sd.location != change.after.sd.location
        files: tuple[FileRef, ...] = ()
        if record is not None and not event.truncate:
            before = change.before.sd.location if change.before else record.partition.sd.location
            files = record.files if relocated else moved_files(record.files, before, change.after.sd.location)
        unlisted = relocated or record is None or is_unlisted(files)
        if change.rename:
            self.draft.drop_partition(table, change.before_name)
            unlisted |= mixed or (table, change.before_name) in self.unlisted
            self.unlisted.discard((table, change.before_name))
        after = change.after if record is None else with_kept_statistics(change.after, record.partition)
        self.draft.put_partition(PartitionRecord(table, change.after_name, after, files))
        self._shared.note(table, change.after_name, after)
        if unlisted:
            self.unlisted.add((table, change.after_name))

    def _insert(self, event: r.Insert) -> None:
        files: tuple[FileRef, ...] = ()
        if event.files and event.partition_name:
            part = self.draft.partition(event.table, event.partition_name)
            if part is not None:
                files = inserted(part.files, event)
                self.draft.put_partition(PartitionRecord(event.table, part.name, part.partition, files))
        elif event.files:
            record = self.draft.table(event.table)
            if record is not None:
                files = inserted(record.files, event)
                self.draft.put_table(replace(record, files=files))
        if not event.files or is_unlisted(files):
            self.unlisted.add((event.table, event.partition_name))


def changed_constraints(record: TableRecord, event: r.AddConstraints | r.DropConstraint) -> TableRecord:
    """A table after an event of its constraints; folding the event twice does no harm."""
    added = event.constraints if isinstance(event, r.AddConstraints) else ()
    gone = {one.name for one in added} if added else {getattr(event, "constraint", "")}
    return replace(record, constraints=(*(one for one in record.constraints if one.name not in gone), *added))
