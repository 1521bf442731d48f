"""What a load does to the target, as plain data: the plan is a list of these, the execution carries them out in order.

Each operation keeps the event id that it comes from. Images are as the target shall have them, except for locations: where data
lies is decided when the operation is placed, and read again from the metastore before each flip.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass, field, replace

from hive_replication.events.files import FileRef
from hive_replication.load.target import Target
from hive_replication.metastore.types import Database, Partition, Table

#: What names of directories begin with that hold data of transactional tables, and no table can be called.
OPEN_STAGING = "repl-"


def staging(evid: int, number: int, *, transactional: bool) -> str:
    """Name of a directory for data that cannot take Hive's plain path: ``<evid>-<n>`` below ``.repl``.

    Of a transactional table Hive reads nothing below a hidden directory (``HIDDEN_FILES_FULL_PATH_FILTER``): of such a table it
    is ``repl-<evid>-<n>``, beside the tables.
    """
    return f"{OPEN_STAGING if transactional else ''}{evid}-{number}"


@dataclass(frozen=True, slots=True)
class Content:
    """Files that an object gets.

    Args:
        files: source files.
        staging: name for the directory of data that cannot take Hive's plain path (:func:`staging`).
        plain: whether a new object may take Hive's plain path (not while the lane renames: a directory made there would
            be in the way of the metastore's own move).
        evids: event id of each file, () where all are of the operation's event.
    """

    files: tuple[FileRef, ...]
    staging: str
    plain: bool = True
    evids: tuple[int, ...] = ()

    def events(self, evid: int) -> dict[FileRef, int]:
        """Each file's event id; ``evid`` is the operation's."""
        return dict(zip(self.files, self.evids or (evid,) * len(self.files), strict=True))


@dataclass(frozen=True, slots=True)
class Operation:
    """What all operations have.

    Args:
        evid: event id; the last one where several events are carried out at once.
        table: the target table's name at that moment.
        parts: the ids of all events in it, () where it is one.
    """

    evid: int
    table: str
    parts: tuple[int, ...] = field(default=(), kw_only=True)

    @property
    def evids(self) -> tuple[int, ...]:
        """The ids of all events in it."""
        return self.parts or (self.evid,)

    @property
    def kind(self) -> str:
        """The operation's name for reports."""
        return type(self).__name__

    @property
    def contents(self) -> Iterator[tuple[str, Content]]:
        """Partition name ("" for the table) and content of each object that gets data."""
        yield from ()


@dataclass(frozen=True, slots=True)
class CreateTable(Operation):
    """Creates a table or view; ``plain`` is Hive's plain path for it, "" for views."""

    image: Table
    content: Content
    plain: str

    @property
    def contents(self) -> Iterator[tuple[str, Content]]:
        """The table's own files."""
        yield "", self.content


@dataclass(frozen=True, slots=True)
class AlterTable(Operation):
    """Changes metadata only."""

    image: Table


@dataclass(frozen=True, slots=True)
class RenameTable(Operation):
    """Renames ``table`` to ``image.tableName``; the metastore moves the data of plain managed tables."""

    image: Table


@dataclass(frozen=True, slots=True)
class DropTable(Operation):
    """Drops a table; its directories go to retention."""


@dataclass(frozen=True, slots=True)
class NewPartition:
    """One partition of :class:`AddPartitions`."""

    name: str
    image: Partition
    content: Content


@dataclass(frozen=True, slots=True)
class AddPartitions(Operation):
    """Adds partitions in one call."""

    added: tuple[NewPartition, ...]

    @property
    def contents(self) -> Iterator[tuple[str, Content]]:
        """Each partition's files."""
        return ((new.name, new.content) for new in self.added)


@dataclass(frozen=True, slots=True)
class AlterPartitions(Operation):
    """Changes metadata of partitions only, in one call."""

    images: tuple[tuple[str, Partition], ...]


@dataclass(frozen=True, slots=True)
class RenamePartition(Operation):
    """Gives a partition other values; the metastore moves the data of managed tables."""

    old: str
    new: str
    image: Partition


@dataclass(frozen=True, slots=True)
class DropPartitions(Operation):
    """Drops partitions in one call; their directories go to retention."""

    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReplaceData(Operation):
    """Gives a table or partition new content: staged, then the location is flipped in one call.

    Args:
        partition: name, "" for the table itself.
        image: metadata to set in the same call.
        content: all files that it has then.
        compare: look first what is there: nothing is done where the content is the same, and only what is missing is added
            where nothing has to go (INSERTs without a file list, and repairs).
    """

    partition: str
    image: Table | Partition
    content: Content
    compare: bool = False

    @property
    def contents(self) -> Iterator[tuple[str, Content]]:
        """The whole new content."""
        yield self.partition, self.content


@dataclass(frozen=True, slots=True)
class AppendData(Operation):
    """Adds files to a table or partition: staged, then each gets its name (as Hive's INSERT INTO)."""

    partition: str
    image: Table | Partition
    content: Content

    @property
    def contents(self) -> Iterator[tuple[str, Content]]:
        """The files to add."""
        yield self.partition, self.content


@dataclass(frozen=True, slots=True)
class CreateDatabase(Operation):
    """Creates the target database, or the next one after a drop in the same window."""

    image: Database


@dataclass(frozen=True, slots=True)
class AlterDatabase(Operation):
    """Changes a database's properties, comment and owner; never its location."""

    image: Database


@dataclass(frozen=True, slots=True)
class DropDatabase(Operation):
    """Drops the target database with everything in it; refused if anything in it is not our replica."""


class CustomOperation(Operation):
    """What a site's own handler plans: it carries itself out, after the operations before it in the lane."""

    __slots__ = ()

    @property
    def places(self) -> Iterator[tuple[str, str]]:
        """Name of each of its :attr:`contents`, and the directory where the files are brought before it is carried out."""
        yield from ()

    def carry_out(self, target: Target, database: str) -> None:
        """Changes the target.

        Args:
            target: the target side.
            database: target database.

        Raises:
            ReplicationError: it failed; the lane is held at its event.
        """
        raise NotImplementedError


def without(operation: Operation, partitions: Container[str]) -> Operation | None:
    """An operation without the files of some partitions ("" for the table); None where nothing is left of it.

    What it creates, it creates empty: a later event that replaces the content finds it.
    """
    match operation:
        case CreateTable() if "" in partitions:
            return replace(operation, content=replace(operation.content, files=()))
        case AddPartitions():
            empty = {new.name: replace(new.content, files=()) for new in operation.added if new.name in partitions}
            return replace(
                operation, added=tuple(replace(new, content=empty.get(new.name, new.content)) for new in operation.added)
            )
        case ReplaceData() | AppendData() if operation.partition in partitions:
            return None
        case _:
            return operation


def partitions_of(operation: Operation) -> tuple[str, ...]:
    """Names of the partitions that an operation touches, custom ones aside."""
    match operation:
        case AddPartitions():
            return tuple(new.name for new in operation.added)
        case AlterPartitions():
            return tuple(name for name, _ in operation.images)
        case RenamePartition():
            return operation.old, operation.new
        case DropPartitions():
            return operation.names
        case ReplaceData() | AppendData() if operation.partition:
            return (operation.partition,)
        case _:
            return ()


def object_name(database: str, table: str, partition: str = "") -> str:
    """``db.table`` or ``db.table/ds=1``, for reports."""
    return f"{database}.{table}" + (f"/{partition}" if partition else "")
