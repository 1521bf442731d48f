"""Base of the readers of all formats: the header, digests and counts of a complete dump, and errors of ours only."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from thrift.Thrift import TException

from hive_replication.dump.format import encoding
from hive_replication.dump.format.ack import Ack
from hive_replication.dump.format.digests import DumpFiles
from hive_replication.dump.format.record_types import DumpHeader
from hive_replication.errors import BadRequest
from hive_replication.storage import Storage

Value = TypeVar("Value")
_DAMAGES = (ValueError, KeyError, TypeError, AttributeError, IndexError, EOFError, OverflowError, RecursionError, TException)


class ReaderBase:
    """A complete dump; see :class:`hive_replication.dump.format.interface.DumpReader`.

    Args:
        storage: where it lies.
        directory: its directory.
        ack: its ack file.
    """

    def __init__(self, storage: Storage, directory: str, ack: Ack) -> None:
        self._storage, self.directory, self._ack = storage, directory, ack
        self._files = DumpFiles(storage, directory, ack.digests)
        self.header: DumpHeader = self._guard(self._read_header)

    @property
    def number_of_objects(self) -> int:
        """Tables and partitions that the dump has."""
        return self._ack.tables + self._ack.partitions

    def verify(self) -> None:
        """Compares every file with its digest, and the numbers of records with those of the ack file.

        Raises:
            BadRequest: the dump is not what was written.
        """
        self._guard(self._files.verify)
        self._count()

    def _count(self) -> None:
        """Compares the numbers of records with those of the ack file."""
        raise NotImplementedError

    def _read_header(self) -> DumpHeader:
        header = encoding.header_of(self._files.read("_dumpmetadata"), digests=self._ack.digest is not None)
        if header.from_evid > header.to_evid:
            raise ValueError(f"its window ends at event {header.to_evid}, before it begins, after event {header.from_evid}")
        if not header.scope.database or (header.scope.partitions is not None and not header.scope.table):
            raise ValueError("its header does not say what it is of")
        return header

    def _expect(self, what: str, found: int) -> None:
        expected = self._ack.counts[what]
        if expected != found:
            raise BadRequest(f"the dump {self.directory} is incomplete: {found} {what}s instead of {expected}; dump again")

    def _guard(self, read: Callable[[], Value]) -> Value:
        """Turns whatever a damaged dump makes of itself into one clear error."""
        try:
            return read()
        except FileNotFoundError as error:
            raise BadRequest(f"the dump {self.directory} is incomplete: {error}; dump again") from error
        except _DAMAGES as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> BadRequest:
        """One line, not longer than a screen: a damaged text may stand in the error."""
        said = " ".join((str(error) or repr(error)).split())
        said = said if len(said) <= 500 else f"{said[:500]}..."
        return BadRequest(f"the dump {self.directory} is unreadable: {said}; dump again")
