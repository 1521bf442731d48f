"""The decision where windows need an approval (pure): a window is planned first, and loaded once it is approved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from hive_replication.plans.approval import PlannedWindow
from repl_assets.catalog.keys import Window
from sensors.notification_log.decision import RETRY_DELAY, TOGETHER, Replica, delay, wait_left
from sensors.notification_log.runs import Decision, PastRun, Start, merged


def without_catch_ups(replicas: Sequence[Replica]) -> list[Replica]:
    """Held tables wait for the window that brings a change of the policy: a catch-up would bring it unapproved."""
    return [replace(one, held=None) if one.changed else one for one in replicas]


def pending(replica: Replica, current: int, planned: PlannedWindow | None) -> PlannedWindow | None:
    """The planned window, unless it is loaded already or no longer fits the replica."""
    if planned is None:
        return None
    window = Window.parse(planned.window)
    if window.end > current:  # of another log, which the source had before
        return None
    if replica.lost(current) or window.start is None:
        return planned if replica.lost(current) and window.start is None else None
    applied = replica.applied or 0
    return planned if window.end > applied or replica.is_due(window) else None


def with_approval(
    now: float,
    decision: Decision,
    planned: Mapping[str, PlannedWindow | None],
    last_plans: Mapping[str, PastRun],
    applied: Mapping[str, int | None],
) -> Decision:
    """Replaces each window by its plan, the wait for its approval, or its load; what was approved before is caught up without.

    Catch-ups wait while a recovery does: it is of the replica as it was compared, which they change.

    Args:
        now: seconds since the epoch.
        decision: what would run without approval.
        planned: the pending window of each database.
        last_plans: the last run that planned a window, by database.
        applied: where their replicas stand.
    """
    waiting = list(decision.waiting)
    starts = [
        step
        for start in decision.starts
        for name in start.databases
        for step in _steps(
            now, replace(start, databases=(name,)), planned.get(name), last_plans.get(name), applied.get(name) or 0, waiting
        )
    ]
    return replace(decision, starts=tuple(merged(starts)), waiting=tuple(waiting))


def _has_failed(last: PastRun, window: Window, applied: int) -> bool:
    """Whether the last plan was of a window that has yet to be loaded, and is no longer there.

    Where a window of new events begins tells nothing: there stands one of the databases that share it, for days perhaps.
    """
    if window.start is None or last.window.start is None:
        return window.start == last.window.start
    return last.window.end > applied if window.end > applied else last.window.start == window.start


def _steps(
    now: float, start: Start, planned: PlannedWindow | None, last: PastRun | None, applied: int, waiting: list[str]
) -> Iterator[Start]:
    (database,) = start.databases
    if start.kind == "catch-up" and (planned is None or planned.kind == "incremental"):
        yield start
    elif planned is None:
        failed = last if last is not None and _has_failed(last, start.window, applied) else None
        due = failed.ended + delay(failed.attempt, RETRY_DELAY) if failed else now
        if rest := wait_left(due, RETRY_DELAY, now):
            waiting.append(f"{database}: the next attempt to plan a window in {rest:.0f} s")
            return
        attempt, after = (failed.attempt + 1 if failed else 1), (last.run_id if last else start.after)
        # As windows are: a dump that kills its process keeps no other database from its plan.
        yield replace(start, kind="plan", attempt=attempt, after=after, alone=start.alone or attempt > TOGETHER)
    elif planned.approved:
        window = Window.parse(planned.window)
        yield replace(start, kind="window", window=window, attempt=start.attempt if start.window == window else 1)
    else:
        waiting.append(
            f"{database}: the window {planned.window} waits for approval: "
            f"materialize {database}__approval, or hive-repl approve {database} {planned.window}"
        )
