"""What the sensor decides: a pure function."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from repl_assets.catalog.keys import Names, Window
from sensors.notification_log.approval import with_approval
from sensors.notification_log.decision import (
    CATCH_UP_DELAY,
    MANY_EVENTS,
    RETRY_DELAY,
    Replica,
    decide,
    delay,
    is_counted,
    needs_log,
)
from sensors.notification_log.run_requests import run_request
from sensors.notification_log.runs import Decision, PastRun, Start, limited
from tests.lags import POLICY

NOW = 1_000_000.0
LONG_AGO = NOW - 100_000.0


def decided(*replicas: Replica, current: int = 200, now: float = NOW, max_events: int = 1000) -> Decision:
    return decide(now, current, replicas, max_events)


def level(database: str = "a", at: int = 200) -> Replica:
    return Replica(database, at, scanned=200)


def moving(database: str = "a", applied: int = 100, first: int = 101) -> Replica:
    return Replica(database, applied, first_event=first, scanned=200)


def window(start: int | None, end: int, attempt: int = 1, ended: float = LONG_AGO) -> PastRun:
    return PastRun("run-1", "window", Window(start, end), attempt, ended)


def test_nothing_new() -> None:
    assert decided(level()) == Decision((), (), settled=True)


def test_events_of_others_only() -> None:
    assert decided(Replica("a", 100, scanned=200)) == Decision((), (), settled=True)


def test_a_log_that_is_not_read_to_its_end_is_not_settled() -> None:
    assert decided(Replica("a", 100, scanned=150)) == Decision((), (), settled=False)


def test_no_replica_is_bootstrapped() -> None:
    assert decided(Replica("a", None)).starts == (Start("window", Window(None, 200), 1, ("a",)),)


def test_new_events_make_a_window() -> None:
    assert decided(moving()).starts == (Start("window", Window(100, 200), 1, ("a",)),)


def test_a_schedule_brings_what_came_before_its_last_time() -> None:
    before, after = replace(moving("a", 100, 101), since=LONG_AGO - 1), replace(moving("b", 100, 190), since=LONG_AGO)
    lost = replace(Replica("c", None), since=NOW)
    decision = decide(NOW, 200, [before, after, lost, level("d")], 1000, due=LONG_AGO)
    assert decision.starts == (Start("window", Window(100, 200), 1, ("a",)),)
    assert decision.scheduled == {"b": LONG_AGO, "c": NOW}
    assert not decide(NOW, 200, [after], 1000, due=LONG_AGO).settled
    failed = replace(after, first_event=None, last=window(100, 200))
    assert decide(NOW, 200, [failed], 1000, due=LONG_AGO).starts  # has begun


def test_databases_share_a_window() -> None:
    starts = decided(moving("a", 100), moving("b", 150, 160), level("c")).starts
    assert starts == (Start("window", Window(100, 200), 1, ("a", "b")),)


def test_a_database_without_events_shares_those_of_no_other() -> None:
    changed = [Replica(name, 200, first_event=200, scanned=200, changed=True) for name in ("a", "c")]
    starts = decided(changed[0], moving("b"), changed[1]).starts
    assert [(start.window, start.databases) for start in starts] == [(Window(200, 200), ("a", "c")), (Window(100, 200), ("b",))]


def test_bootstrap_and_window_are_two_runs() -> None:
    starts = decided(Replica("a", None), moving("b")).starts
    assert [(start.window, start.databases) for start in starts] == [(Window(None, 200), ("a",)), (Window(100, 200), ("b",))]


def test_max_events_cuts_from_the_first_event() -> None:
    (start,) = decided(Replica("a", 100, first_event=150, scanned=200), moving("b", 110, 160), max_events=10).starts
    assert (start.window, start.databases) == (Window(100, 159), ("a",))


def test_databases_near_the_end_do_not_wait_for_those_far_behind() -> None:
    far = Replica("a", 100, first_event=150, scanned=200)
    starts = decided(far, moving("b", 190, 195), moving("c", 192, 196), max_events=10).starts
    assert [(start.window, start.databases) for start in starts] == [
        (Window(190, 200), ("b", "c")),
        (Window(100, 159), ("a",)),
    ]


def test_a_database_that_is_to_be_repaired_shares_no_run() -> None:
    starts = decided(moving("a"), replace(moving("b"), alone=True), moving("c")).starts
    assert [(start.window, start.databases) for start in starts] == [(Window(100, 200), ("a", "c")), (Window(100, 200), ("b",))]
    failed = [replace(moving(name), last=window(100, 200), alone=name == "b") for name in "ab"]
    assert [start.databases for start in decided(*failed).starts] == [("a",), ("b",)]


def test_a_database_with_many_events_shares_no_run() -> None:
    hot = replace(moving("hot", 100), events=MANY_EVENTS + 1)
    decision = decided(moving("a", 100), hot, moving("b", 100))
    assert [(start.window, start.databases) for start in decision.starts] == [
        (Window(100, 200), ("hot",)),
        (Window(100, 200), ("a", "b")),
    ]
    planned = with_approval(NOW, decision, {}, {}, {})
    assert [(start.kind, start.databases) for start in planned.starts] == [("plan", ("hot",)), ("plan", ("a", "b"))]


def test_shares_are_fair() -> None:
    names = [f"d{number:03}" for number in range(200)]
    since = {name: NOW - number for number, name in enumerate(names)}
    replicas = [replace(moving(name), since=since[name]) for name in names]
    starts = decided(*replicas).starts
    assert max(len(start.databases) for start in starts) == 10
    assert [name for start in starts for name in start.databases] == names[::-1]  # who waited longest comes first
    decision = limited(decided(*replicas), since, running=3, most=8)
    assert decision.starts == starts[:5]
    assert decision.delayed == {name: since[name] for name in names[:150]}
    assert decision.waiting == ("d000, d001, d002 and 147 more: 8 runs at a time (max_runs)",)
    assert limited(decided(*replicas), since, running=9, most=8).starts == ()
    assert limited(decided(level()), {}, running=8, most=8) == decided(level())


def test_a_database_that_always_has_work_waits_its_turn() -> None:
    hot = replace(moving("hot"), since=NOW - 1000, last=window(50, 100, ended=NOW - 1), events=1000)
    quiet = replace(moving("quiet"), since=NOW - 5, last=window(50, 100))
    urgent = replace(moving("urgent", 150, 160), since=NOW, priority=1)
    decision = limited(decided(hot, quiet, urgent), {"hot": hot.since}, running=0, most=2)
    assert [start.databases for start in decision.starts] == [("urgent",), ("quiet",)]


def test_a_run_under_way_blocks_its_database_only() -> None:
    decision = decided(replace(moving("a"), busy="abcdefghij"), moving("b"))
    assert [start.databases for start in decision.starts] == [("b",)]
    assert decision.waiting == ("a: run abcdefgh is in progress",)
    assert not decided(replace(moving("a"), busy="x")).settled


def test_a_failed_window_comes_again_as_it_was() -> None:
    failed = replace(moving("a"), last=window(100, 150))
    assert decided(failed).starts == (Start("window", Window(100, 150), 2, ("a",), "run-1"),)


def test_a_failed_window_comes_again_where_only_some_of_it_is_done() -> None:
    (start,) = decided(Replica("a", 120, first_event=121, scanned=200, last=window(100, 150, attempt=3))).starts
    assert (start.window, start.attempt) == (Window(100, 150), 4)


def test_a_failed_window_comes_again_where_its_last_event_alone_is_missing() -> None:
    (start,) = decided(Replica("a", 149, first_event=150, scanned=200, last=window(100, 150))).starts
    assert (start.window, start.attempt) == (Window(100, 150), 2)


def test_a_window_that_ends_after_the_log_is_of_another_log() -> None:
    """A failback: the old source's log was longer."""
    old = PastRun("run-old", "window", Window(4_999_000, 5_000_000), 1, 1000)
    replica = Replica("sales", 300_200, first_event=300_250, scanned=300_300, last=old)
    (start,) = decide(2000, 300_300, [replica], 10_000).starts
    assert (start.window, start.attempt) == (Window(300_200, 300_300), 1)


def test_nothing_passes_a_failed_window() -> None:
    failed = replace(moving("a"), last=window(100, 150, ended=NOW - 1))
    decision = decided(failed)
    assert decision.starts == ()
    assert decision.waiting == ("a: attempt 2 of window 100-150 in 9 s",)
    assert not decision.settled


def test_a_window_that_is_through_is_not_repeated() -> None:
    assert decided(replace(level(), last=window(100, 150))).starts == ()
    (start,) = decided(replace(moving("a", 150, 151), last=window(100, 150))).starts
    assert (start.window, start.attempt, start.after) == (Window(150, 200), 1, "run-1")


def test_failed_bootstrap_comes_again_with_its_name() -> None:
    failed = Replica("a", None, last=window(None, 170, attempt=2))
    assert decided(failed).starts == (Start("window", Window(None, 170), 3, ("a",), "run-1", alone=True),)


def test_one_database_that_kills_its_runs_keeps_others_from_nothing_after_the_second() -> None:
    """Dumps come before all loads in a run: nothing of any database was loaded, whichever ended the process."""
    for attempt, runs in ((1, [("a", "b", "c")]), (2, [("a",), ("b",), ("c",)])):
        failed = [Replica(name, 100, scanned=200, last=window(100, 150, attempt=attempt)) for name in "abc"]
        assert [start.databases for start in decided(*failed).starts] == runs


def test_a_lost_replica_is_bootstrapped_anew() -> None:
    lost = Replica("a", None, last=window(100, 150))
    (start,) = decided(lost).starts
    assert (start.window, start.attempt) == (Window(None, 200), 1)


def test_a_replica_ahead_of_the_log_is_bootstrapped_with_growing_delay() -> None:
    ahead = Replica("a", 500, scanned=500, last=window(400, 500))
    (start,) = decided(ahead).starts
    assert (start.window, start.attempt) == (Window(None, 200), 1)
    again = replace(ahead, last=window(None, 200, attempt=1, ended=NOW - 1))
    assert decided(again).starts == ()


def test_a_held_lane_catches_up_at_once() -> None:
    held = replace(level(), held=120)
    assert decided(held).starts == (Start("catch-up", Window(120, 200), 1, ("a",), f"{int(NOW):x}"),)


@pytest.mark.parametrize("known", [None, PastRun("run-2", "catch-up", Window(120, 200), 2, LONG_AGO)])
def test_a_lane_that_stays_held_catches_up_again_after_its_runs_dropped_out_of_the_history(known: PastRun | None) -> None:
    names = Names.of(POLICY)
    held = replace(level(), held=120, last=window(100, 110), last_catch_up=known)
    starts = [start for now in (NOW, NOW + 60) for start in decided(held, now=now).starts]
    assert len({run_request(names, start, POLICY).run_key for start in starts}) == 2


def test_a_held_lane_catches_up_with_growing_delay() -> None:
    past = PastRun("run-2", "catch-up", Window(120, 190), 2, NOW - CATCH_UP_DELAY[0] - 1)
    held = replace(level(), held=120, last_catch_up=past)
    decision = decided(held)
    assert decision.starts == ()
    assert not decision.settled
    (start,) = decided(held, now=NOW + CATCH_UP_DELAY[0]).starts
    assert (start.kind, start.window, start.attempt) == ("catch-up", Window(120, 200), 3)


def test_a_held_lane_waits_as_the_target_says() -> None:
    held = replace(level(), held=120, next_attempt=NOW + 30)
    assert (decided(held).starts, decided(held).waiting) == ((), ("a: held tables are retried in 30 s",))
    (start,) = decided(held, now=NOW + 30).starts
    assert (start.kind, start.window, start.attempt) == ("catch-up", Window(120, 200), 1)


def test_what_failed_is_retried_though_the_clock_was_set_back_since() -> None:
    """By a day, say: it waited for a day, though the lag grew."""
    ahead = NOW + 86_400
    failed = PastRun("run-1", "window", Window(100, 150), 1, ahead)
    assert [start.attempt for start in decided(replace(moving(), last=failed)).starts] == [2]
    held = replace(level(), held=120, last_catch_up=PastRun("run-2", "catch-up", Window(120, 190), 2, ahead), next_attempt=ahead)
    assert [(start.kind, start.attempt) for start in decided(held).starts] == [("catch-up", 3)]
    somewhat = replace(failed, ended=NOW + 5)  # another host's clock
    assert decided(replace(moving(), last=somewhat)).starts == ()


def test_others_of_its_database_go_on_while_a_lane_waits() -> None:
    past = PastRun("run-2", "catch-up", Window(90, 100), 5, NOW - 1)
    (start,) = decided(replace(moving(), held=90, last_catch_up=past)).starts
    assert (start.kind, start.window) == ("window", Window(100, 200))


def test_another_hold_begins_anew() -> None:
    past = PastRun("run-2", "catch-up", Window(90, 100), 5, NOW - 1)
    (start,) = decided(replace(level(), held=120, last_catch_up=past)).starts
    assert (start.kind, start.attempt) == ("catch-up", 1)


@pytest.mark.parametrize("limits", [RETRY_DELAY, CATCH_UP_DELAY])
def test_delays_grow_and_end(limits: tuple[float, float]) -> None:
    delays = [delay(attempt, limits) for attempt in range(1, 2000)]
    assert delays[0] == limits[0]
    assert delays == sorted(delays)
    assert delays[-1] == limits[1]


def test_the_log_is_read_only_where_it_decides() -> None:
    unread = Replica("a", 100, scanned=100)
    assert needs_log(unread, 200)
    assert not needs_log(replace(unread, busy="x"), 200)
    assert not needs_log(replace(unread, last=window(100, 150)), 200)
    assert not needs_log(replace(unread, scanned=200), 200)
    assert not needs_log(Replica("a", None), 200)


def test_events_are_counted_on_near_the_end_of_the_log() -> None:
    some = Replica("a", 100, first_event=150, scanned=190, events=3)
    assert is_counted(some, 200, most=10)
    assert not is_counted(some, 200, most=9)
    assert not is_counted(replace(some, events=MANY_EVENTS + 1), 200, most=10)
    assert not is_counted(replace(some, events=0), 200, most=10)  # its work is no event of the log
    assert not is_counted(replace(some, busy="x"), 200, most=10)
    assert not is_counted(replace(some, scanned=200), 200, most=10)


_IDS = st.integers(0, 300)
_RUNS = st.none() | st.builds(
    PastRun,
    st.just("run"),
    st.just("window"),
    st.builds(lambda bootstrap, a, b: Window(None if bootstrap else min(a, b), max(a, b)), st.booleans(), _IDS, _IDS),
    st.integers(1, 40),
    st.floats(0, NOW),
)


@st.composite
def _replicas(draw: st.DrawFn, database: str) -> Replica:
    applied = draw(st.none() | _IDS)
    scanned = draw(st.integers(applied or 0, 300))
    first = draw(st.none() | st.integers(applied + 1, scanned)) if applied is not None and scanned > applied else None
    held = draw(st.none() | st.integers(0, applied)) if applied is not None else None
    return Replica(database, applied, held, first, scanned, draw(st.sampled_from(["", "", "run"])), draw(_RUNS))


@given(_replicas("a"), _replicas("b"), st.integers(0, 300), st.integers(1, 100))
def test_rules_that_always_hold(one: Replica, other: Replica, current: int, max_events: int) -> None:
    decision = decided(one, other, current=current, max_events=max_events)
    started = [database for start in decision.starts for database in start.databases]
    assert len(started) == len(set(started))
    replicas = {replica.database: replica for replica in (one, other)}
    for start in decision.starts:
        for database in start.databases:
            replica = replicas[database]
            assert not replica.busy
            unfinished = replica.unfinished(current)
            if unfinished:
                assert (start.window, start.attempt) == (unfinished.window, unfinished.attempt + 1)
            elif start.kind == "window" and start.window.start is not None:
                assert replica.applied is not None
                assert start.window.start <= replica.applied <= start.window.end <= current
                assert (replica.applied == start.window.end) is (replica.applied == current), "else it has events"
    if decision.settled:
        assert not started
        assert not decision.waiting


def test_the_highest_priority_comes_first_in_a_run_of_its_own() -> None:
    starts = decided(moving("a", 100), replace(moving("b", 100), priority=5), replace(level("c"), priority=9)).starts
    assert [(start.databases, start.priority, start.window) for start in starts] == [
        (("b",), 5, Window(100, 200)),
        (("a",), 0, Window(100, 200)),
    ]


def test_a_released_table_is_caught_up_at_once() -> None:
    """Neither the delay of failures before the undo counts, nor that of a catch-up of the same events long ago."""
    held = Replica("a", 200, held=150, scanned=200, next_attempt=NOW + 3000)
    assert decided(held).starts == ()
    assert [start.kind for start in decided(replace(held, at_once=True)).starts] == ["catch-up"]
    again = PastRun("run-9", "catch-up", Window(150, 200), 9, NOW - 2 * CATCH_UP_DELAY[0])
    assert [start.kind for start in decided(replace(held, at_once=True, last_catch_up=again)).starts] == ["catch-up"]
    just_now = replace(again, ended=NOW - 1)  # one that fails as a whole is not requested with every tick
    assert decided(replace(held, at_once=True, last_catch_up=just_now)).starts == ()
