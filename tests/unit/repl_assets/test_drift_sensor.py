"""The sensor on drift: rounds over tables, with a scan in place of servers."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest
from dagster._core.test_utils import create_run_for_test

from hive_replication.drift import Drifted, NoReplica, TableDrift, unread
from hive_replication.errors import BadRequest, MetastoreError, ReplicationError, Unreachable
from hive_replication.load.replica.state import ReplicaState
from hive_replication.policy import Policy, Root
from hive_replication.policy.checks import Drift
from hive_replication.policy.model import Warehouse
from repl_assets.catalog.keys import POLICY_TAG, Names
from repl_assets.jobs import found_drift
from repl_assets.jobs.found_drift import FoundDrift, Handover
from sensors import drift as sensor
from sensors import turns

NAMES = Names("default")


class Killed(BaseException):
    """Dagster ends the tick: nothing that follows happens."""


class Ticks:
    """Ticks of one sensor, whose cursor Dagster keeps only at their end."""

    def __init__(self, instance: dg.DagsterInstance) -> None:
        side = Warehouse(metastore="thrift://127.0.0.1:1", roots=(Root(uri="hdfs://s:8020/"),))
        databases = {"db": "db", "other": "other"}
        self.policy = Policy(source=side, target=side, dump_root="hdfs://s:8020/dumps", databases=databases)
        self.instance, self.cursor, self.seen = instance, None, list[str]()
        self.slow: dict[str, BaseException] = {}
        self.found: dict[str, TableDrift] = {}
        self.rounds = set[float]()
        self.parameters: dict[str, str] = {}  # of the target database
        self.partitions: dict[str, int] = {}
        self.uncounted = set[str]()
        self.said: object = None

    def scan(self, *_: object, begun: float) -> Any:
        self.rounds.add(begun)

        def look(table: str) -> TableDrift | None:
            self.seen.append(table)
            if table in self.slow:
                raise self.slow[table]
            return self.found.get(table)

        def finish() -> None:
            self.seen.append("finished")

        return SimpleNamespace(database="db", names=lambda: ["a", "b", "c"], table=look, finish=finish, told=lambda _: [])

    def partition_count(self, _: str, table: str) -> int:
        if table in self.uncounted:
            raise Unreachable("not now")
        return self.partitions.get(table, 0)

    def connection(self) -> Any:
        """Both sides."""
        metastore = SimpleNamespace(
            database=lambda _: SimpleNamespace(name="db", parameters=self.parameters),
            partition_count=self.partition_count,
        )
        storage = SimpleNamespace(roots=())
        target = SimpleNamespace(policy=self.policy, metastore=metastore, storage=storage)
        return SimpleNamespace(source=target, target=target)

    def tick(self, now: float, budget: float = 1e-6, database: str = "db") -> list[dg.RunRequest]:
        """One tick, with time for one table unless a budget says otherwise: the runs that it requests."""
        context = dg.build_sensor_context(self.instance, cursor=self.cursor)
        self.said = said = sensor.tick(context, self.connection(), NAMES, Drift(every=100, budget=budget), database, now)
        self.cursor = context.cursor
        return list(said.run_requests or ()) if isinstance(said, dg.SensorResult) else []

    def round(self, now: float) -> list[dg.RunRequest]:
        """A round begins, and ends: the runs that it requests."""
        return [request for second in range(6) for request in self.tick(now + second)]

    def run(self, request: dg.RunRequest, status: dg.DagsterRunStatus) -> str:
        """A run of it."""
        return create_run_for_test(self.instance, request.job_name or "", status=status, tags={POLICY_TAG: "default"}).run_id


@pytest.fixture
def ticks(monkeypatch: pytest.MonkeyPatch) -> Iterator[Ticks]:
    with dg.DagsterInstance.ephemeral() as instance:
        made = Ticks(instance)
        monkeypatch.setattr(sensor, "DriftScan", made.scan)
        monkeypatch.setattr(sensor, "_TURNS", turns.Turns())
        yield made


def tables_of(request: dg.RunRequest) -> list[str]:
    assert request.job_name == "find_drift_db"
    return request.run_config["ops"]["find_drift_db__tables"]["config"]["tables"]


def repaired(requests: list[dg.RunRequest]) -> list[tuple[str, list[str]]]:
    """Tables and partitions that are repaired."""
    assert {request.job_name for request in requests} <= {"repair_db"}
    configs = [request.run_config["ops"]["repair_db__partitions"]["config"] for request in requests]
    return [(config["table"], config["partitions"]) for config in configs]


def test_a_round_begins_though_the_clock_was_set_back_since_the_last_one(ticks: Ticks) -> None:
    ticks.round(100_000.0)
    ticks.tick(100_050.0)
    assert isinstance(ticks.said, dg.SkipReason)
    assert ticks.said.skip_message == "the next round starts in 50 s"
    ticks.round(1000.0)
    assert ticks.rounds == {100_000.0, 1000.0}


def test_one_database_is_scanned_at_a_time_so_that_threads_are_left_to_the_other_sensors(ticks: Ticks) -> None:
    other, scanned, goes_on = Ticks(ticks.instance), threading.Event(), threading.Event()

    def wait(_: str) -> int:
        scanned.set()
        assert goes_on.wait(10)
        return 0

    ticks.partition_count = lambda _, table: wait(table)  # type: ignore[method-assign]
    thread = threading.Thread(target=ticks.tick, args=(1000.0,))
    thread.start()
    try:
        assert scanned.wait(10)
        other.tick(1000.0, database="other")
        assert isinstance(other.said, dg.SkipReason)
        assert other.said.skip_message == "default/db is scanned first: one database of a code server at a time"
        position = "hive_replication/drift/default/other"
        assert ticks.instance.daemon_cursor_storage.get_cursor_values({position}) == {}, "no table that would count as slow"
    finally:
        goes_on.set()
        thread.join()
    other.tick(1001.0, database="other")
    assert ticks.seen == ["a", "a"]


def test_the_oldest_round_goes_on_first_while_somebody_looks_after_it(monkeypatch: pytest.MonkeyPatch) -> None:
    now, order = 1000.0, turns.Turns()
    monkeypatch.setattr(turns.time, "monotonic", lambda: now)

    def asks(name: str, begun: float, *, done: bool = False) -> str:
        with order.turn(name, (done, begun)) as first:
            return first

    with order.turn("a", (False, 50.0)) as first:
        assert first == ""
        assert [asks("b", 40.0), asks("c", 0.0, done=True), asks("a", 50.0)] == ["a"] * 3
    assert [asks("a", 50.0), asks("c", 0.0, done=True)] == ["b", "b"]
    assert [asks("b", 40.0), asks("c", 0.0, done=True), asks("a", 50.0)] == ["", "a", ""]
    assert [asks("d", 10.0, done=True), asks("c", 0.0, done=True), asks("d", 10.0, done=True)] == ["c", "", ""]
    with order.turn("a", (False, 50.0)):
        asks("b", 40.0)
    now += 100.0
    assert asks("c", 60.0) == "", "nobody has asked for b for long"
    with pytest.raises(Killed), order.turn("a", (False, 50.0)):
        raise Killed
    assert asks("c", 60.0) == ""


def test_databases_whose_servers_are_down_do_not_keep_the_others_from_their_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """The age of their rounds stays as it is, so that they were the oldest ones for as long as the outage lasted."""
    now, order, scanned = 1000.0, turns.Turns(), list[str]()
    monkeypatch.setattr(turns.time, "monotonic", lambda: now)

    def asks(name: str, begun: float, *, down: bool) -> None:
        with suppress(Unreachable), order.turn(name, (True, begun)) as first:
            if first:
                return
            scanned.append(name)
            if down:
                raise Unreachable("nobody answers")

    for _ in range(2):
        now += 30.0
        for name, begun, down in (("a", 0.0, True), ("c", 1.0, True), ("b", 100.0, False)):
            asks(name, begun, down=down)
    assert scanned.count("b") >= 1
    with order.turn("a", (True, 0.0)):  # while it looks whether its servers are back
        asks("b", 100.0, down=False)
    scanned.clear()
    asks("c", 1.0, down=True)
    asks("b", 100.0, down=False)
    assert scanned == ["b"], "b waited, and they come last"
    now += 601.0
    with order.turn("x", (False, 0.0)):
        asks("b", 100.0, down=False)
        asks("c", 1.0, down=False)
    asks("b", 100.0, down=False)
    asks("c", 1.0, down=False)
    assert scanned == ["b", "c"], "ten minutes later it comes first again"


def test_a_scan_that_never_ends_keeps_no_other_database_from_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dagster ends the tick and not its thread, which may wait for a store for ever."""
    now, order = 1000.0, turns.Turns()
    monkeypatch.setattr(turns.time, "monotonic", lambda: now)

    def asks(name: str, begun: float) -> str:
        with order.turn(name, (False, begun)) as first:
            return first

    with order.turn("a", (False, 0.0)):
        assert asks("b", 50.0) == "a"
        now += 290.0
        assert asks("b", 50.0) == "a"
        now += 11.0
        assert [asks("a", 0.0), asks("b", 50.0)] == ["b", ""], "it is not the first one again"
        newer = ExitStack()
        assert newer.enter_context(order.turn("a", (False, 0.0))) == ""
    with newer:
        assert asks("b", 50.0) == "a", "what ends at last takes nobody's turn"
    assert asks("b", 50.0) == ""


@pytest.mark.parametrize("slow", ["a", "b", "c"])
def test_a_table_that_takes_longer_than_a_tick_is_left_to_a_run_and_does_not_block_the_others(ticks: Ticks, slow: str) -> None:
    ticks.slow[slow] = Killed()
    requests: list[dg.RunRequest] = []
    for second in range(10):
        try:
            requests += ticks.tick(1000.0 + second)
        except Killed:
            continue
    (request,) = requests
    assert tables_of(request) == [slow]
    assert ticks.seen == ["a", "b", "c"], "the run deletes the snapshots that its table needs"
    (again,) = ticks.round(1200.0)
    assert tables_of(again) == [slow]
    assert again.run_key != request.run_key
    assert ticks.seen[3:] == sorted({*"abc"} - {slow})
    del ticks.slow[slow]
    ticks.seen.clear()
    assert ticks.round(1200.0 + 7 * 86_400) == []
    assert ticks.seen == ["a", "b", "c", "finished"], "it is not slow for ever"
    assert {1000.0, 1200.0} < ticks.rounds


def test_a_table_of_many_partitions_is_left_to_a_run(ticks: Ticks) -> None:
    ticks.partitions = {"a": 2_001, "b": 2_000, "c": 10**6}
    (request,) = ticks.round(1000.0)
    assert (tables_of(request), ticks.seen) == (["a", "c"], ["b"])
    assert request.run_config["ops"]["find_drift_db__tables"]["config"]["begun"] == 1000.0
    assert ticks.tick(1050.0) == []


def test_a_round_that_leaves_no_table_to_a_run_is_remembered(ticks: Ticks) -> None:
    def left_nothing() -> dict[str, float]:
        return sensor.all_in_ticks(ticks.instance, NAMES, ["db", "other"])

    ticks.partitions = {"c": 10**6}
    ticks.round(1000.0)
    assert left_nothing() == {}
    del ticks.partitions["c"]
    ticks.tick(1200.0)
    assert left_nothing() == {}, "the round has not ended"
    ticks.round(1201.0)
    assert left_nothing() == {"db": 1200.0}
    ticks.partitions = {"c": 10**6}
    ticks.round(1400.0)
    assert left_nothing() == {}


def test_no_other_run_is_requested_while_one_looks_for_drift(ticks: Ticks) -> None:
    ticks.partitions = {"c": 10**6}
    (request,) = ticks.round(1000.0)
    run = ticks.run(request, dg.DagsterRunStatus.STARTED)
    ticks.found["a"] = TableDrift("a", 1, (Drifted("", "digest", "1 new"),))
    assert repaired(ticks.round(1200.0)) == [("a", [])], "small tables go on being scanned"
    assert ticks.seen == ["a", "b"] * 2
    ticks.found.clear()
    ended = ticks.instance.get_run_by_id(run)
    assert ended
    ticks.instance.report_run_failed(ended)
    (again,) = ticks.round(1400.0)
    assert tables_of(again) == ["c"]


def test_what_a_run_has_found_is_repaired_once(ticks: Ticks) -> None:
    handover = Handover(ticks.instance, NAMES, "db")
    assert ticks.round(1000.0) == []
    run = create_run_for_test(ticks.instance, "find_drift_db", status=dg.DagsterRunStatus.STARTED, tags={POLICY_TAG: "default"})
    handover.add(FoundDrift("a", 1000.0, (("p=1", "x"), ("p=2", "y"))))
    assert repaired(ticks.tick(1010.0)) == [("a", ["p=1", "p=2"])]
    handover.add(FoundDrift("b", 1000.0, (("", "z"),)))
    requests = ticks.tick(1011.0)
    assert repaired(requests) == [("b", [])]
    assert ticks.tick(1012.0) == []
    assert [one.table for one in handover.read()] == ["a", "b"], "the run may add to it"
    repair = ticks.run(requests[0], dg.DagsterRunStatus.STARTED)
    ticks.instance.report_run_failed(run)
    assert ticks.tick(1013.0) == []
    assert handover.read(), "a repair is in progress"
    ended = ticks.instance.get_run_by_id(repair)
    assert ended
    ticks.instance.report_run_failed(ended)
    assert ticks.tick(1014.0) == []
    assert handover.read() == ()
    assert ticks.round(1200.0) == []


def test_what_a_run_adds_at_its_end_is_not_cleared_with_the_rest(ticks: Ticks, monkeypatch: pytest.MonkeyPatch) -> None:
    handover = Handover(ticks.instance, NAMES, "db")
    handover.add(FoundDrift("a", 1000.0, (("", "x"),)))
    assert repaired(ticks.tick(1000.0)) == [("a", [])]
    busy = sensor._busy  # pyright: ignore[reportPrivateUsage]

    def ends(instance: dg.DagsterInstance, names: Names, job: str) -> bool:
        if job == "find_drift_db":
            handover.add(FoundDrift("b", 1000.0, (("", "y"),)))
        return busy(instance, names, job)

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(sensor, "_busy", ends)
        ticks.tick(1001.0)
    assert repaired(ticks.tick(1002.0)) == [("b", [])]


@pytest.mark.parametrize("by_a_run", [True, False])
def test_all_that_was_found_of_a_large_table_is_repaired_without_another_look(ticks: Ticks, *, by_a_run: bool) -> None:
    names = [f"p={number}" for number in range(1_201)]
    found = TableDrift("a", len(names), tuple(Drifted(name, "x", "1 new") for name in names))
    if by_a_run:
        ticks.round(1000.0)
        Handover(ticks.instance, NAMES, "db").add(FoundDrift.of(found, 1000.0))
    else:
        ticks.found["a"] = found
    seen, repairs = len(ticks.seen), list[list[str]]()
    for second in range(10, 14):
        requests = ticks.tick(1000.0 + second)
        repairs += [partitions for _, partitions in repaired(requests)]
        assert len(requests) <= 1 or not by_a_run, "the next one when the last one has ended"
        for run in [ticks.run(request, dg.DagsterRunStatus.STARTED) for request in requests]:
            assert ticks.tick(1000.0 + second) == []
            ended = ticks.instance.get_run_by_id(run)
            assert ended
            ticks.instance.report_run_failed(ended)
        ticks.found.clear()
    assert [len(some) for some in repairs] == [500, 500, 201]
    assert [name for some in repairs for name in some] == names
    assert Handover(ticks.instance, NAMES, "db").read() == ()
    assert "a" not in ticks.seen[seen + (not by_a_run) :]


def test_what_was_found_anew_takes_the_place_of_what_was_found_before(ticks: Ticks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(found_drift, "MOST_HANDED", 500)
    handover = Handover(ticks.instance, NAMES, "db")
    drifted = tuple(Drifted(f"p={number}", "x", "1 new") for number in range(501))
    handover.add(FoundDrift.of(TableDrift("a", 501, drifted), 1000.0))
    handover.add(FoundDrift.of(TableDrift("a", 501, drifted), 2000.0))
    (found,) = handover.read()
    assert (len(found.drifted), found.begun) == (500, 2000.0)


def test_a_server_that_does_not_answer_is_no_fault_of_a_table(ticks: Ticks) -> None:
    ticks.slow["a"] = Unreachable("not now")
    for second in range(2):
        with pytest.raises(Unreachable):
            ticks.tick(1000.0 + second)
    assert ticks.seen == ["a", "a"]


@pytest.mark.parametrize("why", [None, ReplicationError("a directory is odd")])
def test_a_table_that_cannot_be_read_is_left_to_a_run_and_does_not_block_the_others(ticks: Ticks, why: Exception | None) -> None:
    if why:
        ticks.slow["b"] = why
    else:
        ticks.found["b"] = unread("b", Unreachable("the storage root of b cannot be reached"))
    (request,) = ticks.round(1000.0)
    assert (tables_of(request), ticks.seen) == (["b"], ["a", "b", "c"])
    assert sensor.read_round(ticks.cursor).slow == {}


def test_an_outage_after_some_tables_were_scanned_blames_none_of_them(ticks: Ticks) -> None:
    ticks.uncounted.add("c")
    assert ticks.tick(1000.0, budget=60) == []
    ticks.uncounted.clear()
    assert ticks.tick(1001.0, budget=60) == []
    assert ticks.seen == ["a", "b", "c", "finished"], "what was scanned is not scanned again"
    assert sensor.read_round(ticks.cursor).slow == {}


def test_a_failover_in_the_middle_of_a_tick_ends_it_and_is_no_fault_of_a_table(ticks: Ticks) -> None:
    ticks.slow["b"] = NoReplica("the target's 'db' is no replica any more")
    with pytest.raises(NoReplica):
        ticks.tick(1000.0, budget=60)
    ticks.slow.clear()
    ticks.tick(1001.0, budget=60)
    assert ticks.seen == ["a", "b", "a", "b", "c", "finished"]
    assert sensor.read_round(ticks.cursor).slow == {}


@pytest.mark.parametrize("while_counted", [True, False])
def test_what_was_found_before_an_outage_is_repaired(ticks: Ticks, *, while_counted: bool) -> None:
    ticks.found["a"] = TableDrift("a", 1, (Drifted("p=1", "digest", "1 new"),))
    if while_counted:
        ticks.uncounted.add("b")
    else:
        ticks.slow["b"] = Unreachable("not now")
    assert repaired(ticks.tick(1000.0, budget=60)) == [("a", ["p=1"])]
    ticks.uncounted.clear()
    ticks.slow.clear()
    ticks.seen.clear()
    assert ticks.tick(1001.0, budget=60) == []
    assert ticks.seen == ["b", "c", "finished"]
    assert sensor.read_round(ticks.cursor).slow == {}


def test_what_was_undone_since_a_run_found_its_drift_is_not_repaired(ticks: Ticks) -> None:
    """Its repair would end the undo."""
    handover = Handover(ticks.instance, NAMES, "db")
    for table in "abc":
        handover.add(FoundDrift(table, 1000.0, (("", "x"),)))
    held = {"a": "undone to 90 by request", "b": "held with a: undone to 90 by request"}
    ticks.parameters = ReplicaState("s/db", 100, at={"a": 90, "b": 90}, held=held).parameters()
    assert repaired(ticks.tick(1001.0)) == [("c", [])]
    ticks.tick(1002.0)
    assert handover.read() == ()


def test_nothing_is_repaired_in_a_database_that_was_undone(ticks: Ticks) -> None:
    ticks.parameters = replace(ReplicaState("s/db", 100), undone=90).parameters()
    ticks.tick(1000.0)
    assert isinstance(ticks.said, dg.SkipReason)
    assert ticks.said.skip_message == "db: undone to event 90; hive-repl undo db --release"
    assert ticks.seen == []


@pytest.mark.parametrize(
    "problem",
    [
        BadRequest("the target has no replica 'db': nothing can drift"),
        BadRequest("the source has no database 'db'"),
        MetastoreError("db: not allowed"),
        Unreachable("not now"),
    ],
)
def test_a_tick_with_nothing_to_scan_is_skipped(problem: Exception, ticks: Ticks, monkeypatch: pytest.MonkeyPatch) -> None:
    def scan(*_: object, begun: float) -> Any:
        def names() -> list[str]:
            raise problem

        return SimpleNamespace(database="db", names=names)

    @dg.job(name="repair_db")
    def job() -> None: ...

    monkeypatch.setattr(sensor, "DriftScan", scan)
    monkeypatch.setattr(sensor, "connect_for_tick", lambda *_: ticks.connection())
    made = sensor.drift_sensor(ticks.policy, Drift(), "db", [job])
    said = made.evaluate_tick(dg.build_sensor_context(ticks.instance, resources={NAMES.connection: None}))
    assert (said.skip_message, said.run_requests) == (f"nothing is scanned: {problem}", [])
