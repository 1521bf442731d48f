"""Retention: retires old data after the grace time, and deletes it after the retention time, with journals and dumps.

Old data is listed without the database's lock. The lock is only taken for the changes, for a short time each, and loads wait for
it. Nothing at, above or below a location of the target database is ever touched: the locations are read again under the lock.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import replace

from hive_replication.dump.format.closed_directories import passed_over_if_closed
from hive_replication.dump.format.interface import DumpStore
from hive_replication.errors import BadRequest, Refused, ReplicationError, Unreachable
from hive_replication.load.journal.journal import Entry, Journal
from hive_replication.load.layout.directories import Layout, is_dropped_database, is_staging, is_token, token_time
from hive_replication.load.layout.live_locations import Locations, databases_within, live_locations
from hive_replication.load.records import RecordStore
from hive_replication.load.replica.state import replica_state
from hive_replication.load.replica.target import Target
from hive_replication.load.retention.hidden_data import HiddenData
from hive_replication.load.retention.old_directories import normal, old_directories
from hive_replication.load.retention.old_dumps import OldDumps
from hive_replication.load.retention.own_databases import require_own, source_names
from hive_replication.load.retention.removals import InUse, Removal, Removals, Swept, What
from hive_replication.load.retention.temporary_files import TemporaryFiles
from hive_replication.logs import about
from hive_replication.metastore.lock import MetastoreLock
from hive_replication.progress import Progress, Silent
from hive_replication.storage import Denied, paths

_LOG = logging.getLogger(__name__)

#: Seconds after which the lock is released for waiting loads, and seconds until it is taken again.
_HOLD, _PAUSE = 30.0, 3.0
_DAY = 86_400


def sweep(
    target: Target,
    database: str,
    store: DumpStore | None = None,
    *,
    planned: Callable[[], Iterable[str]] = tuple,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> list[Swept]:
    """Retires data older than the policy's ``grace_seconds``, and deletes what is older than its ``retention_seconds``.

    Args:
        target: the target side.
        database: target database; if it does not exist, its directories from before it was dropped are swept.
        store: the store of its dumps; None keeps all dumps.
        planned: tells the dumps of windows that wait for approval, which are kept.
        dry_run: only report what would be done.
        progress: shows the progress.

    Returns:
        What was retired or deleted, or would be; and what could not be, with its problem.

    Raises:
        Refused: another policy writes the database; or there is something to do, and a load of it is running.
        ReplicationError: it cannot be swept, whoever is at it.
        BadRequest: the policy has, and had, no such database, or the target none, and no directory of it from before a drop.
    """
    sweeper = _Sweeper(target, database.lower(), planned, progress or Silent())
    for removals in sweeper.rounds(store):
        if dry_run:
            sweeper.swept += [removal.swept for removal in removals]
        elif not sweeper.carry_out(removals):
            break
    return sweeper.swept


class _Sweeper:
    def __init__(self, target: Target, database: str, planned: Callable[[], Iterable[str]], progress: Progress) -> None:
        self._target, self._storage, self._database = target, target.storage, database
        self._planned, self._progress = planned, progress
        now, policy = time.time(), target.policy
        self._grace, self._expiry = now - policy.grace_seconds, now - policy.retention_seconds
        self._removals = Removals(self._storage, self._expiry)
        self._undone: frozenset[str] = frozenset()
        self.swept: list[Swept] = []
        found = target.metastore.database(database)
        self._exists, self._state = found is not None and bool(found.locationUri), replica_state(found)
        own = (found.locationUri if found is not None else None) or ""
        defaults = target.default_locations(database, own)
        location = normal(own or defaults[0])
        self._layout, self._journal = Layout(location), Journal(self._storage, location)
        beside = ((paths.parent(one), Layout(one)) for one in (*map(normal, defaults), location))
        self._beside = {layout.dropped_databases: layout for parent, layout in beside if self._storage.holds(parent)}

    def rounds(self, store: DumpStore | None) -> Iterator[list[Removal]]:
        """Removals in two rounds, of which the second is prepared after the first is carried out. Takes no lock."""
        require_own(self._target, self._database, self._state, None if self._exists else store)
        try:
            yield from self._rounds(store)
        except Refused as error:  # no load or policy is in the way, which may be gone the next time
            raise ReplicationError(str(error)) from error

    def _rounds(self, store: DumpStore | None) -> Iterator[list[Removal]]:
        reports = [] if store is None else list(self._reports(store))
        if not self._exists:
            dropped = [*self._dropped(), *(self._dumps(store) if store is not None else ()), *reports]
            if not dropped:
                raise BadRequest(f"the target has no database {self._database!r}")
            yield dropped
            return
        entries = self._journal.entries()
        self._undone = _undone(entries)
        left = old_directories(loads := self._journal.places_of(entries))
        hidden = HiddenData(self._target.metastore, loads)
        expired = [entry for entry in entries if token_time(entry.token) < self._expiry]
        points = [entry for entry in expired if entry.status == "done"]
        # Loads of some tables after the last one, undos of tables, and what loads and undos left unfinished belong to what can be
        # undone to it.
        parts = [entry for entry in expired if entry.status in ("part", "open") and points and entry.token > points[-1].token]
        tokens = {entry.token for entry in expired if entry not in parts}
        live = live_locations(self._target.metastore, self._database)
        recent = {entry for entry in set(left.values()) if not self._is_over(entry)}
        yield self._old_data(left, recent, live)
        needed = Locations(one for one, entry in left.items() if entry.token not in tokens)
        waiting = {entry.token for entry in parts}
        rest = self._unused("retired", self._expired_retired(waiting), live, needed, hidden)
        # The loads after the last one can be undone to it; others are known by what could not be moved away.
        stuck = [one.path for one in self.swept if one.problem]
        kept = [
            *points[-1:],
            *parts,
            *recent,  # whose old data is not looked at yet
            *(entry for place, entry in left.items() if any(paths.is_under(one, place) for one in stuck)),
        ]
        over = [one for entry in expired if entry not in kept for one in (*entry.rest, entry.directory)]
        # An undo to one of which newer journals are gone would say that it is done, and leave what those loads changed.
        rest += [self._no_point(entry) for entry in points[:-1] if entry in kept]
        rest += [self._removals.deletion("journal", directory) for directory in over]
        rest += self._unused("staging", self._staged(), live, needed, hidden)
        temporary = TemporaryFiles(self._target, self._database, self._layout, self._expiry, self._progress)
        rest += [self._removals.deletion("temporary file", file.uri, known=file.size) for file in temporary.found(live)]
        rest += self._dropped()
        if store is not None and self._state.source:
            rest += self._dumps(store)
        yield rest + reports

    def carry_out(self, removals: Iterable[Removal]) -> bool:
        """Carries out the removals that are still due, under the lock, which is released in between.

        Returns:
            False if a load or an undo came in between; the rest is left for the next sweep.
        """
        waiting = deque(removals)
        try:
            while waiting:
                with MetastoreLock(self._target.metastore, self._database, brief=True) as lock:
                    if _undone(self._journal.entries()) != self._undone:
                        _LOG.info("an undo came in between: the rest is left for the next time", extra=about(self._database))
                        return False  # the listings are outdated
                    self._remove(lock, waiting)
                if waiting:
                    time.sleep(_PAUSE)
        except Refused as error:
            if not self.swept:
                raise
            _LOG.info("the rest is left for the next time: %s", error, extra=about(self._database))
            return False
        return True

    def _remove(self, lock: MetastoreLock, waiting: deque[Removal]) -> None:
        metastore, began = self._target.metastore, time.monotonic()
        found = metastore.database(self._database)
        live = live_locations(metastore, self._database) if found is not None else Locations(())
        has_dumps = any(removal.swept.what == "dump" for removal in waiting)
        in_use = InUse(live, replica_state(found), self._planned_dumps() if has_dumps else frozenset())
        end = time.monotonic() + max(_HOLD, time.monotonic() - began)
        while waiting:
            removal = waiting.popleft()
            if removal.is_due(in_use):
                lock.check()
                done = self._carried_out(removal)
                if done is None:
                    waiting.appendleft(removal)
                else:
                    self.swept.append(done)
                    if done.problem and done.what == "journal":  # the newer ones lead back to it
                        later = [one for one in waiting if one.swept.what != "journal"]
                        waiting.clear()
                        waiting.extend(later)
            if time.monotonic() > end:
                break

    def _carried_out(self, removal: Removal) -> Swept | None:
        """What was done, None where there is more to do; what cannot be removed, e.g. since it has snapshots, is left alone."""
        try:
            size = removal.carry_out()
            return None if size is None else replace(removal.swept, size=size)
        except Unreachable:
            raise
        except ReplicationError as error:
            _LOG.warning("%s cannot be removed: %s", removal.swept.path, error, extra=about(self._database))
            return replace(removal.swept, problem=str(error))

    def _no_point(self, entry: Entry) -> Removal:
        """Keeps the journal of a load as one that no undo leads to."""
        moved = Swept("journal", entry.directory, self._journal.directory(entry, "former"), 0)

        def carry_out() -> int:
            self._journal.mark(entry, "former")
            return 0

        return Removal(moved, lambda _: self._storage.exists(entry.directory), carry_out)

    def _old_data(self, left: dict[str, Entry], recent: Collection[Entry], live: Locations) -> list[Removal]:
        found: list[Removal] = []
        old = [(place, entry) for place, entry in left.items() if entry not in recent and self._layout.holds(place)]
        for place, entry in self._progress.over(old, "old directories"):
            with self._removals.told(found, "old data", place):
                if self._storage.exists(place):
                    for part in live.unused_parts(self._storage, place):
                        retired, mark = self._layout.retired(entry.token, part), self._layout.half_retired(entry.token, part)
                        found.append(self._removals.move("old data", part, retired, mark))
        return found

    def _is_over(self, entry: Entry) -> bool:
        """Whether a load or its undo ended before the grace time; object stores know of files only when they were written."""
        if entry.time >= self._grace or entry.time > token_time(entry.token):
            return entry.time < self._grace
        return all(file.modified < self._grace for file in self._storage.files(entry.directory, hidden=True))

    def _expired_retired(self, waiting: Collection[str]) -> Iterator[str]:
        """Directories of retired data, but for loads' that wait to be undone with what is older, and dropped databases'."""
        for status in self._storage.ls(self._layout.retired_root):
            name = paths.name(status.uri)
            since = token_time(name) if is_token(name) else status.modified
            if since < self._expiry and name not in waiting and not is_dropped_database(name):
                yield status.uri

    def _staged(self) -> Iterator[str]:
        for root in self._layout.staging_roots:
            for status in self._storage.ls(root):
                if is_staging(status.uri):
                    yield status.uri

    def _dropped(self) -> list[Removal]:
        """Directories of this database from before a drop; one without a time in its name is renamed, and kept from now on."""
        found: list[Removal] = []
        for directory, layout in self._beside.items():
            for uri in [status.uri for status in self._storage.ls(directory) if paths.is_usable(status.uri)]:
                dropped = layout.dropped(uri)
                if dropped is None:
                    continue
                with self._removals.told(found, "dropped database", uri):
                    if dropped.since is None:
                        found.append(self._removals.move("dropped database", uri, layout.dropped_database(dropped.evid)))
                    elif dropped.since < self._expiry and not databases_within(self._target.metastore, uri):
                        found.append(self._removals.deletion("dropped database", uri, unused=True))
        return found

    def _planned_dumps(self) -> frozenset[str] | None:
        """The dumps of windows that wait for approval; None where this account may not read all plans, as another policy's."""
        try:
            return frozenset(self._planned())
        except Denied as error:
            _LOG.warning("all dumps are kept, since one of them may wait for approval: %s", error, extra=about(self._database))
            return None

    def _dumps(self, store: DumpStore) -> Iterator[Removal]:
        """The policy's dumps that are loaded, or of ours that is gone, and what interrupted dumps left long ago."""
        names = tuple(source_names(self._target, self._database, self._state))
        ours = self._database in self._target.policy.databases.values()
        gone_from = "" if ours else self._target.source_identity or "not known"
        old = OldDumps(self._target.policy, self._database, names, store, self._expiry, gone_from)
        return old.removals(self._state, self._planned_dumps)

    def _reports(self, store: DumpStore) -> Iterator[Removal]:
        """Reports of loads, and records, that are kept no longer."""
        days = self._target.policy.keep_reports_days
        if days is not None:
            removals, before = Removals(store.storage, self._expiry), time.time() - days * _DAY
            for file in RecordStore.of(self._target.policy, store, self._database).expired(before):
                with passed_over_if_closed("the reports", file.uri):
                    store.storage.ls(file.uri)
                    yield removals.deletion("report", file.uri, known=None if file.is_dir else file.size)

    def _unused(
        self, what: What, directories: Iterable[str], live: Locations, needed: Locations, hidden: HiddenData
    ) -> list[Removal]:
        """The parts of directories that no location points at and no undo needs."""
        found: list[Removal] = []
        for directory in directories:
            token = paths.name(directory)
            idle = not is_token(token)  # only the name of a load says how old all is that it names
            with self._removals.told(found, what, directory):
                free = live.unused_parts(self._storage, directory) if not idle or self._removals.is_idle(directory) else ()
                for part in (part for one in free for part in needed.unused_parts(self._storage, one)):
                    hidden.require_unused(what, directory)
                    mark = "" if idle else self._layout.half_retired(token, part)
                    found.append(self._removals.deletion(what, part, unused=True, idle=idle, mark=mark))
        return found


def _undone(entries: Iterable[Entry]) -> frozenset[str]:
    return frozenset(entry.token for entry in entries if entry.status == "undone")
