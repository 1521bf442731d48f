"""Decides what to run next: a pure function of the source's log, the replicas and earlier runs (design: Dagster, sensor)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from hive_replication.load.replica.held_retries import CATCH_UP_DELAY, delay, wait_left
from repl_assets.catalog.keys import Window
from sensors.notification_log.runs import Decision, PastRun, Start, merged

MANY_EVENTS = 200  # of one database: it gets a run of its own, for which no other database waits
#: Attempts that databases share, then each is alone: a step that kills its process, e.g. for want of memory, stops no other one.
TOGETHER = 2
RETRY_DELAY = (10.0, 600.0)  # seconds after the first failure, doubled by each further one, up to the second figure


@dataclass(frozen=True, slots=True)
class Replica:
    """One database of the policy as it is now.

    Args:
        database: name at the source.
        applied: last applied event id of the target; None without a finished bootstrap.
        held: lowest applied event id of its held lanes, or None.
        first_event: the first event after ``applied`` that belongs to the policy; None if there is none up to ``scanned``.
        scanned: event id up to which the log was read; at least ``applied``.
        busy: id of an unfinished run of this database, or "".
        last: its last window.
        last_catch_up: its last catch-up run.
        priority: of its runs; those of the highest are requested first.
        next_attempt: when held lanes are retried, seconds since the epoch; 0 if the target has no such time.
        since: since when there is work: the commit time of its first event, else when a tick first saw it.
        at_once: whether nothing failed of a held table, which was released after an undo, or passed by a window. It is caught
            up without the delay of failed runs.
        changed: whether a window without events is due, too: the policy takes other tables than the replica was made with, or a
            load of objects was killed, which the next one does first.
        events: of the database from the first one on, in the part of the log that was read.
        loading: end of the window that the unfinished run loads; None if there is none, or it is a bootstrap.
        alone: whether no other database shares its runs: a repair that is to begin may keep its load waiting.
        to_approve: whether its catch-up, which is due, may bring what nobody has approved: it is a window then, which is planned
            and approved first.
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
    at_once: bool = False
    changed: bool = False
    events: int = 0
    loading: int | None = None
    alone: bool = False
    to_approve: bool = False

    @property
    def stands(self) -> int:
        """Event id after which the log is read: where the database stands, or is to stand once its run has ended."""
        return (self.applied or 0) if self.loading is None else self.loading

    @property
    def waits_since(self) -> float:
        """Since when it waits for a run: for its work, or from the end of its last run if that left some."""
        return max(self.since, *(run.ended for run in (self.last, self.last_catch_up) if run), 0.0)

    def lost(self, current: int) -> bool:
        """Whether it needs a bootstrap: no replica, or one ahead of the source's log (its metastore was restored)."""
        return self.applied is None or self.applied > current

    def has_work(self, current: int) -> bool:
        """Whether there is something to load."""
        return self.lost(current) or self.first_event is not None

    @property
    def catch_up(self) -> Window:
        """From its lowest held event to where it stands."""
        return Window(self.held, self.applied or 0)

    def is_due(self, window: Window) -> bool:
        """Whether a window is to be loaded that brings no new events: it changes the policy, or catches up with an approval."""
        here = Window(self.applied, self.applied or 0)  # it is to change no more than that
        return (self.changed and window == here) or (self.to_approve and window == self.catch_up)

    def unfinished(self, current: int) -> PastRun | None:
        """The last window, if the target does not have all of it: the run, or part of its bootstrap, failed.

        One that ends after the log is of another log, which the source had before.
        """
        last = self.last
        if last is None or (last.window.start is None) != self.lost(current) or last.window.end > current:
            return None
        return last if self.lost(current) or (self.applied or 0) < last.window.end or self.is_due(last.window) else None


def needs_log(replica: Replica, current: int) -> bool:
    """Whether the log has to be read to know if a database has work, or will have when its run has ended."""
    return replica.first_event is None and replica.scanned < current and _is_read(replica, current)


def is_counted(replica: Replica, current: int, most: int) -> bool:
    """Whether the log is read on near its end for a database that is known to have work: it may have many events by now.

    Args:
        replica: the database.
        current: the source's newest event id.
        most: events of which that is near.
    """
    return 0 < replica.events <= MANY_EVENTS and current - most <= replica.scanned < current and _is_read(replica, current)


def _is_read(replica: Replica, current: int) -> bool:
    if replica.busy:
        return replica.loading is not None
    return not replica.lost(current) and not replica.unfinished(current)


def decide(now: float, current: int, replicas: Sequence[Replica], max_events: int, due: float = math.inf) -> Decision:
    """Decides what to run.

    A window that failed is retried unchanged until it succeeds; its database gets no other window before. New events of several
    databases share one window of the source's log, unless there are many of one. Held lanes get catch-up runs of their own, with
    growing delay.

    Args:
        now: seconds since the epoch.
        current: the source's newest event id.
        replicas: the policy's databases that exist at the source or the target.
        max_events: most events of a new window.
        due: the schedule's latest time, seconds since the epoch: work from before it is due now, later work at the next time.
    """
    starts: list[Start] = []
    waiting: list[str] = []
    fresh: list[Replica] = []
    for replica in replicas:
        if replica.busy:
            waiting.append(f"{replica.database}: run {replica.busy[:8]} is in progress")
        elif failed := replica.unfinished(current):
            _retry(now, replica, failed, failed.window, RETRY_DELAY, starts, waiting)
        elif replica.held is not None and not replica.lost(current) and _catch_up_due(now, replica, starts, waiting):
            continue
        else:
            fresh.append(replica)
    scheduled = {replica.database: replica.since for replica in fresh if replica.has_work(current) and replica.since >= due}
    fresh = [replica for replica in fresh if replica.database not in scheduled]
    starts += _first_windows(fresh, current)
    starts += _next_windows(fresh, current, max_events)
    by_name = {replica.database: replica for replica in replicas}
    starts = [
        replace(start, priority=one.priority, since=one.waits_since, alone=start.alone or one.alone)
        for start in starts
        if (one := by_name[start.databases[0]])
    ]
    settled = not starts and not waiting and not scheduled and all(replica.scanned >= current for replica in replicas)
    return Decision(tuple(merged(starts)), tuple(waiting), settled, scheduled)


def _retry(
    now: float,
    replica: Replica,
    past: PastRun,
    window: Window,
    limits: tuple[float, float],
    starts: list[Start],
    waiting: list[str],
) -> bool:
    if rest := wait_left(past.ended + delay(past.attempt, limits), limits, now):
        waiting.append(f"{replica.database}: attempt {past.attempt + 1} of {past.kind} {window} in {rest:.0f} s")
        return False
    attempt = past.attempt + 1
    starts.append(Start(past.kind, window, attempt, (replica.database,), past.run_id, alone=attempt > TOGETHER))
    return True


def _catch_up_due(now: float, replica: Replica, starts: list[Start], waiting: list[str]) -> bool:
    """A run from the lowest held event to the applied id; the load skips what is applied already.

    It may change neither of them and succeed, and drop out of the history: its run key is told from others by the time. One that
    needs an approval is a window, whose plan has the same delay: other windows are planned meanwhile.
    """
    window, past = replica.catch_up, replica.last_catch_up
    if replica.at_once:
        past = replace(past, attempt=1) if past else None
    elif rest := wait_left(replica.next_attempt, CATCH_UP_DELAY, now):
        waiting.append(f"{replica.database}: held tables are retried in {rest:.0f} s")
        return False
    if past is not None and past.window.start == replica.held:
        if not _retry(now, replica, past, window, CATCH_UP_DELAY, starts, waiting):
            return False
    else:
        starts.append(Start("catch-up", window, 1, (replica.database,)))
    starts[-1] = replace(starts[-1], kind="window" if replica.to_approve else "catch-up", after=f"{int(now):x}")
    return True


def _first_windows(fresh: Iterable[Replica], current: int) -> Iterable[Start]:
    for replica in fresh:
        if replica.lost(current):
            yield Start("window", Window(None, current), 1, (replica.database,), _last_run(replica))


def _next_windows(fresh: Iterable[Replica], current: int, max_events: int) -> Iterable[Start]:
    """A window of its own for each database with many events; one for all others, another one for those that are far behind.

    A window ends ``max_events`` of the log after the first event, or as far as a database is known to have few events of its own.
    One that stands at the log's end, and has work all the same, as after a change of the policy, has one without events.
    """
    level: list[tuple[Replica, int, int]] = []
    behind: list[tuple[Replica, int, int]] = []
    for replica in fresh:
        applied, first = replica.applied, replica.first_event
        if applied is None or first is None or replica.lost(current):
            continue
        if applied == current:
            yield Start("window", Window(applied, applied), 1, (replica.database,), _last_run(replica))
            continue
        few = 0 < replica.events <= min(MANY_EVENTS, max_events)
        end = max(first - 1 + max_events, replica.scanned if few else 0)
        if replica.events > MANY_EVENTS:
            yield Start("window", Window(applied, min(current, end)), 1, (replica.database,), _last_run(replica), alone=True)
        else:
            (behind if end < current else level).append((replica, applied, first))
    yield from _shared(level, current)
    yield from _shared(behind, min((first for _, _, first in behind), default=0) - 1 + max_events)


def _shared(ready: Sequence[tuple[Replica, int, int]], end: int) -> Iterable[Start]:
    """One window for all, to an event id; it may start with events that belong to none of them."""
    start = min((applied for _, applied, _ in ready), default=0)
    for replica, _, first in ready:
        if first <= end:
            yield Start("window", Window(start, end), 1, (replica.database,), _last_run(replica))


def _last_run(replica: Replica) -> str:
    runs = [run for run in (replica.last, replica.last_catch_up) if run]
    return max(runs, key=lambda run: run.ended).run_id if runs else ""
