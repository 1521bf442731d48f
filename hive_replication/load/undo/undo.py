"""Undo: restores the state of a replica at the end of an earlier load, as long as the journals and old data are kept.

Loads are reversed from the newest to the oldest, lane by lane. What is as before already is left alone, so running undo again
after a crash finishes it. Nothing is deleted: data that the undone loads had put into use becomes old data.

The state says from the beginning on that all is taken back, and the journal that the loads are not done. So where an undo is left
unfinished, and released, their events are loaded once more, as after a load that was killed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, replace

from hive_replication.errors import BadRequest, Refused
from hive_replication.load.journal.journal import Entry, Journal, LaneFile
from hive_replication.load.journal.restored import require_unrestored, without_lost
from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.held_reasons import RELEASED_REASON, UNDONE_REASON
from hive_replication.load.replica.name_mapping import object_name
from hive_replication.load.replica.ownership import refuse_undone_since
from hive_replication.load.replica.parameter_lock import parameter_lock
from hive_replication.load.replica.state import ReplicaState, database_with_state, replica_state
from hive_replication.load.replica.target import Target, refuse_others_replica
from hive_replication.load.undo.obstacles import Obstacles
from hive_replication.load.undo.old_data import OldDataLocator
from hive_replication.load.undo.repaired_since import RepairedTable, WithRepairs, with_repairs
from hive_replication.load.undo.reverse_lane import STAYS, LaneReverser
from hive_replication.metastore.lock import MetastoreLock
from hive_replication.metastore.types import Database
from hive_replication.progress import Progress, Silent
from hive_replication.storage import paths

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class UndoneStep:
    """An operation that an undo reverses, or leaves."""

    evid: int
    kind: str
    name: str


@dataclass(frozen=True, slots=True)
class Undo:
    """What an undo did, or would do.

    Args:
        database: target database.
        to_evid: the event id to which it was undone.
        tables: the tables that were undone; () for all.
        loads: number of reversed loads.
        steps: the reversed operations, newest first.
        left: operations that are not taken back, newest first.
        repaired: tables that were repaired since.
    """

    database: str
    to_evid: int
    tables: tuple[str, ...]
    loads: int
    steps: tuple[UndoneStep, ...]
    left: tuple[UndoneStep, ...] = ()
    repaired: tuple[RepairedTable, ...] = ()


def undo(
    target: Target,
    database: str,
    table: str | None,
    evid: int,
    *,
    dry_run: bool = False,
    progress: Progress | None = None,
) -> Undo:
    """Restores an earlier state; it stays until :func:`release`, a repair of the table, or a rebuild of the database.

    Args:
        target: the target side.
        database: target database.
        table: one table (with all tables that renames joined to it since), or None for all.
        evid: event id at which a load of the database ended.
        dry_run: only report what would be done.
        progress: shows the progress.

    Raises:
        BadRequest: no load ended there (the message lists the nearest), its journal is not kept any more, or there is no such
            replica.
        Refused: old data is not kept any more, a replica went away without a load, a table or partition of the target's users
            has a name that comes back, another policy writes the database, a load of it runs or was interrupted, or the
            target's metastore was restored from an older state.
    """
    with MetastoreLock(target.metastore, database) as lock:
        found = target.metastore.database(database)
        state = replica_state(found)
        if found is None or state.applied is None:
            raise BadRequest(f"the target database {database!r} is no replica with anything to undo")
        refuse_others_replica(target, database, state)
        require_unrestored(target.storage, found.locationUri or "", database, state)
        if table is not None and state.checkpoint:  # what is loaded next would bring the table back that is undone
            raise Refused(
                f"the load of {state.checkpoint} into {database!r} was interrupted, and is done before whatever is loaded next: "
                "load a window and undo then, or undo the whole database"
            )
        work = _Undo(target, database, found, state, lock.check)
        return work.run(table, evid, dry_run=dry_run, progress=progress or Silent())


def release(target: Target, database: str, table: str | None = None, *, stood: ReplicaState | None = None) -> bool:
    """Ends an undo: later events are loaded again.

    Args:
        target: the target side.
        database: target database.
        table: one table, or None for the database and all its tables.
        stood: of a repair, where the target stood when it was asked for: an undo since then is not ended.

    Returns:
        Whether anything was undone.

    Raises:
        Refused: another policy writes the database, a load of it is running, or it was undone since its repair was asked for.
    """
    with MetastoreLock(target.metastore, database) as lock, parameter_lock(target.metastore, database):
        found = target.metastore.database(database)
        state = replica_state(found)
        refuse_others_replica(target, database, state)
        if stood is not None:
            refuse_undone_since(state, stood, database, table)
        released = state.released(table)
        if found is None or released == state:
            return False
        _write(target, found, released, lock.check)
        return True


class _Undo:
    def __init__(self, target: Target, database: str, found: Database, state: ReplicaState, check: Callable[[], None]) -> None:
        self._target, self._database, self._found, self._state, self._check = target, database, found, state, check
        self._location = (found.locationUri or "").rstrip("/")
        self._journal = Journal(target.storage, self._location)

    def run(self, table: str | None, evid: int, *, dry_run: bool, progress: Progress) -> Undo:
        entries = without_lost(self._journal, self._state, dry=dry_run)
        point, before = self._point(entries, evid)
        newer = self._journal.lanes_of(one for one in entries if one.token > point.token and one.status != "undone")
        read = {entry for entry, _ in newer}
        others = self._journal.places_of(one for one in entries if one not in read)  # no image of theirs is in memory
        names = None if table is None else _joined(newer, table)
        chosen = [
            (entry, [lane for lane in lanes if not lane.undone and (names is None or names & set(lane.record.names))])
            for entry, lanes in reversed(newer)
        ]
        locator = OldDataLocator(self._target.storage, self._location, [*others, *newer])
        obstacles = Obstacles(self._target, self._database, self._state, locator)
        if table is not None:
            obstacles.require_known(table, (lane.record for _, lanes in newer for lane in lanes))
        obstacles.require_no_transactions(chosen)
        found = with_repairs(self._journal, chosen, obstacles)
        chosen = found.chosen
        obstacles.require_none(chosen)
        if not dry_run:
            begun = self._begun(chosen, self._wanted(point, before, entries, names, found), names)
            self._carry_out(begun, locator, names, found.partial, progress)
        number, steps = (
            sum(bool(lanes) for _, lanes in chosen),
            [one for _, lanes in chosen for one in _steps(self._database, lanes)],
        )
        back, left = (tuple(one for one in steps if (one.kind in STAYS) == stays) for stays in (False, True))
        return Undo(self._database, evid, tuple(sorted(names or ())), number, back, left, found.tables)

    def _point(self, entries: list[Entry], evid: int) -> tuple[Entry, ReplicaState]:
        """The load to undo to, and the state after it; none whose journal, or that of a later one, is deleted in part."""
        deleted = self._journal.newest_in_part(entries)
        points = [entry for entry in entries if entry.status == "done" and entry.token > deleted]
        found = [entry for entry in points if entry.to_evid == evid]
        if found and (state := self._journal.state(found[-1])):
            return found[-1], state
        near = sorted({entry.to_evid for entry in points}, key=lambda one: abs(one - evid))[:_SHOWN]
        known = f"the nearest that can be undone to: {', '.join(map(str, sorted(near)))}" if near else "no load is kept any more"
        raise BadRequest(
            f"no load of the target database {self._database!r} that is still kept ended at event {evid} since its "
            f"creation there; {known}"
        )

    def _wanted(
        self, point: Entry, before: ReplicaState, entries: Iterable[Entry], names: Iterable[str] | None, repaired: WithRepairs
    ) -> ReplicaState:
        """The state after the undo; ``before`` is the one after the load to which it leads.

        A table that another undo took back further stays where that one left it: what was loaded since leads back to there.
        """
        stay = repaired.stay
        later = self._target.storage.threads.map(self._journal.state, [one for one in entries if one.token > point.token])
        lower: dict[str, int] = {}
        for state in (self._state, *filter(None, later)):
            for name, evid in _taken_back(state).items():
                if not covers(evid, before.position(name)):
                    lower[name] = min(evid, lower.get(name, evid))
        lower = {name: evid for name, evid in (lower | repaired.unknown).items() if name not in stay}
        if names is None:
            state = _held(replace(before, undone=point.to_evid, policy=self._state.policy), lower, point.to_evid)
            for name, evid in stay.items():
                state = state.at_position(name, evid)
            return state
        held = {name: before.position(name) for name in names if name not in lower} | stay
        state = _held(self._state, held, point.to_evid, exact=True)
        return _held(state, {name: evid for name, evid in lower.items() if name in names}, point.to_evid)

    def _begun(
        self, chosen: list[tuple[Entry, list[LaneFile]]], wanted: ReplicaState, names: set[str] | None
    ) -> list[tuple[Entry, list[LaneFile]]]:
        """Writes the state; from here on no load continues from one that is neither the old nor the new one.

        Nor does a recovery that has compared the tables before.
        """
        if names is None:
            chosen = [self._reopened(entry, lanes) for entry, lanes in chosen]
        elif wanted != self._state:  # a later undo asks how far this one went
            trace = self._journal.begin(0, 0)
            trace.state(wanted)
            trace.done(None)
        self._write(replace(wanted, recovery=""))
        return chosen

    def _reopened(self, entry: Entry, lanes: list[LaneFile]) -> tuple[Entry, list[LaneFile]]:
        """A load that is done no longer: the database may stand anywhere in it."""
        if entry.status != "done":
            return entry, lanes
        opened = self._journal.mark(entry, "open")
        return opened, [replace(lane, uri=f"{opened.directory}/{paths.name(lane.uri)}") for lane in lanes]

    def _carry_out(
        self,
        chosen: list[tuple[Entry, list[LaneFile]]],
        locator: OldDataLocator,
        names: set[str] | None,
        partial: Collection[str],
        progress: Progress,
    ) -> None:
        source = self._state.source
        for entry, lanes in progress.over(chosen, "loads taken back"):
            for lane in reversed(lanes):  # a table may have several, each with the images of its time
                LaneReverser(self._target, self._database, source, lane.record, entry.token, locator, self._check).run()
                self._journal.mark_undone(lane)
            if names is None and (lanes or entry.status != "part"):  # without lanes it may tell of an undo
                self._restore_database(entry)
                self._journal.mark(entry, "part" if entry.token in partial else "undone")

    def _restore_database(self, entry: Entry) -> None:
        image = self._journal.database(entry)
        if image is not None:
            with parameter_lock(self._target.metastore, self._database):
                current = self._current()
                self._check()
                self._target.metastore.alter_database(
                    self._database, database_with_state(current, replica_state(current), image), current
                )

    def _current(self) -> Database:
        return self._target.metastore.database(self._database) or self._found

    def _write(self, state: ReplicaState) -> None:
        with parameter_lock(self._target.metastore, self._database):
            _write(self._target, self._current(), state, self._check)


def _write(target: Target, current: Database, state: ReplicaState, check: Callable[[], None]) -> None:
    check()
    target.metastore.alter_database(current.name, database_with_state(current, state), current)


def _taken_back(state: ReplicaState) -> dict[str, int]:
    """Where tables stand that were undone by request, and not loaded since; 0 where nobody knows."""
    reasons = (UNDONE_REASON, RELEASED_REASON)
    return {name: evid for name, evid in state.at.items() if state.held.get(name, "").startswith(reasons)}


def _held(state: ReplicaState, names: Mapping[str, int], point: int, *, exact: bool = False) -> ReplicaState:
    """A state in which tables wait at event ids, as an undo leaves them: to a point, or to there where one took them further."""
    for name, evid in sorted(names.items()):
        state = state.quarantine(name, evid, f"{UNDONE_REASON}{point if exact or not evid else evid} by request")
    return state


def _joined(loads: Iterable[tuple[Entry, list[LaneFile]]], table: str) -> set[str]:
    """The table and all tables that lanes joined to it."""
    names, before = {table}, set[str]()
    lanes = [set(lane.record.names) for _, lanes in loads for lane in lanes]
    while names != before:
        before = set(names)
        for lane in lanes:
            names |= lane if lane & names else set()
    return names


def _steps(database: str, lanes: Iterable[LaneFile]) -> Iterable[UndoneStep]:
    found: list[UndoneStep] = []
    for lane in lanes:
        for step in lane.record.steps:
            shown = object_name(database, step.table, ", ".join(step.partitions[:_SHOWN]))
            more = len(step.partitions) - _SHOWN
            name = f"{shown}, and {more} more" if more > 0 else shown
            found.append(UndoneStep(step.evid, step.kind, f"{name} -> {step.new_name}" if step.new_name else name))
    found.sort(key=lambda step: step.evid)
    return reversed(found)
