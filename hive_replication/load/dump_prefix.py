"""A dump of events cut off at one of them: ``REPL LOAD ... TO <evid>``."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

from hive_replication.dump.format.interface import DumpReader
from hive_replication.dump.format.record_types import DumpHeader, EventRecord, FunctionRecord, PartitionRecord, TableRecord
from hive_replication.errors import BadRequest, Refused
from hive_replication.load.journal.journal import Journal
from hive_replication.load.replica.state import ReplicaState
from hive_replication.storage import Storage


def prefix_of(reader: DumpReader, evid: int | None) -> DumpReader:
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
    if evid == header.to_evid:
        return reader
    # Of an event that is not of the dump's database, time and hash are not known.
    found = next((record for record in reader.events() if record.notification.evid == evid), None)
    time, message_hash = (found.notification.time, found.hash) if found else (0, "")
    cut = replace(header, to_evid=evid, to_time=time, to_hash=message_hash, before="", joined={})
    return EventsOf(reader, cut, lambda: (record for record in reader.events() if record.notification.evid <= evid))


def require_not_passed(storage: Storage, location: str, state: ReplicaState, evid: int) -> None:
    """Makes sure that no interrupted load may have brought objects beyond an event id.

    Args:
        storage: the target's.
        location: the target database's directory.
        state: where it stands.
        evid: the last event to apply.

    Raises:
        Refused: one may have; which objects stand there, nobody can tell without comparing.
    """
    if until := interrupted_until(storage, location, state, evid):
        raise Refused(
            f"a load up to event {until} was interrupted and may have brought objects beyond event {evid}: "
            f"load up to event {until} first; hive-repl undo goes back from there"
        )


def interrupted_until(storage: Storage, location: str, state: ReplicaState, evid: int) -> int:
    """Up to where loads that were interrupted may have brought objects, if that is beyond an event; else 0. Takes the same."""
    journal, until = Journal(storage, location), 0
    entries = journal.entries()
    for number, entry in enumerate(entries):
        beyond = entry.status == "open" and entry.to_evid > evid
        if not beyond or any(later.status == "done" and later.to_evid >= entry.to_evid for later in entries[number + 1 :]):
            continue
        written = journal.state(entry)
        if written is None or written.parameters() != state.parameters():  # else it was killed after its last step
            until = max(until, entry.to_evid)
    return until


class EventsOf:
    """Some of the events of a dump, as a dump of their own.

    Args:
        reader: the dump.
        header: that of the events.
        events: gives them, again whenever it is asked.
    """

    def __init__(self, reader: DumpReader, header: DumpHeader, events: Callable[[], Iterable[EventRecord]]) -> None:
        self._reader, self.header, self._events = reader, header, events

    @property
    def directory(self) -> str:
        """URI of the dump directory."""
        return self._reader.directory

    @property
    def number_of_objects(self) -> int:
        """Of a dump of events: none."""
        return self._reader.number_of_objects

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
        """The events, in order of their ids."""
        return iter(self._events())
