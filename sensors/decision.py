"""What to run next: a pure function of where the source's log, the replicas and earlier runs stand (design: Dagster, sensor)."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from hive_replication.load.hold import CATCH_UP_DELAY, delay
from repl_assets.keys import Window

#: ``plan``: the dump and plan of a window that is to be approved.
Kind = Literal["window", "catch-up", "plan"]

RETRY_DELAY = (10.0, 600.0)  # seconds after the first failure, doubled by each, up to the second figure


@dataclass(frozen=True, slots=True)
class PastRun:
    """A run that is over; whether it did its work is seen at the target.

    Args:
        run_id: its id.
        kind: what it was for.
        window: what it was to bring.
        attempt: 1 for the first run of this window.
        ended: seconds since the epoch.
    """

    run_id: str
    kind: Kind
    window: Window
    attempt: int
    ended: float


@dataclass(frozen=True, slots=True)
class Replica:
    """One database of the policy at this moment.

    Args:
        database: name at the source.
        applied: event id where the target stands; None without a finished bootstrap.
        held: lowest event id that a held lane stands at, or None.
        first_event: the first event after ``applied`` that belongs to the policy; None if there is none up to ``scanned``.
        scanned: event id up to which the log is known; at least ``applied``.
        busy: id of a run that works on it, or "".
        last: its last window.
        last_catch_up: its last catch-up run.
        priority: of its runs; those of the highest are asked for first.
        next_attempt: when held lanes are to be tried again, seconds since the epoch; 0 where the target does not know.
        since: when what it has to move for came: the commit of its first event, else when that was first seen.
    """

    database: str
    applied: int | None
    held: int | None = None
    first_event: int | None = None
    scanned: int = 0
    busy: str = ""
    last: PastRun | None = None
    last_catch_up: PastRun | None = None
    priority: int = 0
    next_attempt: float = 0.0
    since: float = 0.0

    def lost(self, current: int) -> bool:
        """Whether only a bootstrap helps: no replica, or one ahead of the source's log (its metastore was restored)."""
        return self.applied is None or self.applied > current

    def moves(self, current: int) -> bool:
        """Whether there is something to bring."""
        return self.lost(current) or self.first_event is not None

    def unfinished(self, current: int) -> PastRun | None:
        """The last window, if what it was to bring is not there: it failed, or some of its bootstrap did."""
        last = self.last
        if last is None or (last.window.start is None) != self.lost(current):
            return None
        return last if self.lost(current) or (self.applied or 0) < last.window.end else None


@dataclass(frozen=True, slots=True)
class Start:
    """A run to ask for."""

    kind: Kind
    window: Window
    attempt: int
    databases: tuple[str, ...]
    after: str = ""  # the run that it follows; tells it from an equal one at another time
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Decision:
    """Runs to ask for now, and why the other databases have none.

    Args:
        starts: the runs.
        waiting: reasons, one for each database that waits for a run or for a delay to end.
        settled: whether nothing can be due before the source's id changes.
        scheduled: by database that waits for the schedule, since when.
    """

    starts: tuple[Start, ...]
    waiting: tuple[str, ...]
    settled: bool
    scheduled: Mapping[str, float] = field(default_factory=dict[str, float])


def needs_log(replica: Replica, current: int) -> bool:
    """Whether the log has to be read to know if a database has to move."""
    if replica.busy or replica.lost(current) or replica.unfinished(current):
        return False
    return replica.first_event is None and replica.scanned < current


def decide(now: float, current: int, replicas: Sequence[Replica], max_events: int, due: float = math.inf) -> Decision:
    """Decides what to run.

    A window that did not get through comes again, the same one, until it does; its database gets no other before. New events
    of several databases share one window of the source's log. A held lane gets catch-up runs of its own, with growing delay.

    Args:
        now: seconds since the epoch.
        current: the source's newest event id.
        replicas: the policy's databases that exist at the source or the target.
        max_events: most events of a new window.
        due: the schedule's latest time, seconds since the epoch: what came before it is brought now, all else at a later one.
    """
    starts: list[Start] = []
    waiting: list[str] = []
    fresh: list[Replica] = []
    for replica in replicas:
        if replica.busy:
            waiting.append(f"{replica.database}: run {replica.busy[:8]} is under way")
        elif failed := replica.unfinished(current):
            _again(now, replica, failed, failed.window, RETRY_DELAY, starts, waiting)
        elif replica.held is not None and not replica.lost(current) and _catch_up_due(now, replica, starts, waiting):
            continue
        else:
            fresh.append(replica)
    scheduled = {replica.database: replica.since for replica in fresh if replica.moves(current) and replica.since >= due}
    fresh = [replica for replica in fresh if replica.database not in scheduled]
    starts += _first_windows(fresh, current)
    starts += _next_windows(fresh, current, max_events)
    priorities = {replica.database: replica.priority for replica in replicas}
    starts = [replace(start, priority=priorities[start.databases[0]]) for start in starts]
    settled = not starts and not waiting and not scheduled and all(replica.scanned >= current for replica in replicas)
    return Decision(tuple(merged(starts)), tuple(waiting), settled, scheduled)


def _again(
    now: float,
    replica: Replica,
    past: PastRun,
    window: Window,
    limits: tuple[float, float],
    starts: list[Start],
    waiting: list[str],
) -> bool:
    due = past.ended + delay(past.attempt, limits)
    if now < due:
        waiting.append(f"{replica.database}: attempt {past.attempt + 1} of {past.kind} {window} in {due - now:.0f} s")
        return False
    starts.append(Start(past.kind, window, past.attempt + 1, (replica.database,), past.run_id))
    return True


def _catch_up_due(now: float, replica: Replica, starts: list[Start], waiting: list[str]) -> bool:
    """Catches up from the lowest held event to where the others stand; loads pass over what is applied already."""
    window, past = Window(replica.held, replica.applied or 0), replica.last_catch_up
    if now < replica.next_attempt:
        waiting.append(f"{replica.database}: held tables are tried again in {replica.next_attempt - now:.0f} s")
        return False
    if past is not None and past.window.start == replica.held:
        return _again(now, replica, past, window, CATCH_UP_DELAY, starts, waiting)
    starts.append(Start("catch-up", window, 1, (replica.database,), _last_run(replica)))
    return True


def _first_windows(fresh: Iterable[Replica], current: int) -> Iterable[Start]:
    for replica in fresh:
        if replica.lost(current):
            yield Start("window", Window(None, current), 1, (replica.database,), _last_run(replica))


def _next_windows(fresh: Iterable[Replica], current: int, max_events: int) -> Iterable[Start]:
    """One window for all databases with new events; it may begin with events that belong to none of them."""
    moving = [
        (replica, replica.applied, replica.first_event)
        for replica in fresh
        if replica.applied is not None and replica.first_event is not None and not replica.lost(current)
    ]
    if not moving:
        return
    start = min(applied for _, applied, _ in moving)
    end = min(current, min(first for _, _, first in moving) - 1 + max_events)
    for replica, _, first in moving:
        if first <= end:
            yield Start("window", Window(start, end), 1, (replica.database,), _last_run(replica))


def _last_run(replica: Replica) -> str:
    runs = [run for run in (replica.last, replica.last_catch_up) if run]
    return max(runs, key=lambda run: run.ended).run_id if runs else ""


def merged(starts: Iterable[Start]) -> Iterable[Start]:
    """One run for all databases of the same window, attempt and priority; the highest priority first."""
    groups: defaultdict[tuple[Kind, Window, int, int], list[Start]] = defaultdict(list)
    for start in sorted(starts, key=lambda start: -start.priority):
        groups[start.kind, start.window, start.attempt, start.priority].append(start)
    for (kind, window, attempt, priority), group in groups.items():
        databases = tuple(database for start in group for database in start.databases)
        yield Start(kind, window, attempt, databases, max(start.after for start in group), priority)
