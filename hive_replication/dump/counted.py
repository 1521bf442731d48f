# ruff: noqa: D102 - the methods are described once, in the protocols of dump.store
"""What the writers of all formats do alike: count their records, leave an unfinished dump, and end one with its ack file."""

from __future__ import annotations

import json

from hive_replication.dump.attempts import Attempt, Resumable, Written
from hive_replication.dump.records import DumpHeader, DumpResult
from hive_replication.dump.tree_reader import ACK
from hive_replication.storage import Storage


class CountedRecords(Resumable):
    """The records of a dump being written, by their numbers of files; see :class:`hive_replication.dump.store.DumpWriter`."""

    _storage: Storage
    directory: str

    def _count(self, attempt: Attempt | None) -> None:
        """Begins with what the attempts before wrote."""
        self._attempt = attempt
        written = attempt.written if attempt else Written()
        self._tables, self._partitions, self._events = written.tables, written.partitions, written.events
        self._functions: dict[str, int] = {}

    @property
    def number_of_events(self) -> int:
        return len(self._events)

    def suspend(self) -> None:
        if self._attempt is None or not self._attempt.release():
            self.abandon()

    def abandon(self) -> None:
        self._storage.delete(self.directory, recursive=True)

    def _close(self) -> None:
        """From here on only this writer ends the dump.

        Raises:
            ReplicationError: another process has taken the directory over.
        """
        if self._attempt is not None:
            self._attempt.check()
            self._attempt.seal()

    def _acknowledge(self, header: DumpHeader, **more: object) -> DumpResult:
        """Writes the ack file, the last one; ``more`` is what the format adds to it."""
        counts = {"tables": len(self._tables), "partitions": len(self._partitions), "events": len(self._events)}
        ack = {**counts, "functions": len(self._functions), **more}
        self._storage.write_once(f"{self.directory}/{ACK}", json.dumps(ack).encode())
        files = sum(sum(numbers.values()) for numbers in (self._tables, self._partitions, self._events, self._functions))
        return DumpResult(self.directory, header.to_evid, header, files=files, **counts)
