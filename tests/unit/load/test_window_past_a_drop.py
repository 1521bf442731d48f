"""A window in which the database is dropped, and what is logged after that."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.dump.format.record_types import EventRecord
from hive_replication.events import event_records as r
from hive_replication.load import window
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.lanes import WindowEvent, window_event
from hive_replication.load.plan.load_plan import SegmentPlan
from hive_replication.load.replica.state import ReplicaState
from tests.bootstraps import SOURCE, Loading, header, loading, replica


def logged(evid: int, what: str, table: str = "", **message: object) -> WindowEvent:
    return window_event(EventRecord(r.Notification(evid, evid, what, "db", table, json.dumps(message))))


def ended(evid: int, transaction: int, what: str = "COMMIT_TXN") -> WindowEvent:
    return logged(evid, what, txnid=transaction)


DROP = logged(102, "DROP_TABLE", "t"), logged(103, "DROP_DATABASE")
LATE = (
    ended(104, 7),
    ended(105, 6, "ABORT_TXN"),
    logged(106, "COMMIT_TXN"),
    logged(107, "COMMIT_COMPACTION_EVENT", "t", type="MAJOR"),
)


class Replacing(Loading):
    """A load that drops and makes its database."""

    def carry_out(self, plan: SegmentPlan, *_: object) -> None:
        super().carry_out(plan)
        home, barrier = cast("Any", self.replica), plan.barrier
        if isinstance(barrier, op.DropDatabase):
            home.state, home.exists = ReplicaState(), False
            self.held.clear()
        elif barrier is not None:
            home.state, home.exists = ReplicaState(SOURCE, barrier.evid), True


def nothing(*_: object) -> None:
    """Stands for what needs servers."""


@pytest.fixture(autouse=True)
def same_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "require_same_history", nothing)


def load(*events: WindowEvent, table: str | None = None) -> Replacing:
    head = replace(header(110, table), kind="incremental", from_evid=100, acid=True)
    made = loading(ReplicaState() if table else ReplicaState(SOURCE, 100), head, [replica("t", 100)])
    cast("Any", made.replica).raise_table = nothing
    metastore = cast("Any", made.target.metastore)
    metastore.features, metastore.unfinished_transactions = SimpleNamespace(major=4), frozenset[int]
    session = Replacing(made.replica, made.reader, table, None, made.progress)
    window.load_window(session, events=events)
    return session


def test_what_ends_after_the_drop_of_its_database_holds_nothing() -> None:
    """The drop's own transaction does: each drop was reported as a held lane."""
    session = load(*DROP, *LATE)
    assert session.held == []
    assert {one.evid: one.reason for one in session.skipped} == dict.fromkeys(range(104, 108), "the database was dropped before")


def test_nor_does_it_hold_anything_of_a_database_that_is_made_again() -> None:
    """A name that nothing repairs stood at event 0 ever after, to which no log reaches back."""
    session = load(*DROP, *LATE, logged(108, "CREATE_DATABASE"), ended(109, 8, "ABORT_TXN"))
    assert session.held == []
    assert (session.state.last_id, session.state.applied, session.state.at, session.state.held) == (110, 110, {}, {})
    assert session.lanes.keys() == {"t", "transaction 8()"}


def test_a_load_of_one_table_ends_what_stays_open_with_the_database() -> None:
    """That is not dropped with it."""
    session = load(*DROP, ended(104, 7), table="t")
    assert [type(one).__name__ for plan in session.planned for lane in plan.lanes for one in lane.operations] == [
        "DropTable",
        "ReplayCommit",
    ]
