"""What every operation of a load has to say of itself; the kinds that there are: :mod:`hive_replication.load.operations.kinds`.

Each operation keeps the event id that it comes from. Images are as the target shall have them, except for locations: where data
lies is decided when the operation is placed, and read again from the metastore before each change.

A kind of operation is a class. Whoever follows names, looks for what is touched, or leaves something out asks these members, and
none of them may be forgotten: a class that lacks one cannot be instantiated. The bases for what a kind does *not* do are
:class:`NoData`, :class:`SameNames` and :class:`NoPartitions`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Container, Iterator
from dataclasses import dataclass, field
from typing import Any, ClassVar

from hive_replication.events.files import FileRef
from hive_replication.events.name_changes import NameChange, ObjectName
from hive_replication.load.replica.target import Target


@dataclass(frozen=True, slots=True)
class Content:
    """Files that an object gets.

    Args:
        files: source files.
        staging: name for the directory of data that cannot take Hive's plain path (``staging_name`` of the layout).
        plain: whether a new object may take Hive's plain path (not while the lane renames: a directory made there would
            be in the way of the metastore's own move).
        evids: event id of each file, () where all are of the operation's event.
        origin: the object's directory at the source, "" where it is known by the files only.
    """

    files: tuple[FileRef, ...]
    staging: str
    plain: bool = True
    evids: tuple[int, ...] = ()
    origin: str = ""

    def events(self, evid: int) -> dict[FileRef, int]:
        """Each file's event id; ``evid`` is the operation's."""
        return dict(zip(self.files, self.evids or (evid,) * len(self.files), strict=True))


@dataclass(frozen=True, slots=True)
class Operation(ABC):
    """What all operations have, and what each kind has to say of itself.

    Args:
        evid: event id; the last one where several events are carried out at once.
        table: the target table's name at that moment.
        parts: the ids of all events in it, () where it is one.
    """

    evid: int
    table: str
    parts: tuple[int, ...] = field(default=(), kw_only=True)

    #: Its name in reports and in journals on storage: it never changes, whatever the class is called.
    kind: ClassVar[str]

    @property
    def evids(self) -> tuple[int, ...]:
        """The ids of all events in it."""
        return self.parts or (self.evid,)

    @property
    @abstractmethod
    def contents(self) -> Iterator[tuple[str, Content]]:
        """Partition name ("" for the table) and content of each object that gets data."""

    @property
    @abstractmethod
    def changes_data_of(self) -> tuple[ObjectName, ...]:
        """The objects beside or in whose present data its own data goes, by their names at that moment."""

    @property
    @abstractmethod
    def name_changes(self) -> tuple[NameChange, ...]:
        """What it does to names, in order."""

    @property
    @abstractmethod
    def partitions(self) -> tuple[str, ...]:
        """Names of the partitions whose description it creates, changes or removes."""

    @property
    def partitions_changed(self) -> tuple[str, ...]:
        """Those of its partitions that are certainly there afterwards, and another thing than before."""
        gone = {change.before for change in self.name_changes}
        return tuple(name for name in self.partitions if (self.table, name) not in gone)

    @abstractmethod
    def without(self, partitions: Container[str]) -> Operation | None:
        """The same without the files of some partitions ("" for the table); None where nothing is left of it.

        What it creates, it creates empty: a later event that replaces the content finds it.
        """


class NoData(Operation):
    """Operations that bring no data."""

    __slots__ = ()

    @property
    def contents(self) -> Iterator[tuple[str, Content]]:
        """None."""
        yield from ()

    @property
    def changes_data_of(self) -> tuple[ObjectName, ...]:
        """None."""
        return ()

    def without(self, partitions: Container[str]) -> Operation | None:  # noqa: ARG002 - it has none of them
        """The same."""
        return self


class SameNames(Operation):
    """Operations that leave all names as they are."""

    __slots__ = ()

    @property
    def name_changes(self) -> tuple[NameChange, ...]:
        """None."""
        return ()


class NoPartitions(Operation):
    """Operations on a table or database that leave the descriptions of partitions as they are."""

    __slots__ = ()

    @property
    def partitions(self) -> tuple[str, ...]:
        """None."""
        return ()


class CustomOperation(NoData, SameNames, NoPartitions):
    """What carries itself out, after the operations before it in the lane: a site's own handler plans such, too.

    A class has to say only what it does. What it does not say of names, partitions and data, it leaves as they are; what it does
    to them without saying so, an undo does not take back. Its :attr:`kind` is the class's name where it has none of its own.
    """

    __slots__ = ()
    kind = "CustomOperation"

    def __init_subclass__(cls, **options: Any) -> None:
        """Gives a class without a kind its name."""
        super().__init_subclass__(**options)
        if "kind" not in cls.__dict__:
            cls.kind = cls.__name__

    @property
    def places(self) -> Iterator[tuple[str, str]]:
        """Name of each of its :attr:`contents`, and the directory where the files are brought before it is carried out."""
        yield from ()

    @abstractmethod
    def carry_out(self, target: Target, database: str) -> None:
        """Changes the target.

        Args:
            target: the target side.
            database: target database.

        Raises:
            ReplicationError: it failed; the lane is held at its event.
        """
