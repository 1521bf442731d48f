"""The runs of a tick: which databases share one, which come first, and how many there are at a time (pure)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from repl_assets.catalog.keys import Window

#: ``plan``: dump and plan of a window that needs an approval.
Kind = Literal["window", "catch-up", "plan"]

_SHOWN = 3
_DATABASES_A_RUN = 10  # at most; they are loaded one after another


@dataclass(frozen=True, slots=True)
class PastRun:
    """A finished run. Whether it succeeded is read from the target, not from the run.

    Args:
        run_id: its id.
        kind: its purpose.
        window: the window that it was to load.
        attempt: 1 for the first run of this window.
        ended: seconds since the epoch.
    """

    run_id: str
    kind: Kind
    window: Window
    attempt: int
    ended: float


@dataclass(frozen=True, slots=True)
class Start:
    """A run to request.

    Args:
        kind: its purpose.
        window: the window that it loads.
        attempt: 1 for the first run of this window.
        databases: which it loads, one after another.
        after: id of the run before it, or the time in seconds, so that run keys of equal starts at other times differ.
        priority: of the run.
        alone: whether no other database shares the run.
        since: since when the database that has waited longest waits.
    """

    kind: Kind
    window: Window
    attempt: int
    databases: tuple[str, ...]
    after: str = ""
    priority: int = 0
    alone: bool = False
    since: float = field(default=0.0, compare=False)


@dataclass(frozen=True, slots=True)
class Decision:
    """Runs to request now, and why other databases have none.

    Args:
        starts: the runs.
        waiting: reasons, one for each database that waits for a run or a delay.
        settled: whether nothing can be due before the source's id changes.
        scheduled: by database that waits for the schedule: since when.
        delayed: by database that waits until other runs have ended: since when.
    """

    starts: tuple[Start, ...]
    waiting: tuple[str, ...]
    settled: bool
    scheduled: Mapping[str, float] = field(default_factory=dict[str, float])
    delayed: Mapping[str, float] = field(default_factory=dict[str, float])

    @property
    def databases(self) -> set[str]:
        """Those for which a run starts."""
        return {database for start in self.starts for database in start.databases}


def merged(starts: Iterable[Start]) -> Iterable[Start]:
    """One run for some databases of the same window, attempt and priority: the highest first, then those that waited longest."""
    groups: defaultdict[tuple[object, ...], list[Start]] = defaultdict(list)
    for start in sorted(starts, key=_order):
        key = start.kind, start.window, start.attempt, start.priority, start.databases if start.alone else ()
        groups[key].append(start)
    parts = (group[n : n + _DATABASES_A_RUN] for group in groups.values() for n in range(0, len(group), _DATABASES_A_RUN))
    runs = [
        replace(part[0], databases=tuple(name for one in part for name in one.databases), after=max(one.after for one in part))
        for part in parts
    ]
    return sorted(runs, key=_order)


def _order(start: Start) -> tuple[int, float]:
    return -start.priority, start.since


def without(decision: Decision, why: Mapping[str, str]) -> Decision:
    """The decision without some databases, each with the reason; those that would share their runs go on."""
    left = [replace(one, databases=tuple(name for name in one.databases if name not in why)) for one in decision.starts]
    told = (f"{name}: {reason}" for name, reason in why.items())
    return replace(decision, starts=tuple(one for one in left if one.databases), waiting=(*decision.waiting, *told))


def limited(decision: Decision, since: Mapping[str, float], running: int, most: int) -> Decision:
    """As many of the runs as may be in progress at a time; the others come later, with what their databases have by then.

    Args:
        decision: what could run.
        since: since when databases have had work, seconds since the epoch.
        running: runs in progress.
        most: runs at a time.
    """
    free = max(0, most - running)
    later = {database for start in decision.starts[free:] for database in start.databases}
    if not later:
        return decision
    names = ", ".join(sorted(later)[:_SHOWN]) + (f" and {len(later) - _SHOWN} more" if len(later) > _SHOWN else "")
    return replace(
        decision,
        starts=decision.starts[:free],
        waiting=(*decision.waiting, f"{names}: {most} runs at a time (max_runs)"),
        delayed={database: since[database] for database in later},
    )
