"""Retention: old data moves aside after the grace time, and is deleted after the retention time, with journals and dumps.

Nothing that a location of the target database points at, or that lies above or below one, is ever touched: all of them are read
anew each time, under the database's lock.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from hive_replication.dump.store import DumpStore
from hive_replication.errors import BadRequest
from hive_replication.load.journal import Entry, Journal, LaneFile, token_time
from hive_replication.load.locations import Locations, live_locations
from hive_replication.load.operations import OPEN_STAGING
from hive_replication.load.retired import former_lives, retired
from hive_replication.load.state import ReplicaState, replica_state
from hive_replication.load.target import Target
from hive_replication.metastore.lock import MetastoreLock
from hive_replication.progress import Progress, Silent
from hive_replication.storage import AlreadyExists, Storage, paths

_STAGED = re.compile(r"\d+-\d+(-\d+)?")
_TOKEN = re.compile(r"\d{13}[0-9a-f]{8}")
_TEMPORARY = re.compile(r"\..+\.[0-9a-f]{16}\.tmp")

What = Literal["old data", "retired", "journal", "staging", "temporary file", "dropped database", "dump"]


@dataclass(frozen=True, slots=True)
class Swept:
    """Something moved aside or deleted.

    Args:
        what: kind of thing.
        path: where it was.
        moved_to: where it is now, "" where it is deleted.
        size: bytes.
    """

    what: What
    path: str
    moved_to: str
    size: int


def sweep(
    target: Target,
    database: str,
    store: DumpStore | None = None,
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> list[Swept]:
    """Moves aside what is older than the policy's ``grace_seconds``, deletes what is older than its ``retention_seconds``.

    Args:
        target: the target side.
        database: target database.
        store: where its dumps are; None leaves them alone.
        dry_run: only tell what would be done.
        progress: who is told.

    Returns:
        What was done, or would be.

    Raises:
        Refused: a load of the database runs.
        BadRequest: the target has no such database, or it is no replica.
    """
    with MetastoreLock(target.metastore, database) as lock:
        found = target.metastore.database(database)
        if found is None or not found.locationUri:
            raise BadRequest(f"the target has no database {database!r}")
        state = replica_state(found)
        sweeper = _Sweeper(target, database, found.locationUri.rstrip("/"), lock.check, dry_run, progress or Silent())
        sweeper.sweep()
        if store is not None and state.source:
            sweeper.dumps(store, state)
        return sweeper.swept


class _Sweeper:
    def __init__(
        self, target: Target, database: str, location: str, check: Callable[[], None], dry_run: bool, progress: Progress
    ) -> None:
        self._target, self._storage, self._database, self._location = target, target.storage, database, location
        self._check, self._dry_run, self._progress = check, dry_run, progress
        now, policy = time.time(), target.policy
        self._grace, self._expiry = now - policy.grace_seconds, now - policy.retention_seconds
        self.swept: list[Swept] = []

    def sweep(self) -> None:
        """Everything below the database's directory, and dropped databases beside it."""
        journal = Journal(self._storage, self._location)
        entries = journal.entries()
        places = old_places(journal.lanes_of(entries))
        expired = [entry for entry in entries if token_time(entry.token) < self._expiry]
        gone = {entry.token for entry in expired}
        needed = [place for place, entry in places.items() if entry.token not in gone]
        live = live_locations(self._target.metastore, self._database)
        for place, entry in self._progress.over(list(places.items()), "old directories"):
            if entry.time < self._grace and paths.is_under(place, self._location) and self._storage.exists(place):
                self._set_aside(place, entry, live)
        held_back = live_locations(self._target.metastore, self._database, needed)
        self._delete_all("retired", self._expired_retired(), held_back)
        points = [entry for entry in expired if entry.status == "done"]
        for entry in expired:
            if entry not in points[-1:]:  # where an undo of the loads after it can go back to
                self._delete("journal", entry.directory)
        self._delete_all("staging", self._staged(), held_back)
        for uri in self._temporary():
            self._delete("temporary file", uri)
        for uri in self._dropped():
            self._delete("dropped database", uri)

    def dumps(self, store: DumpStore, state: ReplicaState) -> None:
        """Dumps that nothing needs any more, and those that were interrupted long ago."""
        names = [name for name, target in self._target.policy.databases.items() if target == self._database] or [self._database]
        for directory in (one for name in names for one in store.dumps(name)):
            header = store.open(directory).header
            ours = f"{header.source}/{header.scope.database}" == state.source
            passed = state.last_id is not None and header.to_evid <= state.last_id
            if ours and passed and header.created < self._expiry and state.checkpoint != directory:
                size = 0 if self._dry_run else store.remove(directory)
                self.swept.append(Swept("dump", directory, "", size))
        for directory in (one for name in names for one in store.unfinished(name, self._expiry)):
            size = 0 if self._dry_run else store.remove(directory)
            self.swept.append(Swept("dump", directory, "", size))

    def _set_aside(self, place: str, entry: Entry, live: Locations) -> None:
        for part in list(live.free_parts(self._storage, place)):
            kept = retired(self._location, entry.token, part)
            self.swept.append(Swept("old data", part, kept, _size(self._storage, part)))
            if self._dry_run:
                continue
            self._check()
            try:
                self._storage.rename(part, kept)
            except AlreadyExists:  # parts of it went there before: the rest is for the next time, one level deeper
                self._merge(part, kept)

    def _merge(self, part: str, kept: str) -> None:
        for child in self._storage.ls(part):
            name = f"{kept}/{paths.name(child.uri)}"
            if not self._storage.exists(name):
                self._storage.rename(child.uri, name)
            elif child.is_dir:
                self._merge(child.uri, name)
        if not self._storage.ls(part):
            self._storage.delete(part)

    def _expired_retired(self) -> Iterator[str]:
        for status in self._storage.ls(f"{self._location}/.repl/retired"):
            name = paths.name(status.uri)
            since = token_time(name) if _TOKEN.fullmatch(name) else status.modified
            if since < self._expiry:
                yield status.uri

    def _staged(self) -> Iterator[str]:
        for below, prefix in (("/.repl", ""), ("", OPEN_STAGING)):
            for status in self._storage.ls(f"{self._location}{below}"):
                name = paths.name(status.uri)
                staged = name.startswith(prefix) and _STAGED.fullmatch(name.removeprefix(prefix))
                if staged and self._idle(status.uri, status.modified):
                    yield status.uri

    def _idle(self, directory: str, modified: float) -> bool:
        files = self._storage.files(directory, hidden=True)
        return max([modified, *(file.modified for file in files)]) < self._expiry

    def _temporary(self) -> Iterator[str]:
        for child in self._progress.over(self._storage.ls(self._location), "tables looked through"):
            for file in self._storage.files(child.uri, hidden=True):
                if _TEMPORARY.fullmatch(paths.name(file.uri)) and file.modified < self._expiry:
                    yield file.uri

    def _dropped(self) -> Iterator[str]:
        """Directories of this database's former lives, beside it."""
        name = paths.name(self._location)
        for status in self._storage.ls(former_lives(self._location)):
            if re.fullmatch(re.escape(name) + r"-\d+-[0-9a-f]{8}", paths.name(status.uri)) and status.modified < self._expiry:
                yield status.uri

    def _delete_all(self, what: What, directories: Iterable[str], live: Locations) -> None:
        for directory in list(directories):
            for part in list(live.free_parts(self._storage, directory)):
                self._delete(what, part)

    def _delete(self, what: What, path: str) -> None:
        self.swept.append(Swept(what, path, "", _size(self._storage, path)))
        if not self._dry_run:
            self._check()
            self._storage.delete(path, recursive=True)


def old_places(loads: Iterable[tuple[Entry, list[LaneFile]]]) -> dict[str, Entry]:
    """Directories that loads left behind, or that undone loads had put into use, each with the newest load that says so."""
    places: dict[str, Entry] = {}
    for entry, lanes in loads:
        for lane in lanes:
            placed = lane.record.placed if lane.undone else ()
            places |= dict.fromkeys((*lane.record.left, *placed), entry)
    return places


def _size(storage: Storage, path: str) -> int:
    return sum(file.size for file in storage.files(path, hidden=True))
