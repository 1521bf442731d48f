"""A dump of events cut off at one of them: ``REPL LOAD ... TO <evid>``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from hive_replication.dump.records import DumpHeader, EventRecord, FunctionRecord, PartitionRecord, TableRecord
from hive_replication.dump.store import DumpReader
from hive_replication.errors import BadRequest


def up_to(reader: DumpReader, evid: int | None) -> DumpReader:
    """The dump as if it ended at an event id; the dump itself without one.

    Raises:
        BadRequest: it is a dump of objects, or the event id lies outside its window.
    """
    header = reader.header
    if evid is None:
        return reader
    if header.kind == "bootstrap":
        raise BadRequest(f"{reader.directory} is a dump of objects, which stand at event {header.to_evid} together: leave TO out")
    if not header.from_evid <= evid <= header.to_evid:
        raise BadRequest(f"TO {evid} lies outside the dump's window from {header.from_evid} to {header.to_evid}")
    return reader if evid == header.to_evid else _UpTo(reader, evid)


class _UpTo:
    def __init__(self, reader: DumpReader, evid: int) -> None:
        self._reader = reader
        # The dump holds the events of its database only, and their messages unpacked: time or hash may stay unknown.
        time = next((record.notification.time for record in reader.events() if record.notification.evid == evid), 0)
        self.header: DumpHeader = replace(reader.header, to_evid=evid, to_time=time, to_hash="")

    @property
    def directory(self) -> str:
        """URI of the dump directory."""
        return self._reader.directory

    def tables(self) -> Iterator[TableRecord]:
        """Of a dump of events: none."""
        return self._reader.tables()

    def partitions(self, table: str) -> Iterator[PartitionRecord]:
        """Of a dump of events: none."""
        return self._reader.partitions(table)

    def functions(self) -> Iterator[FunctionRecord]:
        """Of a dump of events: none."""
        return self._reader.functions()

    def events(self) -> Iterator[EventRecord]:
        """Events up to the last one wanted."""
        return (record for record in self._reader.events() if record.notification.evid <= self.header.to_evid)
