"""What a load does to the target, as plain data: the plan is a list of these, the execution carries them out in order."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, replace

from hive_replication.events.name_changes import NameChange, ObjectName, created, dropped, renamed
from hive_replication.load.operations.base import (
    Content,
    CustomOperation,
    NoData,
    NoPartitions,
    Operation,
    SameNames,
)
from hive_replication.metastore.types import Database, Partition, Table

__all__ = [
    "AddPartitions",
    "AlterDatabase",
    "AlterPartitions",
    "AlterTable",
    "AppendData",
    "Content",
    "CreateDatabase",
    "CreateTable",
    "CustomOperation",
    "DropDatabase",
    "DropPartitions",
    "DropTable",
    "NewPartition",
    "Operation",
    "RenamePartition",
    "RenameTable",
    "ReplaceData",
]


@dataclass(frozen=True, slots=True)
class CreateTable(NoPartitions):
    """Creates a table or view; ``plain`` is Hive's plain path for it, "" for views; ``ends`` as of :class:`DropTable`.

    It ends what wrote to a table of the name that somebody else dropped.
    """

    kind = "CreateTable"
    image: Table
    content: Content
    plain: str
    ends: bool = False

    @property
    def contents(self) -> Iterator[tuple[str, Content]]:
        """The table's own files."""
        yield "", self.content

    @property
    def changes_data_of(self) -> tuple[ObjectName, ...]:
        """None: it is new."""
        return ()

    @property
    def name_changes(self) -> tuple[NameChange, ...]:
        """The new table."""
        return created(self.table)

    def without(self, partitions: Container[str]) -> Operation:
        """Creates it empty."""
        return replace(self, content=replace(self.content, files=())) if "" in partitions else self


@dataclass(frozen=True, slots=True)
class AlterTable(NoData, SameNames, NoPartitions):
    """Changes metadata only."""

    kind = "AlterTable"
    image: Table


@dataclass(frozen=True, slots=True)
class RenameTable(NoData, NoPartitions):
    """Renames ``table`` to ``image.tableName``; its data stays in place, save that of transactional tables."""

    kind = "RenameTable"
    image: Table

    @property
    def name_changes(self) -> tuple[NameChange, ...]:
        """The new name."""
        return renamed((self.table, ""), (self.image.tableName.lower(), ""))


@dataclass(frozen=True, slots=True)
class DropTable(NoData, NoPartitions):
    """Drops a table; its directories go to retention.

    Args:
        ends: whether what stands for the source's transactions that wrote to it alone ends with it: their own ends may have been
            passed over already, and by the table it would no longer be found.
    """

    kind = "DropTable"
    ends: bool = False

    @property
    def name_changes(self) -> tuple[NameChange, ...]:
        """The table goes."""
        return dropped(self.table)


@dataclass(frozen=True, slots=True)
class NewPartition:
    """One partition of :class:`AddPartitions`."""

    name: str
    image: Partition
    content: Content


@dataclass(frozen=True, slots=True)
class AddPartitions(Operation):
    """Adds partitions in one call."""

    kind = "AddPartitions"
    added: tuple[NewPartition, ...]

    @property
    def contents(self) -> Iterator[tuple[str, Content]]:
        """Each partition's files."""
        return ((new.name, new.content) for new in self.added)

    @property
    def changes_data_of(self) -> tuple[ObjectName, ...]:
        """The table, below whose directory they lie."""
        return ((self.table, ""),)

    @property
    def name_changes(self) -> tuple[NameChange, ...]:
        """The new partitions."""
        return created(self.table, *self.partitions) if self.added else ()

    @property
    def partitions(self) -> tuple[str, ...]:
        """The new ones."""
        return tuple(new.name for new in self.added)

    def without(self, partitions: Container[str]) -> Operation:
        """Adds them empty."""
        empty = {new.name: replace(new.content, files=()) for new in self.added if new.name in partitions}
        return replace(self, added=tuple(replace(new, content=empty.get(new.name, new.content)) for new in self.added))


@dataclass(frozen=True, slots=True)
class AlterPartitions(NoData, SameNames):
    """Changes metadata of partitions only, in one call."""

    kind = "AlterPartitions"
    images: tuple[tuple[str, Partition], ...]

    @property
    def partitions(self) -> tuple[str, ...]:
        """Those that it changes."""
        return tuple(name for name, _ in self.images)


@dataclass(frozen=True, slots=True)
class RenamePartition(NoData):
    """Gives a partition other values; its data stays in place, save that of transactional tables."""

    kind = "RenamePartition"
    old: str
    new: str
    image: Partition

    @property
    def name_changes(self) -> tuple[NameChange, ...]:
        """The new name."""
        return renamed((self.table, self.old), (self.table, self.new))

    @property
    def partitions(self) -> tuple[str, ...]:
        """By both names."""
        return self.old, self.new


@dataclass(frozen=True, slots=True)
class DropPartitions(NoData):
    """Drops partitions in one call; their directories go to retention."""

    kind = "DropPartitions"
    names: tuple[str, ...]

    @property
    def name_changes(self) -> tuple[NameChange, ...]:
        """They go."""
        return dropped(self.table, *self.names) if self.names else ()

    @property
    def partitions(self) -> tuple[str, ...]:
        """Those that go."""
        return self.names


@dataclass(frozen=True, slots=True)
class _DataChange(SameNames):
    """Changes the data of one table or partition.

    Args:
        partition: name, "" for the table itself.
        image: metadata to set in the same call.
        content: files.
    """

    partition: str
    image: Table | Partition
    content: Content

    @property
    def contents(self) -> Iterator[tuple[str, Content]]:
        """The files."""
        yield self.partition, self.content

    @property
    def changes_data_of(self) -> tuple[ObjectName, ...]:
        """The table or partition."""
        return ((self.table, self.partition),)

    @property
    def partitions(self) -> tuple[str, ...]:
        """The one, if it is one."""
        return (self.partition,) if self.partition else ()

    def without(self, partitions: Container[str]) -> Operation | None:
        """Nothing, where it is of these."""
        return None if self.partition in partitions else self


@dataclass(frozen=True, slots=True)
class ReplaceData(_DataChange):
    """Gives a table or partition new content, all of it: staged, then the location is changed in one call.

    Args:
        compare: look first what is there: nothing is done where the content is the same, and only what is missing is added
            where nothing has to go (INSERTs without a file list, and repairs).
    """

    kind = "ReplaceData"
    compare: bool = False


@dataclass(frozen=True, slots=True)
class AppendData(_DataChange):
    """Adds files to a table or partition: staged, then each gets its name (as Hive's INSERT INTO)."""

    kind = "AppendData"


@dataclass(frozen=True, slots=True)
class CreateDatabase(NoData, SameNames, NoPartitions):
    """Creates the target database, or the next one after a drop in the same window."""

    kind = "CreateDatabase"
    image: Database


@dataclass(frozen=True, slots=True)
class AlterDatabase(NoData, SameNames, NoPartitions):
    """Changes a database's properties, comment and owner; never its location."""

    kind = "AlterDatabase"
    image: Database


@dataclass(frozen=True, slots=True)
class DropDatabase(NoData, SameNames, NoPartitions):
    """Drops the target database with everything in it; refused if anything in it is not our replica."""

    kind = "DropDatabase"
