"""Ticks over a growing log, with runs that last and may fail: each event is loaded once, in order, and nothing starves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hive_replication.connect import Connection
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.types import NotificationEvent
from hive_replication.policy import Policy
from repl_assets.catalog.keys import Window
from sensors.notification_log import decision, log_scan
from sensors.notification_log.cursor import Cursor, Reading, read_cursor
from sensors.notification_log.decision import decide
from sensors.notification_log.log_scan import replicas, with_log
from sensors.notification_log.run_history import RunHistory
from sensors.notification_log.runs import PastRun, Start, limited
from tests.lags import POLICY

_TICK = 5.0  # seconds
_MOST = 50  # events of a window
_RUNS = 3  # at a time


@pytest.fixture(autouse=True, scope="module")
def few_are_many() -> Iterator[None]:
    """A database with more than five events that wait gets runs of its own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decision, "MANY_EVENTS", 5)
        patch.setattr(log_scan, "MANY_EVENTS", 5)
        yield


@dataclass
class Run:
    """A run under way.

    Args:
        start: what was requested.
        ends: number of the tick before which it ends.
        loads: how many of its databases it loads before it fails; all if it does not.
    """

    start: Start
    ends: int
    loads: int


@dataclass
class World:
    """A source's log, the replicas of its databases, and the sensor's cursor; a run ends before a tick."""

    databases: list[str]
    log: list[str] = field(default_factory=list[str])  # the database of each event
    times: list[int] = field(default_factory=list[int])
    applied: dict[str, int] = field(default_factory=dict[str, int])
    loaded: dict[str, list[int]] = field(default_factory=dict[str, list[int]])
    runs: list[Run] = field(default_factory=list[Run])
    past: dict[str, PastRun] = field(default_factory=dict[str, PastRun])
    failed: dict[str, tuple[Window, int]] = field(default_factory=dict[str, tuple[Window, int]])
    waits: Counter[str] = field(default_factory=Counter[str])
    longest: Counter[str] = field(default_factory=Counter[str])
    number: int = 0
    cursor: str | None = None
    views_of_materialized: bool = False

    def __post_init__(self) -> None:
        self.policy: Policy = POLICY.model_copy(
            update={"databases": {name: name for name in self.databases}, "max_events": _MOST}
        )
        source = SimpleNamespace(metastore=self, policy=self.policy, acid=True)
        self.connection = cast("Connection", SimpleNamespace(source=source))
        self.loaded = {name: [] for name in self.databases}

    @property
    def now(self) -> float:
        """Time of the tick, seconds since the epoch."""
        return 1e9 + self.number * _TICK

    def write(self, *databases: str) -> None:
        """Adds events of these databases after the last tick."""
        self.log += databases
        self.times += [int(self.now) + 1] * len(databases)

    def events(self, after: int, until: int) -> Iterator[NotificationEvent]:
        """Part of the log, as the metastore has it."""
        for evid, database in enumerate(self.log[after:until], after + 1):
            row: dict[str, Any] = {"eventId": evid, "eventTime": self.times[evid - 1], "dbName": database, "tableName": "t"}
            yield NotificationEvent(**row, eventType="CREATE_TABLE", catName="hive", message="{}", messageFormat="json-0.2")

    def tick(self, duration: int = 1, loads: int = 10) -> tuple[Start, ...]:
        """Ends runs, ticks, and starts runs that last some ticks and load some of their databases."""
        self.number += 1
        now, current = self.now, len(self.log)
        for run in [run for run in self.runs if run.ends <= self.number]:
            self._end(run, now)
        busy = {name: "run" for run in self.runs for name in run.start.databases}
        windows = {name: run.start.window for run in self.runs for name in run.start.databases}
        loading = {name: window.end for name, window in windows.items() if window.start is not None}
        cursor = read_cursor(self.cursor, self.policy)
        states = {name: ReplicaState(applied=self.applied.get(name)) for name in self.databases}
        known = replicas(self.connection.source, states, RunHistory(busy, loading, self.past), cursor)
        seen, readings = with_log(self.connection, known, cursor, current, now, seconds=0)
        chosen = limited(decide(now, current, seen, _MOST), {one.database: one.since for one in seen}, len(self.runs), _RUNS)
        self.cursor = Cursor(cursor.policy, readings=readings, delayed=chosen.delayed).to_json()
        for start in chosen.starts:
            self._start(start, busy, Run(start, self.number + duration, loads))
        for one in seen:
            free = one.database not in busy and one.database not in chosen.databases and not one.unfinished(one.scanned)
            if free and one.applied is not None and one.first_event is None and one.scanned - one.applied >= _MOST:
                self._apply(one.database, one.scanned, loads=False)
        self._wait(chosen.databases | busy.keys())
        return chosen.starts

    def _start(self, start: Start, busy: dict[str, str], run: Run) -> None:
        assert len(self.runs) < _RUNS
        for name in start.databases:
            assert name not in busy
            if name in self.failed:
                assert (start.window, start.attempt) == self.failed.pop(name)
            else:
                assert start.attempt == 1
        self.runs.append(run)

    def _end(self, run: Run, now: float) -> None:
        self.runs.remove(run)
        start = run.start
        for number, name in enumerate(start.databases):
            self.past[name] = PastRun("run", start.kind, start.window, start.attempt, now)
            if number < run.loads:
                assert (start.window.start or 0) <= self.applied.get(name, 0)
                self._apply(name, start.window.end)
            else:
                self.failed[name] = start.window, start.attempt + 1

    def _apply(self, name: str, end: int, *, loads: bool = True) -> None:
        applied = self.applied.get(name, 0)
        assert applied <= end <= len(self.log)
        found = [evid for evid in range(applied + 1, end + 1) if self.log[evid - 1] == name]
        assert loads or not found, f"events {found} of {name} were left out"
        self.loaded[name] += found
        self.applied[name] = end

    def _wait(self, served: set[str]) -> None:
        """Counts the ticks for which databases with events wait in vain."""
        waiting = {name for name in self.databases if name in self.log[self.applied.get(name, 0) :]} - served
        self.waits = Counter({name: self.waits[name] + 1 for name in waiting})
        self.longest |= self.waits

    def finish(self) -> None:
        """Ticks without new events until all are loaded."""
        for _ in range(2_000):
            if not self.tick() and not self.runs and not self.failed and not self.waits:
                break
        assert {name: self.loaded[name] for name in self.databases} == {
            name: [evid for evid, database in enumerate(self.log, 1) if database == name] for name in self.databases
        }


_NAMES = [f"d{number:02}" for number in range(14)]
_STEPS = st.tuples(
    st.lists(st.tuples(st.sampled_from([*_NAMES, "of no policy"]), st.integers(1, 60)), max_size=6),
    st.integers(1, 5),  # duration of runs that start then
    st.sampled_from([10, 10, 10, 0, 1, 5]),  # databases that they load
)


@given(st.lists(_STEPS, max_size=30))
def test_each_event_is_loaded_once_and_in_order(steps: list[tuple[list[tuple[str, int]], int, int]]) -> None:
    world = World(_NAMES)
    for events, duration, loads in steps:
        world.write(*(name for name, number in events for _ in range(number)))
        world.tick(duration, loads)
    world.finish()


def test_no_database_waits_for_those_that_never_rest() -> None:
    """There are more of these than runs at a time, and they fall behind ever further; others have an event now and then."""
    hot, quiet = [f"hot{number}" for number in range(2 * _RUNS)], [f"quiet{number:02}" for number in range(40)]
    world = World([*hot, *quiet])
    world.finish()
    for number in range(200):
        world.write(quiet[number % len(quiet)], *hot, *hot, *hot, *hot)
        world.tick(duration=2)
    assert min(len(world.log) - world.applied[name] for name in hot) > 10 * _MOST
    assert max(len(world.log) - world.applied[name] for name in quiet) < 4 * _MOST
    turns = -(-(len(hot) + 1) // _RUNS)  # all hot ones, and the run that quiet ones share, once each
    assert max(world.longest.values()) <= 2 * turns + 1
    world.finish()


def test_the_log_is_read_on_for_a_database_while_it_is_loaded() -> None:
    world = World(["a"])
    world.write("a")
    world.finish()
    world.write("a")
    (start,) = world.tick(duration=3)
    world.write("of no policy", "a")
    assert world.tick() == ()
    reading = read_cursor(world.cursor, world.policy).reading("a", start.window.end)
    assert reading == Reading(start.window.end, 4, (4, world.times[3]), 1)
