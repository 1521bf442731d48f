"""Which parts of the log a tick reads, and what the cursor keeps of them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from threading import Barrier
from time import monotonic
from types import SimpleNamespace
from typing import Any

import pytest
from hive_metastore.ttypes import DatabaseType

from hive_replication.dump import source as side
from hive_replication.errors import MissingEvents, Refused, Unreachable
from hive_replication.events.decoders_by_event_type import notification
from hive_replication.events.event_records import Notification
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.types import Database, NotificationEvent
from hive_replication.recover import UNFINISHED, Gap
from repl_assets.catalog.keys import Window
from sensors.notification_log import log_scan
from sensors.notification_log.cursor import Cursor, Reading, read_cursor
from sensors.notification_log.decision import MANY_EVENTS, Replica, decide
from sensors.notification_log.log_scan import killed_loads, parts, read_part, replicas, states, to_be_approved, with_gaps
from sensors.notification_log.run_history import RunHistory
from sensors.notification_log.runs import PastRun
from tests.lags import FILTERED, POLICY, insert_outside

SOURCE: Any = SimpleNamespace(policy=POLICY, acid=True)


def row(evid: int, database: str = "sales", table: str = "t", kind: str = "CREATE_TABLE") -> Notification:
    return Notification(evid, 1000 + evid, kind, database, table, "{}", "hive")


def commit(evid: int, *databases: str) -> Notification:
    return Notification(evid, 1000 + evid, "COMMIT_TXN", "", "", json.dumps({"txnid": 7, "databases": databases}))


def test_databases_near_the_end_are_read_apart_from_those_far_behind() -> None:
    assert list(parts({}, 100, 10)) == []
    assert list(parts({"a": 95, "b": 90}, 100, 10)) == [(90, 100, ["a", "b"])]
    assert list(parts({"far": 20, "a": 95, "further": 15, "not now": 40}, 100, 10)) == [
        (95, 100, ["a"]),
        (15, 25, ["far", "further"]),
    ]
    assert list(parts({"far": 89}, 100, 10)) == [(89, 99, ["far"])]


def test_events_are_counted_from_the_first_one_of_the_policy() -> None:
    source: Any = SimpleNamespace(policy=POLICY.model_copy(update={"exclude": ("left_*",)}))
    unread = {"sales": Reading(100, 101), "other": Reading(90, 103, (95, 1095), 2)}
    rows = [row(101), row(102, table="left_out"), row(103), row(103, "other"), row(104, table="left_out"), row(105, "other")]
    assert read_part(lambda: rows, source, unread, 110) == {
        "sales": Reading(100, 110, (103, 1103), 2),
        "other": Reading(90, 110, (95, 1095), 3),
    }


@pytest.mark.parametrize("metadata_only", [False, True])
def test_an_insert_outside_a_filter_is_an_event_where_a_partition_inside_may_have_its_directory(metadata_only: bool) -> None:
    """No run started, and the replica was raised past it: rows of the partition inside were missing for good."""
    source: Any = SimpleNamespace(policy=FILTERED.model_copy(update={"metadata_only": metadata_only}), acid=True)
    found = read_part(lambda: [notification(insert_outside(103))], source, {"sales": Reading(100, 100)}, 110)
    assert found["sales"] == (Reading(100, 110) if metadata_only else Reading(100, 110, (103, 1103), 1))


def test_the_end_of_a_transaction_is_an_event_of_the_databases_that_it_names() -> None:
    """Nothing else in the log tells of what it wrote."""
    unread = {"sales": Reading(100, 100), "other": Reading(90, 103), "idle": Reading(90, 100)}
    rows = [commit(101), commit(102, "elsewhere"), commit(103, "sales", "other"), commit(104, "other"), row(105)]
    assert read_part(lambda: rows, SOURCE, unread, 110) == {
        "sales": Reading(100, 110, (103, 1103), 2),
        "other": Reading(90, 110, (104, 1104), 1),  # 103 was read before
        "idle": Reading(90, 110),
    }


def test_a_part_that_takes_too_long_is_read_on_by_the_next_tick() -> None:
    rows = [row(101, "other"), row(102), row(103)]
    unread = {"sales": Reading(100, 100), "stock": Reading(105, 105)}
    found = read_part(lambda: rows, SOURCE, unread, 110, monotonic())
    assert found == {"sales": Reading(100, 101), "stock": Reading(105, 105)}, "what was read of others stays read"


def test_a_part_is_read_no_further_than_it_tells_something() -> None:
    def endless() -> Iterator[Notification]:
        yield row(101, "other")
        evid = 102
        while True:
            yield row(evid)
            evid += 1

    (found,) = read_part(endless, SOURCE, {"sales": Reading(100, 100)}, 10**6).values()
    assert found == Reading(100, 102 + MANY_EVENTS, (102, 1102), MANY_EVENTS + 1)


def test_a_hole_in_the_log_is_work() -> None:
    def hole() -> Iterator[Notification]:
        yield row(101)
        raise MissingEvents("purged")

    found = read_part(hole, SOURCE, {"sales": Reading(100, 100), "other": Reading(90, 100)}, 110)
    assert found["sales"].first == (101, 1101)
    assert found["other"].first
    assert found["other"].first[0] == 101


def test_a_cursor_is_read_as_it_was_written() -> None:
    empty = read_cursor(None, POLICY)
    cursor = Cursor(
        empty.policy,
        settled=7,
        readings={"sales": Reading(5, 7), "other": Reading(5, 7, (6, 1006), 1)},
        event=(7, 1007, "hash"),
        delayed={"other": 3.5},
    )
    assert read_cursor(cursor.to_json(), POLICY) == cursor
    assert read_cursor(cursor.to_json(), POLICY.model_copy(update={"metadata_only": True})).readings == {}


@pytest.mark.parametrize(
    "change",
    [
        {"idle": {"sales": [5, 7]}},  # what an earlier version has instead of readings
        {"readings": {"sales": [5, 7]}},
        {"readings": {"sales": "5-7"}},
        {"readings": [5]},
        {"event": None},
        {"of a later version": 1},
    ],
)
def test_a_cursor_of_another_version_is_of_use_or_empty(change: dict[str, object]) -> None:
    known = json.loads(read_cursor(None, POLICY).to_json()) | {"settled": 7}
    found = read_cursor(json.dumps(known | change), POLICY)
    assert found.settled in (7, None)
    assert found.readings in ({}, {"sales": Reading(5, 7)})
    without = {key: value for key, value in known.items() if key in ("policy", "settled", "checked")}
    assert read_cursor(json.dumps(without | {"idle": {}}), POLICY).settled == 7


def test_what_was_read_counts_only_for_the_same_log() -> None:
    cursor = Cursor("policy", readings={"sales": Reading(5, 7)}, event=(7, 1007, "hash"))
    assert cursor.of_log(1007, "hash") == cursor
    for time, message_hash in ((1008, "hash"), (1007, "other"), (0, "")):
        assert cursor.of_log(time, message_hash).readings == {}
    assert Cursor("policy", readings={"sales": Reading(5, 7)}).of_log(0, "").readings == {}


class Denying:
    """A source's metastore that does not show ``hr``, whose directory the account may not read."""

    def database(self, name: str) -> Database | None:
        if name == "hr":
            raise MetastoreError("get_database hr at thrift://source: java.security.AccessControlException: Permission denied")
        return Database(name=name)


def between(source: object, target: object, *databases: str) -> Any:
    policy = POLICY.model_copy(update={"databases": {name: name for name in databases}})
    threads = SimpleNamespace(map=lambda do, names: map(do, names))
    sides = (SimpleNamespace(policy=policy, metastore=metastore, threads=threads) for metastore in (source, target))
    return SimpleNamespace(**dict(zip(("source", "target"), sides, strict=True)))


@pytest.mark.parametrize("denies", ["source", "target"])
def test_a_database_that_a_metastore_does_not_show_stops_no_other(denies: str, caplog: pytest.LogCaptureFixture) -> None:
    none = SimpleNamespace(database={"hr": Database(name="hr"), "sales": Database(name="sales")}.get)
    sides = (Denying(), SimpleNamespace(database=lambda _: None)) if denies == "source" else (none, Denying())
    assert [*states(between(*sides, "hr", "sales"))] == ["sales"]
    assert "no run starts for the database: get_database hr at thrift://source" in caplog.text
    with pytest.raises(MetastoreError, match="Permission denied"):
        states(between(*sides, "hr"))


def test_a_remote_database_is_bootstrapped_by_no_run_and_its_replica_of_before_goes_on(caplog: pytest.LogCaptureFixture) -> None:
    """Where it was made in place of another one, its bootstrap was requested every 10 minutes, and refused."""
    source = SimpleNamespace(database=lambda name: Database(name=name, type=DatabaseType.REMOTE))
    target = SimpleNamespace(database={"hr": Database(name="hr", parameters=ReplicaState("thrift://a/hr", 9).parameters())}.get)
    assert [*states(between(source, target, "hr", "sales"))] == ["hr"], "its drop is to be loaded"
    assert (
        "no run starts for the database: the source database 'sales' is not replicated: its tables are those of another system"
        in caplog.text
    )


def test_replicas_at_different_events_are_looked_at_at_the_same_time() -> None:
    """After a change of the policy nothing is known of any; 200 calls one after another took seconds of each tick."""
    together, asked = Barrier(4), list[int]()

    class Log:
        def event(self, evid: int) -> Any:
            asked.append(evid)
            together.wait(10)
            return NotificationEvent(eventId=evid, eventTime=evid, message="other" if evid == 103 else "same")

    names = {f"db{number}": 100 + number // 2 for number in range(8)}  # two each at one event
    found = {name: ReplicaState(f"uuid/{name}", evid, evid, side.message_hash("same")) for name, evid in names.items()}
    source = side.Source(Log(), None, POLICY)  # type: ignore[arg-type]
    connection: Any = SimpleNamespace(source=source)
    seen = [Replica(name, evid, scanned=evid) for name, evid in names.items()]
    known = with_gaps(connection, seen, found, Cursor("policy"), 200)
    assert sorted(asked) == [100, 101, 102, 103]
    assert {one.database: one.first_event for one in known if one.first_event} == {"db6": 104, "db7": 104}


def test_no_look_is_saved_by_a_time_in_the_future() -> None:
    """The clock was set back since the tick that noted it."""
    now = 1_000_000.0
    cursor = Cursor("policy", settled=200, checked=now, rests_until=now + 10)
    assert cursor.ends_tick(200, now + 1)
    assert cursor.rests(now + 1)
    assert not cursor.ends_tick(200, now - 86_400)
    assert not cursor.rests(now - 86_400)


@pytest.mark.parametrize(
    ("others", "starts"), [({}, []), ({"t": 80}, [(Window(80, 90), 1)]), ({"t": 80, "u": 70}, [(Window(70, 90), 1)])]
)
def test_a_table_that_is_lost_for_long_delays_no_catch_up_of_another(others: dict[str, int], starts: list[object]) -> None:
    """It stands at event 0, so each catch-up of another one was the next attempt of its own, an hour later."""
    past = PastRun("run", "catch-up", Window(0, 80), 8, 1000.0)
    state = ReplicaState("uuid/sales", 90).quarantine("v", 0, "hidden").failed("v", 0, 1000)
    for name, evid in others.items():
        state = state.quarantine(name, evid, "no space").failed(name, evid, 1000)
    found = replicas(SOURCE, {"sales": state}, RunHistory(last_catch_up={"sales": past}), Cursor(""))
    assert [(one.window, one.attempt) for one in decide(1100.0, 90, found, 1000).starts] == starts


LOST = ReplicaState("uuid/sales", 90, at={"t": 0}, held={"t": "why"})
BEHIND = replace(LOST, at={"t": 40})
TAKEN = replace(LOST, at={"t": 40}, held={"t": "taken into the policy, and comes whole with the next load"})


@pytest.mark.parametrize(
    ("state", "gap", "replica", "log", "more"),
    [
        (LOST, Gap(UNFINISHED, 90, "why"), {}, 1, True),
        (LOST, None, {}, 91, False),
        (LOST, Refused("marked as incompatible"), {}, 1, True),
        (BEHIND, None, {}, 1, False),
        (BEHIND, None, {}, 60, True),
        (TAKEN, None, {}, 1, False),
        (replace(BEHIND, left={"gone": 30}), None, {}, 1, True),
        (LOST, Gap(UNFINISHED, 90, "why"), {"next_attempt": 1001.0}, 1, False),
        (LOST, Gap(UNFINISHED, 90, "why"), {"next_attempt": 87_400.0}, 1, True),
        (LOST, Gap(UNFINISHED, 90, "why"), {"busy": "run"}, 1, False),
        (LOST, Gap(UNFINISHED, 90, "why"), {"changed": True}, 1, False),
    ],
    ids=[
        "unfinished",
        "hidden",
        "nobody knows",
        "behind",
        "purged",
        "taken in",
        "left",
        "not due",
        "clock set back",
        "busy",
        "changed",
    ],
)
def test_catch_ups_that_may_bring_what_nobody_approved(
    state: ReplicaState, gap: Any, replica: Any, log: int, more: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Others go on by themselves: they bring events of windows that were approved."""

    def find_gap(*_: object, **how: object) -> Gap | None:
        assert how == {"read_log": False}  # as the dump of the catch-up does
        if isinstance(gap, Exception):
            raise gap
        return gap

    monkeypatch.setattr(log_scan, "find_gap", find_gap)
    metastore = SimpleNamespace(event=lambda evid: evid if evid >= log else None)
    policy = POLICY.model_copy(update={"approval": True, "excluded": "drop"})
    connection: Any = SimpleNamespace(
        source=SimpleNamespace(metastore=metastore, threads=SimpleNamespace(map=map), policy=policy, acid=True),
        target=SimpleNamespace(policy=policy),
    )
    (held,) = replicas(connection.source, {"sales": state}, RunHistory(), Cursor(""))
    (found,) = to_be_approved(connection, [replace(held, **replica)], {"sales": state}, {}, 100, 1000.0)
    assert found.to_approve is more
    if gap is None and not more:
        gap = Unreachable("the source does not answer")
        with pytest.raises(Unreachable):  # the tick ends, and the next one asks again
            to_be_approved(connection, [held], {"sales": state}, {}, 100, 1000.0)


@pytest.mark.parametrize("mark", ["", "hdfs://d/dumps/1"])
def test_a_killed_load_is_work_though_no_event_waits(monkeypatch: pytest.MonkeyPatch, mark: str) -> None:
    def is_interrupted(metastore: object, database: str) -> bool:
        if database == "odd":
            raise MetastoreError("no locks here")
        return True

    monkeypatch.setattr(log_scan, "is_interrupted", is_interrupted)
    names = ("sales", "odd", "busy", "new")
    found = {name: ReplicaState(f"uuid/{name}", None if name == "new" else 90, checkpoint=mark) for name in names}
    connection = between(SimpleNamespace(), SimpleNamespace(), *names)
    assert killed_loads(connection, found, {"busy": "run"}) == ({"sales"} if mark else set())
    (replica,) = replicas(SOURCE, {"sales": found["sales"]}, RunHistory(), Cursor(""), {"sales"} if mark else ())
    read = Cursor("", readings={"sales": Reading(90, 90)})
    with_work = with_gaps(connection, [replica], found, read, 90)
    assert [one.window for one in decide(1000.0, 90, with_work, 1000).starts] == ([Window(90, 90)] if mark else [])
