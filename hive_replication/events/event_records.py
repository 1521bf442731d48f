"""One frozen record per kind of event, with what its message says (Hive's JSON messages, json-0.2 and gzip(json-2.0))."""

from __future__ import annotations

from dataclasses import dataclass

from hive_replication.events.files import FileRef
from hive_replication.events.name_changes import NameChange, created, dropped, renamed
from hive_replication.metastore.constraints import Constraint
from hive_replication.metastore.types import ColumnStatisticsObj, Database, Function, Partition, Table, columns_of


@dataclass(frozen=True, slots=True)
class Notification:
    """One row of ``NOTIFICATION_LOG``, its message unpacked to JSON text.

    Args:
        evid: event id, dense and ascending.
        time: commit time at the source, seconds since the epoch.
        type: Hive's ``EVENT_TYPE``.
        database: lower case, "" for events of the whole warehouse.
        table: lower case, "" where the event is of no table.
        message: JSON text.
        catalog: of the metastore, "" where the row does not say (Hive 2, and dumps of earlier versions).
    """

    evid: int
    time: int
    type: str
    database: str
    table: str
    message: str
    catalog: str = ""


@dataclass(frozen=True, slots=True)
class Event:
    """What all events have; see :class:`Notification` for the fields."""

    evid: int
    time: int
    type: str
    database: str
    table: str

    @property
    def names(self) -> tuple[str, ...]:
        """Table names that this event touches (two for a rename); empty for database events."""
        return (self.table,) if self.table else ()

    @property
    def name_changes(self) -> tuple[NameChange, ...]:
        """What it does to names of tables and partitions."""
        return ()


@dataclass(frozen=True, slots=True)
class CreateDatabase(Event):
    """CREATE_DATABASE."""

    after: Database | None


@dataclass(frozen=True, slots=True)
class AlterDatabase(Event):
    """ALTER_DATABASE: properties, owner or location."""

    before: Database
    after: Database


@dataclass(frozen=True, slots=True)
class DropDatabase(Event):
    """DROP_DATABASE."""


@dataclass(frozen=True, slots=True)
class CreateTable(Event):
    """CREATE_TABLE, also of views; ``files`` is empty for external tables, whose files Hive does not list."""

    after: Table
    files: tuple[FileRef, ...]

    @property
    def name_changes(self) -> tuple[NameChange, ...]:
        """The new table."""
        return created(self.table)


@dataclass(frozen=True, slots=True)
class AlterTable(Event):
    """ALTER_TABLE: a change, a rename or a truncation; ``write_id`` is that of a transactional table's change of data, else 0."""

    before: Table
    after: Table
    truncate: bool
    write_id: int = 0
    untold: bool = False  # see the module untold

    @property
    def rename(self) -> bool:
        """Whether the table's name or database changed."""
        return (_name(self.before), self.before.dbName.lower()) != (_name(self.after), self.after.dbName.lower())

    @property
    def may_cascade(self) -> bool:
        """Whether partitions may have got the table's new columns with it (``CASCADE``): no event tells."""
        return bool(self.after.partitionKeys) and columns_of(self.before) != columns_of(self.after)

    @property
    def relocated(self) -> bool:
        """Whether the location was changed by other means than a rename."""
        return not self.rename and (self.before.sd.location or "") != (self.after.sd.location or "")

    @property
    def names(self) -> tuple[str, ...]:
        """Both names of a rename; the one that is of the event's database twice where the other is of another database."""
        here = [_name(image) for image in (self.before, self.after) if image.dbName.lower() == self.database] or [self.table]
        return (here[0], here[-1]) if self.rename else (self.table,)

    @property
    def leaves(self) -> bool:
        """Whether the table goes to another database than the event's."""
        return self.rename and self.after.dbName.lower() != self.database

    @property
    def name_changes(self) -> tuple[NameChange, ...]:
        """The new name of a rename; a table that goes to another database goes."""
        changes = renamed((self.names[0], ""), (self.names[-1], "")) if self.rename else ()
        return dropped(self.names[0]) if self.leaves else changes


@dataclass(frozen=True, slots=True)
class DropTable(Event):
    """DROP_TABLE, also of views."""

    before: Table | None

    @property
    def name_changes(self) -> tuple[NameChange, ...]:
        """The table goes."""
        return dropped(self.table)


@dataclass(frozen=True, slots=True)
class AddedPartition:
    """One partition of an ADD_PARTITION event; ``files`` is None where the message lists none for it."""

    name: str
    partition: Partition
    files: tuple[FileRef, ...] | None


@dataclass(frozen=True, slots=True)
class AddPartition(Event):
    """ADD_PARTITION: all partitions of one call."""

    table_object: Table
    partitions: tuple[AddedPartition, ...]

    @property
    def name_changes(self) -> tuple[NameChange, ...]:
        """The new partitions."""
        return tuple(change for added in self.partitions for change in created(self.table, added.name))


@dataclass(frozen=True, slots=True)
class ChangedPartition:
    """Before and after images of one partition; ``before`` is None where the message has none (ALTER_PARTITIONS)."""

    before_name: str
    after_name: str
    before: Partition | None
    after: Partition

    @property
    def rename(self) -> bool:
        """Whether the partition's values changed."""
        return self.before_name != self.after_name

    @property
    def relocated(self) -> bool:
        """Whether the location was changed by other means than a rename."""
        return self.before is not None and not self.rename and self.before.sd.location != self.after.sd.location

    @property
    def may_be_relocated(self) -> bool:
        """Whether the location was changed, or may have been: nothing tells without a before image, Hive's plain path neither."""
        return self.relocated or self.before is None


@dataclass(frozen=True, slots=True)
class AlterPartition(Event):
    """ALTER_PARTITION (one partition) and ALTER_PARTITIONS (Hive 4.1 on: several, after images only)."""

    table_object: Table
    changes: tuple[ChangedPartition, ...]
    truncate: bool
    write_id: int = 0
    untold: bool = False

    @property
    def name_changes(self) -> tuple[NameChange, ...]:
        """New names of those that are renamed."""
        renames = ((self.table, one) for one in self.changes if one.rename)
        return tuple(change for table, one in renames for change in renamed((table, one.before_name), (table, one.after_name)))


@dataclass(frozen=True, slots=True)
class DropPartition(Event):
    """DROP_PARTITION: the names of all partitions of one call."""

    table_object: Table | None
    partitions: tuple[str, ...]

    @property
    def name_changes(self) -> tuple[NameChange, ...]:
        """The partitions go."""
        return tuple(change for name in self.partitions for change in dropped(self.table, name))


@dataclass(frozen=True, slots=True)
class Insert(Event):
    """INSERT: files added to a table or to one partition; ``replace`` for INSERT OVERWRITE."""

    table_object: Table
    partition: Partition | None
    partition_name: str
    replace: bool
    files: tuple[FileRef, ...]


@dataclass(frozen=True, slots=True)
class AddConstraints(Event):
    """ADD_PRIMARYKEY and the like. Hive logs a foreign key under its parent's name; here ``table`` is the table that has it."""

    constraints: tuple[Constraint, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The table, and those that its foreign keys point at in the same database."""
        parents = (constraint.parent for constraint in self.constraints)
        return tuple(dict.fromkeys((self.table, *(name for db, name in filter(None, parents) if db == self.database))))


@dataclass(frozen=True, slots=True)
class DropConstraint(Event):
    """DROP_CONSTRAINT, of whatever kind."""

    constraint: str


@dataclass(frozen=True, slots=True)
class UpdateStatistics(Event):
    """UPDATE_TBL_COL_STAT_EVENT and UPDATE_PART_COL_STAT_EVENT (Hive 4 on).

    Args:
        partition_name: the partition, "" for the table's own statistics.
        columns: the new statistics of these columns; others stay.
        accurate: value of COLUMN_STATS_ACCURATE afterwards.
        engine: whose statistics they are; those of others than Hive's stand beside Hive's, and are not replicated.
    """

    partition_name: str
    columns: tuple[ColumnStatisticsObj, ...]
    accurate: str
    engine: str = "hive"


@dataclass(frozen=True, slots=True)
class DeleteStatistics(Event):
    """DELETE_TBL_COL_STAT_EVENT and DELETE_PART_COL_STAT_EVENT (Hive 4 on); ``column`` is "" for all columns."""

    partition_name: str
    column: str


@dataclass(frozen=True, slots=True)
class FunctionEvent(Event):
    """An event of a permanent function; ``function`` is its lower-case name."""

    function: str

    @property
    def names(self) -> tuple[str, ...]:
        """``f()``: a name among those of tables that no table can have."""
        return (function_name(self.function),)


@dataclass(frozen=True, slots=True)
class CreateFunction(FunctionEvent):
    """CREATE_FUNCTION."""

    after: Function


@dataclass(frozen=True, slots=True)
class DropFunction(FunctionEvent):
    """DROP_FUNCTION."""


@dataclass(frozen=True, slots=True)
class OtherEvent(Event):
    """An event that this version does not apply; recorded and counted, never silently dropped."""

    known: bool


def function_name(function: str) -> str:
    """A function's name where names of tables and functions stand side by side: lanes, positions, reports."""
    return f"{function.lower()}()"


def is_function(name: str) -> bool:
    """Whether a name is that of a function (:func:`function_name`)."""
    return name.endswith("()")


def _name(table: Table) -> str:
    return table.tableName.lower()
