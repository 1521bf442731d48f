"""A window with more events than memory is to hold: where it is cut, and what is told of it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.dump.format.record_types import DumpHeader, EventRecord
from hive_replication.events.event_records import Notification
from hive_replication.load import dump_prefix, parts_of_window
from hive_replication.load.journal.journal import Entry, Journal
from hive_replication.load.parts_of_window import held_after
from hive_replication.load.replica.held_reasons import TAKEN_IN_REASON
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.report import Held
from hive_replication.load.session import Session
from tests.bootstraps import SOURCE, Loading, header, loading
from tests.moving import POLICY

HEADER = replace(header(200), kind="incremental", from_evid=100, from_hash="h100", skipped={"v": "a view"})
STATE = ReplicaState(SOURCE, 100)


def nothing(*_: object) -> None:
    """The load of an entry was killed before its last step."""


def as_written(*_: object) -> ReplicaState:
    """The load of an entry was killed after its last step."""
    return STATE


@pytest.fixture(autouse=True)
def _small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three events a part."""
    monkeypatch.setattr(parts_of_window, "PART", 30)
    monkeypatch.setattr(Loading, "dry", False)


@pytest.fixture(autouse=True)
def journal(monkeypatch: pytest.MonkeyPatch) -> list[Entry]:
    """Entries of earlier loads."""
    entries = list[Entry]()

    def listed(_: Journal) -> list[Entry]:
        return entries.copy()

    monkeypatch.setattr(Journal, "entries", listed)
    monkeypatch.setattr(Journal, "state", nothing)
    return entries


def event(evid: int, kind: str = "INSERT", message: str = "x" * 10) -> EventRecord:
    return EventRecord(Notification(evid, evid * 10, kind, "db", "t", message), hash=f"h{evid}")


def load(*events: EventRecord, state: ReplicaState = STATE, head: DumpHeader = HEADER) -> Loading:
    session = loading(state, head, [])
    session.reader = SimpleNamespace(header=head, directory="d", events=lambda: iter(events))  # type: ignore[assignment]
    return session


def carried_out(session: Session) -> Iterator[tuple[DumpHeader, list[int]]]:
    """Each part, after which the replica stands at its end."""
    for part in parts_of_window.parts_of_window(session):
        head = part.reader.header
        yield head, [one.notification.evid for one in part.reader.events()]
        session.replica.state = session.state.advanced(head.to_evid, head.to_time, head.to_hash)


def events_of(session: Session) -> list[list[int]]:
    return [events for _, events in carried_out(session)]


SEVEN = [event(evid) for evid in range(101, 108)]


def test_parts_follow_each_other_without_a_gap() -> None:
    (first, a), (second, b), (third, c) = carried_out(load(*SEVEN))
    assert (a, b, c) == ([101, 102, 103], [104, 105, 106], [107])
    assert (first.from_evid, first.to_evid, first.from_hash, first.to_hash, first.to_time) == (100, 103, "h100", "h103", 1030)
    assert (second.from_evid, second.to_evid, second.from_hash, second.to_hash) == (103, 106, "h103", "h106")
    assert third == replace(HEADER, from_evid=106, from_hash="h106")
    assert not first.skipped
    assert not second.skipped


def test_a_window_that_is_not_large_is_loaded_as_it_is() -> None:
    ((head, events),) = carried_out(load(*SEVEN[:3]))
    assert (head, events) == (HEADER, [101, 102, 103])
    assert events_of(load()) == [[]]


def test_up_to_where_the_replica_stands_a_window_stays_whole_where_a_table_is_behind() -> None:
    state = replace(STATE, applied=105, at={"held": 100})
    assert events_of(load(*SEVEN, state=state)) == [[101, 102, 103, 104, 105, 106], [107]]


def test_what_is_applied_is_passed_over_part_by_part() -> None:
    session = load(*SEVEN, state=replace(STATE, applied=105))
    assert [(head.from_evid, head.from_hash, events) for head, events in carried_out(session)] == [
        (103, "h103", [104, 105, 106]),
        (106, "h106", [107]),
    ]
    (skipped,) = session.skipped
    assert (skipped.evid, skipped.what, skipped.reason) == (103, "3 events after 100", "applied already")


def test_a_part_is_never_shorter_than_what_an_interrupted_load_may_have_brought(journal: list[Entry]) -> None:
    journal.append(Entry("j", 100, 105, "1", "open", 0.0))
    assert events_of(load(*SEVEN)) == [[101, 102, 103, 104, 105], [106, 107]]
    journal.append(Entry("j", 100, 105, "2", "done", 0.0))
    assert events_of(load(*SEVEN)) == [[101, 102, 103], [104, 105, 106], [107]]


def test_a_dropped_database_and_its_creation_are_not_cut_apart() -> None:
    kinds = {102: "DROP_DATABASE", 105: "CREATE_DATABASE"}
    events = [
        replace(one, notification=replace(one.notification, type=kinds.get(one.notification.evid, "INSERT"))) for one in SEVEN
    ]
    assert events_of(load(*events)) == [[101, 102, 103, 104, 105], [106, 107]]
    assert events_of(load(*events[:4])) == [[101, 102, 103, 104]]


@pytest.mark.parametrize(
    ("state", "head"),
    [
        (STATE, replace(HEADER, joined={"t": "dump"})),
        (STATE, replace(HEADER, taken="another policy")),
        (replace(STATE, held={"t": TAKEN_IN_REASON}, at={"t": 100}), HEADER),
        (replace(STATE, applied=None), HEADER),
        (STATE, replace(HEADER, kind="bootstrap")),
    ],
)
def test_windows_that_stay_whole(state: ReplicaState, head: DumpHeader) -> None:
    assert len(list(parts_of_window.parts_of_window(load(*SEVEN, state=state, head=head)))) == 1


def test_plans_what_is_approved_by_them_and_loads_of_one_table_are_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    """A part would do what the plan of the whole window has not: make a table that is dropped later in it."""
    session = load(*SEVEN)
    assert events_of(replace(session, table="t")) == [[one.notification.evid for one in SEVEN]]
    approved: Any = load(*SEVEN)
    approved.replica.target.policy = POLICY.model_copy(update={"approval": True})
    assert events_of(approved) == [[one.notification.evid for one in SEVEN]]
    monkeypatch.setattr(Loading, "dry", True)
    assert events_of(session) == [[one.notification.evid for one in SEVEN]]


def test_a_window_that_stays_whole_although_it_is_large_is_told_of(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(parts_of_window, "_MUCH", 70)
    state = replace(STATE, applied=107, at={"held": 100})
    assert len(events_of(load(*SEVEN, state=state))) == 1
    assert "messages of 0 MB are loaded together" in caplog.text


def test_a_lane_that_a_part_holds_is_held_by_the_load_as_long_as_nothing_ended_that() -> None:
    first = Held(("a",), 100, 102, "a checksum differs")
    left = Held(("a", "b"), 100, 103, "a checksum differs", tried=False)
    session: Any = load(state=replace(STATE, at={"a": 100, "b": 100}, held={"a": "r", "b": "r"}))
    session.held = [left]
    assert held_after(session, [first]) == [replace(first, tables=("a", "b"))]
    session.held = []
    assert held_after(session, [first]) == [first]
    session.replica.state = STATE
    assert held_after(session, [first]) == []


def test_an_interrupted_load_counts_unless_a_later_one_reached_as_far_or_its_last_step_was_done(
    monkeypatch: pytest.MonkeyPatch, journal: list[Entry]
) -> None:
    journal += [Entry("j", 100, 150, "1", "open", 0.0), Entry("j", 100, 120, "2", "open", 0.0)]
    storage: Any = None
    assert dump_prefix.interrupted_until(storage, "l", STATE, 110) == 150
    assert dump_prefix.interrupted_until(storage, "l", STATE, 150) == 0
    monkeypatch.setattr(Journal, "state", as_written)
    assert dump_prefix.interrupted_until(storage, "l", STATE, 110) == 0
