# ruff: noqa: D102 - the methods are described once, in the protocols of dump.format.interface
"""Base of the writers of all formats: counts records, suspends or abandons an unfinished dump, writes the ack file."""

from __future__ import annotations

from hive_replication.dump.format.ack import ACK, ack_text
from hive_replication.dump.format.checkpoints import Written
from hive_replication.dump.format.claims import remove
from hive_replication.dump.format.record_types import DumpHeader, DumpResult
from hive_replication.dump.format.resume import ResumableWriter, WriterClaim
from hive_replication.signing import SigningKey
from hive_replication.storage import Storage


class WriterBase(ResumableWriter):
    """The records of a dump being written, by their numbers of files; see :class:`~.interface.DumpWriter`."""

    _storage: Storage
    directory: str
    _key: SigningKey | None = None

    def _count(self, claim: WriterClaim | None) -> None:
        """Starts with the records of the earlier writers of the dump."""
        self._claim = claim
        written = claim.written if claim else Written()
        self._tables, self._partitions, self._events = written.tables, written.partitions, written.events
        self._runs = written.runs
        self._functions: dict[str, int] = {}
        self._digests = written.files

    @property
    def number_of_events(self) -> int:
        return len(self._events)

    def suspend(self) -> None:
        if self._claim is None or not self._claim.release():
            self.abandon()

    def abandon(self) -> None:
        remove(self._storage, self.directory, ACK)

    def _close(self) -> None:
        """Makes sure that this writer is the one that may finish the dump.

        Raises:
            ReplicationError: another process has taken the directory over.
        """
        if self._claim is not None:
            self._claim.check()

    def _acknowledge(self, header: DumpHeader, **more: object) -> DumpResult:
        """Writes the ack file, the last one; ``more`` is what the format adds to it."""
        self._close()  # the other writer's files would not be those of the digests
        runs = [run for runs in self._runs.values() for run in runs]
        partitions = len(self._partitions) + sum(run.left for run in runs)
        counts = {"tables": len(self._tables), "partitions": partitions, "events": len(self._events)}
        ack = ack_text({**counts, "functions": len(self._functions)}, self._digests, more, self.directory, self._key)
        self._storage.write_once(f"{self.directory}/{ACK}", ack)
        files = sum(sum(numbers.values()) for numbers in (self._tables, self._partitions, self._events, self._functions))
        files += sum(run.files for run in runs)
        return DumpResult(self.directory, header.to_evid, header, files=files, **counts)
