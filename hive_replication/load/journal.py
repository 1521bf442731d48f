"""The journal of a target database: what each load is about to change, written before it does.

Below ``<database>/.repl/journal`` every load has a directory ``<from>-<to>-<token>`` with one file per lane: its operations, the
images that the objects it touches had before, and the directories that it leaves behind. The directory's ending says what
became of the load: none (under way, or ended early), ``.done``, ``.part`` (of some tables only) or ``.undone``.
"""

from __future__ import annotations

import itertools
import json
import re
import secrets
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Literal

from hive_replication.load.journal_record import LaneRecord, record_of, record_text
from hive_replication.load.locations import Locations
from hive_replication.load.state import ReplicaState, replica_state
from hive_replication.metastore import tjson
from hive_replication.metastore.types import Database
from hive_replication.storage import Storage, paths

_NAME = re.compile(r"(\d+)-(\d+)-(\d{13}[0-9a-f]{8})(?:\.(done|part|undone))?")
_LANE = re.compile(r"\d+\.(json|undone)")
_THREADS = 16
_WRITERS = 64

Status = Literal["open", "done", "part", "undone"]


@dataclass(frozen=True, slots=True)
class Loaded:
    """A load of a whole database that is done.

    Args:
        from_evid: where its window began.
        to_evid: where the database stood after it.
        time: when it was done, seconds since the epoch.
    """

    from_evid: int
    to_evid: int
    time: float


@dataclass(frozen=True, slots=True)
class Entry:
    """The journal directory of one load; ``token`` sorts loads by their begin, ``time`` is when it was written last."""

    directory: str
    from_evid: int
    to_evid: int
    token: str
    status: Status
    time: float


@dataclass(frozen=True)
class LaneFile:
    """A lane's file in the journal; ``undone`` where the lane was taken back."""

    uri: str
    record: LaneRecord
    undone: bool


class Journal:
    """The journal of one target database.

    Args:
        storage: the target's.
        location: the database's directory.
    """

    def __init__(self, storage: Storage, location: str) -> None:
        self._storage, self._root = storage, f"{location.rstrip('/')}/.repl/journal"
        self._kept: Locations | None = None

    def entries(self) -> list[Entry]:
        """All loads in the order they began."""
        found: list[Entry] = []
        for status in self._storage.ls(self._root):
            match = _NAME.fullmatch(paths.name(status.uri))
            if match:
                start, end, token, ending = match.groups()
                at = max(status.modified, int(token[:13]) / 1000)
                found.append(Entry(status.uri, int(start), int(end), token, ending or "open", at))  # type: ignore[arg-type]
        return sorted(found, key=lambda entry: entry.token)

    def lanes(self, entry: Entry) -> list[LaneFile]:
        """The lanes of a load."""
        found = [status.uri for status in self._storage.ls(entry.directory)]
        return [self._lane(uri) for uri in found if _LANE.fullmatch(paths.name(uri))]

    def lanes_of(self, entries: Iterable[Entry]) -> list[tuple[Entry, list[LaneFile]]]:
        """The lanes of many loads, read in parallel."""
        entries = list(entries)
        with ThreadPoolExecutor(_THREADS, thread_name_prefix="journal") as pool:
            return list(zip(entries, pool.map(self.lanes, entries), strict=True))

    def _lane(self, uri: str) -> LaneFile:
        return LaneFile(uri, record_of(self._storage.read(uri)), uri.endswith(".undone"))

    def state(self, entry: Entry) -> ReplicaState | None:
        """Where the database stood after a load; None of one that did not come to its end."""
        uri = f"{entry.directory}/state"
        if not self._storage.exists(uri):
            return None
        return replica_state(Database(parameters=json.loads(self._storage.read(uri))))

    def database(self, entry: Entry) -> Database | None:
        """The database's image before a load; None where the load did not change its properties."""
        uri = f"{entry.directory}/database"
        return tjson.loads(Database, self._storage.read(uri).decode()) if self._storage.exists(uri) else None

    def settle(self, entries: Iterable[Entry], state: ReplicaState) -> list[Entry]:
        """Marks loads as done that were killed after they had written the database's state."""
        settled: list[Entry] = []
        for entry in entries:
            written = self.state(entry) if entry.status == "open" else None
            if written is not None and written.parameters() == state.parameters():
                settled.append(self.mark(entry, "done"))
            else:
                settled.append(entry)
        return settled

    def mark(self, entry: Entry, status: Status) -> Entry:
        """Gives a load's directory another ending."""
        if entry.status == status:
            return entry
        directory = f"{self._root}/{entry.from_evid}-{entry.to_evid}-{entry.token}.{status}"
        self._storage.rename(entry.directory, directory)
        return replace(entry, directory=directory, status=status)

    def mark_undone(self, lane: LaneFile) -> None:
        """Notes that a lane was taken back."""
        self._storage.rename(lane.uri, lane.uri.removesuffix(".json") + ".undone")

    def remove(self, entry: Entry) -> None:
        """Forgets a load."""
        self._storage.delete(entry.directory, recursive=True)

    def kept(self) -> Locations:
        """Directories left behind that an undo may need; read once."""
        if self._kept is None:
            lanes = [lane for _, lanes in self.lanes_of(self.entries()) for lane in lanes if not lane.undone]
            self._kept = Locations(place for lane in lanes for place in lane.record.kept)
        return self._kept

    def begin(self, from_evid: int, to_evid: int) -> JournalWriter:
        """The journal of a new load; nothing is written yet."""
        return JournalWriter(self._storage, self._root, from_evid, to_evid)


class JournalWriter:
    """The journal of a load under way."""

    def __init__(self, storage: Storage, root: str, from_evid: int, to_evid: int) -> None:
        self._storage, self._root, self._from, self._to = storage, root, from_evid, to_evid
        self._token = new_token()
        self._numbers = itertools.count()

    @property
    def _directory(self) -> str:
        return f"{self._root}/{self._from}-{self._to}-{self._token}"

    def lanes(self, records: Iterable[LaneRecord]) -> None:
        """Writes down what lanes are about to change: in parallel, since closing a small HDFS file takes up to half a second."""

        def write(record: LaneRecord, number: int) -> None:
            self._storage.write_once(f"{self._directory}/{number}.json", record_text(record))

        with ThreadPoolExecutor(_WRITERS, thread_name_prefix="journal") as pool:
            list(pool.map(write, records, self._numbers))

    def database(self, image: Database) -> None:
        """Writes down the database's properties, the first time only."""
        uri = f"{self._directory}/database"
        if not self._storage.exists(uri):
            self._storage.write_once(uri, tjson.dumps(image).encode())

    def ending(self, state: ReplicaState) -> None:
        """Writes down the state that the load is about to write into the metastore."""
        self._storage.write_once(f"{self._directory}/state", json.dumps(state.parameters()).encode())

    def done(self, applied: int | None) -> None:
        """Marks the load as done.

        Args:
            applied: event id where the database stands now; None after a load of some of its tables.
        """
        if self._storage.exists(self._directory):
            end, ending = (self._to, "part") if applied is None else (applied, "done")
            self._storage.rename(self._directory, f"{self._root}/{self._from}-{end}-{self._token}.{ending}")


def loaded(storage: Storage, location: str) -> list[Loaded]:
    """Loads of a whole target database that are done and not undone, in order; one listing, no file is read.

    One with a higher ``to_evid`` than the database's applied id tells that the target's metastore was restored from an older
    backup.

    Args:
        storage: the target's.
        location: the database's directory.
    """
    return [Loaded(e.from_evid, e.to_evid, e.time) for e in Journal(storage, location).entries() if e.status == "done"]


def new_token() -> str:
    """A name that sorts by time: milliseconds since the epoch, and chance."""
    return f"{time.time_ns() // 1_000_000:013d}{secrets.token_hex(4)}"


def token_time(token: str) -> float:
    """When a token was made, seconds since the epoch."""
    return int(token[:13]) / 1000
