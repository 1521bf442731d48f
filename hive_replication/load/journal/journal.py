"""The journal of a target database: what each load is about to change, written before it does.

Below ``<database>/.repl/journal`` every load has a directory ``<from>-<to>-<token>`` with a file per lane, of a large one
several: its operations, the images that the objects it touches had before, and the directories that it leaves behind; and, once
all of them are written, one small file with what later loads ask of them. A repair has a file that says so, written before them.

The suffix of the directory says what became of the load: none (running, killed, or being undone), ``.done``, ``.part`` (of some
tables only), ``.undone`` or ``.former`` (done, before a failover made the database a source for a time, before
it was dropped and its directory stayed, or before its metastore was restored from an older state). The undo of a table
leaves a ``.part`` without lanes: it tells where the table stood.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain, groupby
from typing import Literal

from pydantic import ConfigDict, TypeAdapter

from hive_replication.bounded_json import parsed
from hive_replication.errors import ReplicationError
from hive_replication.load.journal.journal_writer import KEPT, REPAIR, RESTORED, JournalWriter, Repairs
from hive_replication.load.journal.lane_record import MOST, PART, LaneRecord, record_of
from hive_replication.load.layout.directories import Layout, new_token, token_time
from hive_replication.load.layout.live_locations import Locations
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.types import Database
from hive_replication.storage import Storage, paths

_NAME = re.compile(r"(\d+)-(\d+)-(\d{13}[0-9a-f]{8})(?:\.(done|part|undone|former))?")
_PARAMETERS = TypeAdapter(dict[str, str], config=ConfigDict(strict=True))
_PLACES = TypeAdapter(list[str], config=ConfigDict(strict=True))
_LANE = re.compile(r"\d+\.(json|undone)")

Status = Literal["open", "done", "part", "undone", "former"]
_STATUSES: tuple[Status, ...] = ("open", "part", "done", "undone", "former")


@dataclass(frozen=True, slots=True)
class FinishedLoad:
    """A finished load of a whole database.

    Args:
        from_evid: begin of its window.
        to_evid: applied id of the database after it.
        time: when it finished, seconds since the epoch.
    """

    from_evid: int
    to_evid: int
    time: float


@dataclass(frozen=True, slots=True)
class Entry:
    """The journal directory of one load; ``token`` sorts loads by their start.

    ``time`` is that of the last write, on object stores that of the start: they do not know when a directory was changed.
    ``rest`` are other directories of the load: an object store, which copies and deletes, was killed while it renamed one.
    """

    directory: str
    from_evid: int
    to_evid: int
    token: str
    status: Status
    time: float
    rest: tuple[str, ...] = ()


@dataclass(frozen=True)
class LaneFile:
    """A lane's file in the journal; ``undone`` if an undo reversed the lane."""

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
        self._storage, self._root = storage, Layout(location).journal
        self._kept: dict[str, list[str]] = {}
        self._own: JournalWriter | None = None

    def entries(self) -> list[Entry]:
        """All loads in the order in which they started."""
        found: list[Entry] = []
        for status in self._storage.ls(self._root):
            match = _NAME.fullmatch(paths.name(status.uri))
            if match:
                start, end, token, suffix = match.groups()
                written = max(status.modified, token_time(token))
                found.append(Entry(status.uri, int(start), int(end), token, suffix or "open", written))  # type: ignore[arg-type]
        return [_one(list(same)) for _, same in groupby(sorted(found, key=_order), key=lambda entry: entry.token)]

    def lanes(self, entry: Entry) -> list[LaneFile]:
        """The lanes of a load in the order in which they were written."""
        return list(self._read(entry))

    def lanes_of(self, entries: Iterable[Entry]) -> list[tuple[Entry, list[LaneFile]]]:
        """The lanes of many loads, read in parallel."""
        entries = list(entries)
        return list(zip(entries, self._storage.threads.map(self.lanes, entries), strict=True))

    def places_of(self, entries: Iterable[Entry]) -> list[tuple[Entry, list[LaneFile]]]:
        """The lanes of many loads with nothing but the directories that they left and placed: no image stays in memory."""
        entries = list(entries)
        return list(zip(entries, self._storage.threads.map(self._places, entries), strict=True))

    def _places(self, entry: Entry) -> list[LaneFile]:
        return [
            replace(lane, record=LaneRecord(lane.record.names, (), left=lane.record.left, placed=lane.record.placed))
            for lane in self._read(entry)
        ]

    def _read(self, entry: Entry) -> Iterator[LaneFile]:
        lanes: dict[int, str] = {}
        for uri in self._files(entry).values():
            if _LANE.fullmatch(paths.name(uri)):
                number, _, ending = paths.name(uri).partition(".")
                if int(number) not in lanes or ending == "undone":  # both are there where an object store was killed in between
                    lanes[int(number)] = uri
        return map(self._lane, (uri for _, uri in sorted(lanes.items())))

    def _files(self, entry: Entry) -> dict[str, str]:
        """The files of a load by their names, wherever they are."""
        found = (status.uri for directory in (*entry.rest, entry.directory) for status in self._storage.ls(directory))
        return {paths.name(uri): uri for uri in found}

    def _lane(self, uri: str) -> LaneFile:
        return LaneFile(uri, record_of(self._storage.read(uri, most=MOST)), uri.endswith(".undone"))

    def state(self, entry: Entry) -> ReplicaState | None:
        """The state of the database after a load; None if the load did not finish."""
        uri = self._file(entry, "state")
        if not uri:
            return None
        try:
            found = _PARAMETERS.validate_python(parsed(self._storage.read(uri, most=MOST), most=MOST))
        except ValueError as error:
            raise _unreadable(uri, error) from error
        return replica_state(Database(parameters=found))

    def database(self, entry: Entry) -> Database | None:
        """The database's image before a load; None if the load did not change its properties."""
        uri = self._file(entry, "database")
        try:
            return tjson.loads(Database, self._storage.read(uri, most=MOST).decode()) if uri else None
        except (ValueError, OverflowError) as error:
            raise _unreadable(uri, error) from error

    def _file(self, entry: Entry, name: str) -> str:
        """A file of a load; "" where it has none."""
        return next((uri for one in (entry.directory, *entry.rest) if self._storage.exists(uri := f"{one}/{name}")), "")

    def mark_finished(self, entries: Iterable[Entry], state: ReplicaState) -> list[Entry]:
        """Marks loads as done that were killed after they had written the database's state."""
        marked: list[Entry] = []
        for entry in map(self._whole, entries):
            written = self.state(entry) if entry.status == "open" else None
            if written is not None and written.parameters() == state.parameters():
                marked.append(self.mark(entry, "done" if entry.to_evid == written.applied else "part"))
            else:
                marked.append(entry)
        return marked

    def mark(self, entry: Entry, status: Status) -> Entry:
        """Changes the suffix of a load's directory."""
        entry = self._whole(entry)
        if entry.status == status:
            return entry
        directory = self.directory(entry, status)
        self._storage.rename(entry.directory, directory)
        return replace(entry, directory=directory, status=status)

    def directory(self, entry: Entry, status: Status) -> str:
        """The directory of a load with a status."""
        return f"{self._root}/{entry.from_evid}-{entry.to_evid}-{entry.token}{'' if status == 'open' else f'.{status}'}"

    def _whole(self, entry: Entry) -> Entry:
        """Ends a rename that was killed: each file of the other directories is moved, or deleted where it was copied."""
        for directory in entry.rest:
            for file in self._storage.files(directory, hidden=True):
                place = f"{entry.directory}{file.uri[len(directory) :]}"
                if not self._storage.exists(place):
                    self._storage.rename(file.uri, place)
                elif self._storage.read(place, most=MOST) == self._storage.read(file.uri, most=MOST):
                    self._storage.delete(file.uri)
                else:
                    raise ReplicationError(f"{file.uri} and {place} differ: delete the one that was not copied whole")
            self._storage.delete(directory, recursive=True)
        return replace(entry, rest=())

    def end(self) -> None:
        """Leaves no load to undo to: what became of the database after them is in no journal."""
        for entry in self.entries():
            if entry.status == "done":
                self.mark(entry, "former")

    def repairs(self, entries: Iterable[Entry]) -> dict[str, Repairs]:
        """Those loads that were repairs or recoveries, also ones that were killed, by their tokens."""
        entries = list(entries)
        found = zip(entries, self._storage.threads.map(self._repairs, entries), strict=True)
        return {entry.token: repairs for entry, repairs in found if repairs}

    def _repairs(self, entry: Entry) -> Repairs:
        uri = self._file(entry, REPAIR)
        if not uri:
            return ""
        return "level" if self._storage.read(uri, most=PART) == b"level" else "behind"

    def newest_that_makes_good(self, entries: Iterable[Entry]) -> str:
        """Token of the last load that made good, or began to, that the target's metastore was restored; "" where none did."""
        entries = list(entries)
        found = self._storage.threads.map(lambda entry: self._file(entry, RESTORED), entries)
        return max((entry.token for entry, good in zip(entries, found, strict=True) if good), default="")

    def newest_in_part(self, entries: Iterable[Entry]) -> str:
        """Token of the last load that is done and has no state any more: a part of its files is deleted; "" where none is."""
        done = [entry for entry in entries if entry.status == "done"]
        found = self._storage.threads.map(lambda entry: self._file(entry, "state"), done)
        return max((entry.token for entry, state in zip(done, found, strict=True) if not state), default="")

    def mark_undone(self, lane: LaneFile) -> None:
        """Records that an undo reversed a lane."""
        self._storage.rename(lane.uri, lane.uri.removesuffix(".json") + ".undone")

    def kept(self) -> Locations:
        """Directories that an undo may need; of other loads, which do not run, they are read once, of the own one never."""
        entries = {entry.directory: entry for entry in self.entries()}
        own = self._own.kept() if self._own and entries.pop(self._own.directory, None) else []
        due = [entry for directory, entry in entries.items() if directory not in self._kept]
        read = self._storage.threads.map(self._kept_of, due)
        self._kept |= {entry.directory: places for entry, places in zip(due, read, strict=True)}
        return Locations(chain(own, *self._kept.values()))

    def _kept_of(self, entry: Entry) -> list[str]:
        files = self._files(entry)
        if (uri := files.get(KEPT)) and not any(name.endswith(".undone") for name in files):
            try:
                return _PLACES.validate_python(parsed(self._storage.read(uri, most=PART), most=PART))
            except ValueError as error:
                raise _unreadable(uri, error) from error
        return [directory for lane in self._read(entry) if not lane.undone for directory in lane.record.kept]

    def begin(self, from_evid: int, to_evid: int, *, repairs: Repairs = "") -> JournalWriter:
        """The journal of a new load, which comes after all others in it; writes nothing yet."""
        newest = max((entry.token for entry in self.entries()), default="")
        self._own = JournalWriter(self._storage, self._root, from_evid, to_evid, new_token(newest), repairs=repairs)
        return self._own


def _order(entry: Entry) -> tuple[str, int]:
    return entry.token, _STATUSES.index(entry.status)


def _one(same: list[Entry]) -> Entry:
    """The entry of the directories of one load, in the order of what becomes of loads.

    Between none and ``.done``, which an undo takes away before it begins, the load is done and nothing of it undone.
    """
    *rest, last = same
    return replace(last, rest=tuple(one.directory for one in rest)) if rest else last


def _unreadable(uri: str, error: Exception) -> ReplicationError:
    return ReplicationError(f"{uri} is unreadable: {' '.join(str(error).split())[:300]}")


def finished_loads(storage: Storage, location: str) -> list[FinishedLoad]:
    """Finished loads of a whole target database that are not undone or former, in order; takes one listing and reads no file.

    A load with a higher ``to_evid`` than the database's applied id shows that the target's metastore was restored from an older
    backup.

    Args:
        storage: the target's.
        location: the database's directory.
    """
    return [FinishedLoad(e.from_evid, e.to_evid, e.time) for e in Journal(storage, location).entries() if e.status == "done"]
