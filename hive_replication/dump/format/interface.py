"""What every dump format offers: the rest of the system sees streams of records, never paths inside a dump."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

from hive_replication.dump.format.checkpoints import Checkpoint
from hive_replication.dump.format.record_types import (
    DumpHeader,
    DumpResult,
    EventRecord,
    FunctionRecord,
    PartitionRecord,
    Scope,
    TableRecord,
)
from hive_replication.storage import Storage


class DumpWriter(Protocol):
    """A dump being written. Objects may be replaced and removed until :meth:`finish`, which writes the ack file last."""

    @property
    def directory(self) -> str:
        """URI of the dump directory."""
        ...

    @property
    def done(self) -> Checkpoint | None:
        """How far an interrupted dump came that this one goes on with; None for a new one."""
        ...

    @property
    def number_of_events(self) -> int:
        """Events that the dump has so far."""
        ...

    def put_table(self, record: TableRecord) -> None:
        """Adds or replaces a table; its partitions stay."""
        ...

    def put_partition(self, record: PartitionRecord) -> None:
        """Adds or replaces a partition."""
        ...

    def put_function(self, record: FunctionRecord) -> None:
        """Adds a function."""
        ...

    def put_event(self, record: EventRecord) -> None:
        """Adds an event."""
        ...

    def table(self, name: str) -> TableRecord | None:
        """Reads back a table written before."""
        ...

    def partition(self, table: str, name: str) -> PartitionRecord | None:
        """Reads back a partition written before."""
        ...

    def partitions(self, table: str) -> Iterator[PartitionRecord]:
        """Reads back all partitions of a table, in order of their names."""
        ...

    def drop_table(self, name: str) -> None:
        """Removes a table with its partitions; absent is fine."""
        ...

    def drop_partition(self, table: str, name: str) -> None:
        """Removes a partition; absent is fine."""
        ...

    def due(self) -> bool:
        """Whether it is time to :meth:`keep` what there is."""
        ...

    def keep(self, checkpoint: Checkpoint) -> None:
        """Waits for all writes and notes how far the dump is, so that an interrupted dump goes on from here."""
        ...

    def seal(self) -> None:
        """From here on objects change that were noted as whole: the dump cannot be gone on with any more."""
        ...

    def finish(self, header: DumpHeader) -> DumpResult:
        """Waits for all writes, then writes the header and last the ack file."""
        ...

    def abandon(self) -> None:
        """Removes an unfinished dump."""
        ...

    def suspend(self) -> None:
        """Leaves an unfinished dump to the next equal request; removes it if nothing was noted."""
        ...


class DumpReader(Protocol):
    """A complete dump."""

    @property
    def directory(self) -> str:
        """URI of the dump directory."""
        ...

    @property
    def header(self) -> DumpHeader:
        """The dump's header."""
        ...

    @property
    def number_of_objects(self) -> int:
        """Tables and partitions that the dump has."""
        ...

    def tables(self) -> Iterator[TableRecord]:
        """Tables in order of their names."""
        ...

    def partitions(self, table: str) -> Iterator[PartitionRecord]:
        """Partitions of a table in order of their names."""
        ...

    def functions(self) -> Iterator[FunctionRecord]:
        """Functions in order of their names."""
        ...

    def events(self) -> Iterator[EventRecord]:
        """Events in order of their ids."""
        ...


class VerifiedReader(DumpReader, Protocol):
    """A complete dump that can be compared with what was written."""

    def verify(self) -> None:
        """Compares every file with its digest, and the numbers of records with those of the ack file.

        Raises:
            BadRequest: the dump is not what was written.
        """
        ...


class DumpStore(Protocol):
    """A format of dumps under one root."""

    @property
    def storage(self) -> Storage:
        """Where the root lies."""
        ...

    @property
    def root(self) -> str:
        """URI of the directory of all dumps, without a slash at its end."""
        ...

    def create(self, scope: Scope, request: str | None = None, *, resumable: bool = True) -> DumpWriter:
        """Begins a new dump directory, or goes on with one.

        Args:
            scope: what the dump is of.
            request: the whole request as text. A dump of an equal request that was interrupted is gone on with, and this
                one can be, too. None: neither.
            resumable: whether so; else the request is only noted, which tells whose dump it is.
        """
        ...

    def open(self, directory: str) -> DumpReader:
        """Opens a complete dump, and compares all of it with the digests and counts that it was finished with.

        Raises:
            BadRequest: there is no dump at that place, or it is incomplete, damaged or unreadable.
            Refused: the directory lies outside the policy's storage roots, or the dump is not signed as the policy asks.
        """
        ...

    def header(self, directory: str, *, signed: bool = True) -> DumpHeader:
        """The header of a complete dump, compared with its digest; nothing else is read. Raises as :meth:`open`.

        Args:
            directory: of the dump.
            signed: whether it has to be signed as the policy asks; not for who only deletes it.
        """
        ...

    def dumps(self, database: str) -> list[str]:
        """Directories of the complete dumps of a source database and of its tables, but those that this account may not read."""
        ...

    def unfinished(self, database: str, before: float) -> list[str]:
        """Directories of dumps that were interrupted and not written to since ``before`` (seconds since the epoch)."""
        ...

    def is_unfinished(self, directory: str, before: float) -> bool:
        """Whether a directory is one of :meth:`unfinished`; raises Denied where this account may not read it."""
        ...

    def policy_of(self, directory: str) -> str:
        """Name of the policy that a dump was begun for, as its writers noted; "" where they did not.

        Headers of complete dumps tell it too, but not those of earlier versions.
        """
        ...

    def remove(self, directory: str) -> int:
        """Removes a dump; bytes freed."""
        ...
