"""The state of a target after a window: who stands at its end, and who is held."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.load import window
from hive_replication.load.operations.kinds import DropTable
from hive_replication.load.plan.lane_planner import LaneSettings
from hive_replication.load.plan.lanes import Segment
from hive_replication.load.plan.load_plan import LanePlan, Stop
from hive_replication.load.replica.held_reasons import HIDDEN_REASON, LEFT_OUT_REASON
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.replica.target_view import TargetView
from hive_replication.load.report import Held
from tests.bootstraps import SOURCE, header, loading

settings: Callable[..., LaneSettings] = window._settings  # pyright: ignore[reportPrivateUsage]
after: Callable[..., ReplicaState] = window._state_after  # pyright: ignore[reportPrivateUsage]
REASON = f"{LEFT_OUT_REASON}it is an Iceberg table"


def state_after(state: ReplicaState, from_evid: int, to_evid: int, *plans: LanePlan, only: str | None = None) -> ReplicaState:
    """After a window without events, or with those of some lanes."""
    head = replace(header(to_evid), kind="incremental", from_evid=from_evid)
    session = loading(state, head, ())
    stops = [(plan, plan.stop) for plan in plans if plan.stop]
    session.held += [Held(plan.names, plan.base, stop.evid, stop.reason, table=stop.table) for plan, stop in stops]
    events: list[Any] = [SimpleNamespace(names=plan.names) for plan in plans]
    return after(session, events, only, set[str](), plans)


def test_a_replica_whose_table_is_left_out_is_held_until_it_goes() -> None:
    """It goes with the windows, though they say nothing of it: there is nothing to catch up, and no log that is waited for."""
    state = ReplicaState(SOURCE, 60).quarantine("t", 60, REASON)
    assert state.tried == []
    level = state_after(state, 60, 70)
    assert (level.applied, dict(level.at), dict(level.held), level.tried) == (70, {"t": 70}, {"t": REASON}, [])
    assert dict(state_after(state, 60, 70, only="t").held) == {"t": REASON}
    gone = state_after(state, 60, 70, LanePlan(("t",), 60, (DropTable(65, "t"),)))
    assert (gone.applied, dict(gone.at), dict(gone.held)) == (70, {}, {})
    behind = state_after(state, 70, 80)
    assert (dict(behind.at), behind.tried) == ({"t": 60}, ["t"])  # events of it may lie between


def test_a_replica_whose_table_becomes_one_that_is_left_out_stands_at_the_end_of_the_window() -> None:
    """It stayed where the window began: it was tried again hourly, its lag grew, and in the end its database was compared."""
    at_first, again = (LanePlan(("t",), 60, (), Stop(evid, REASON, table="t")) for evid in (66, 75))
    level = state_after(ReplicaState(SOURCE, 60), 60, 70, at_first)
    assert (dict(level.at), dict(level.held), level.tried, level.last_id) == ({"t": 70}, {"t": REASON}, [], 70)
    level = state_after(level, 70, 80, again)
    assert (dict(level.at), dict(level.held), level.tried, level.last_id) == ({"t": 80}, {"t": REASON}, [], 80)
    failed = state_after(ReplicaState(SOURCE, 60), 60, 70, LanePlan(("t",), 60, (), Stop(66, "no space", table="t")))
    assert (dict(failed.at), failed.tried) == ({"t": 60}, ["t"])


def test_a_lane_that_is_brought_up_less_far_than_windows_went_meanwhile_is_caught_up_at_once() -> None:
    """Before a repair, or by a load of an older dump: what follows up to where the others stand is not applied to it."""
    state = ReplicaState(SOURCE, 60).quarantine("t", 40, "event 41 failed").failed("t", 41, 1_000)
    for only in ("t", None):
        passed = state_after(state, 40, 50, only=only)
        assert (passed.applied, dict(passed.at), passed.last_id) == (60, {"t": 50}, 50)
        assert (passed.tried, passed.due_names(), dict(passed.quarantines)) == (["t"], ["t"], {})
        level = state_after(passed, 50, 60)
        assert (dict(level.at), dict(level.held)) == ({}, {})
    assert state_after(state, 40, 60, only="t") == ReplicaState(SOURCE, 60)


def test_a_window_that_is_loaded_once_more_does_not_end_a_hold_of_a_later_event() -> None:
    """Its lane was tried at once again, and as if for the first time."""
    state = ReplicaState(SOURCE, 60).quarantine("t", 55, "event 56 failed").failed("t", 56, 1_000)
    assert state_after(state, 40, 50, LanePlan(("t",), 55, ())) == state


def test_a_table_that_is_joined_to_one_that_is_left_out_goes_on_without_it() -> None:
    """It was held for the other's reason, stopped at each of its own events, and was held on for ever."""
    state = ReplicaState(SOURCE, 60)
    stopped = state_after(state, 60, 70, LanePlan(("b", "c"), 65, (), Stop(66, REASON, table="b")))
    assert dict(stopped.held) == {"b": REASON, "c": f"held with b: {REASON}"}
    assert (stopped.why_left_out("b") != "", stopped.why_left_out("c")) == (True, "")
    assert (dict(stopped.at), stopped.tried) == ({"b": 70, "c": 65}, ["c"])
    caught_up = state_after(stopped, 65, 70)
    assert (dict(caught_up.held), dict(caught_up.at)) == ({"b": REASON}, {"b": 70})


@pytest.mark.parametrize(
    ("joined", "undumped"),
    [({}, True), ({"c": "a dump"}, True), ({"b": ""}, True), ({"a": "a dump", "b": ""}, True), ({"b": "a dump"}, False)],
)
def test_a_table_of_which_the_dump_says_nothing_has_no_dump(joined: dict[str, str], *, undumped: bool) -> None:
    """Another writer of the dump had gone on with it: the replica was dropped, and nothing was there to make it from."""
    session = loading(ReplicaState(SOURCE, 60), replace(header(70), kind="incremental", joined=joined), ())
    assert settings(session, Segment((), (), None), TargetView(ReplicaState()), None, None).undumped(("a", "b")) == undumped


def test_a_catch_up_counts_as_an_attempt_at_a_table_that_the_source_hides() -> None:
    """It has asked for it in vain: the next one has to wait longer. Windows, which do not ask, put it off no further."""
    state = ReplicaState(SOURCE, 60).quarantine("v", 0, f"{HIDDEN_REASON}denied").failed("v", 60, 5.0)
    state = state.quarantine("t", 0, "its directory was missing")
    assert state_after(state, 60, 70).quarantines == state.quarantines
    tried = state_after(state, 60, 60)
    assert (dict(tried.at), dict(tried.held)) == (dict(state.at), dict(state.held))
    assert [(name, one.evid, one.attempts) for name, one in tried.quarantines.items()] == [("v", 60, 2)]
    assert tried.quarantines["v"].tried > 5
