"""Which part of a long log is read for the lags of databases that stand at different places in it."""

from __future__ import annotations

import json
import time
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest
from hive_metastore.ttypes import DatabaseType

from hive_replication.dump.source import Source
from hive_replication.errors import MissingEvents, Unreachable
from hive_replication.health.alarms import of_database
from hive_replication.health.policy_status import condition_of
from hive_replication.lag import Lag, LagReader, lag
from hive_replication.load.replica.state import PAUSED, ReplicaState
from hive_replication.load.replica.target import Target
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.types import Database, NotificationEvent
from hive_replication.parallel import Threads
from hive_replication.policy import Policy
from repl_assets.checks.up_to_date import is_up_to_date
from tests.lags import FILTERED, POLICY, insert_outside

_END = 100  # event id
_MANY = 8_000


class Log:
    """A source's log: all events are of one database, but one near the end."""

    views_of_materialized = False

    def __init__(self) -> None:
        self.read: list[int] = []

    def current_event_id(self) -> int:
        return _END

    def events(self, after: int, until: int, **_: object) -> Iterator[NotificationEvent]:
        for evid in range(after + 1, until + 1):
            self.read.append(evid)
            row = NotificationEvent(eventId=evid, eventTime=evid, dbName="quiet" if evid == _END - 2 else "hot", tableName="t")
            row.eventType, row.catName, row.message, row.messageFormat = "DROP_TABLE", "hive", "{}", "json-0.2"
            yield row


def reader(monkeypatch: pytest.MonkeyPatch, log: Log, most: int | None, **applied: int) -> LagReader:
    def database(name: str) -> Database:
        return Database(name=name, parameters=ReplicaState(f"uuid/{name}", applied[name]).parameters())

    monkeypatch.setattr("hive_replication.lag.reader.history_gap", lambda *_: None)
    policy: Policy = POLICY.model_copy(update={"databases": {name: name for name in applied}})
    source = SimpleNamespace(metastore=log, policy=policy, storage=SimpleNamespace(threads=None), acid=True)
    source.threads = Threads(8, "table")
    target = SimpleNamespace(metastore=SimpleNamespace(database=database), policy=policy)
    return LagReader(cast("Source", source), cast("Target", target), most_events=most)


def test_a_database_far_behind_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    lags = reader(monkeypatch, Log(), 10, hot=5, quiet=95)
    for waiting in (10, 20, 30):
        hot, quiet = lags.read()
        assert (hot.waiting, hot.complete, hot.bytes_waiting) == (waiting, False, None)
        assert _seconds(hot) - _seconds(quiet) == pytest.approx(_END - 2 - 6, abs=5)
        assert (quiet.waiting, quiet.complete) == (1, True)


def test_one_lag_takes_no_more_of_a_long_log_than_tells_since_when_an_event_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    for database, until, waiting in (("hot", 15, 10), ("quiet", _END, 1)):
        log = Log()
        lags = reader(monkeypatch, log, 10, **{database: 5})
        found = lag(lags._source, lags._target, database, most_events=10)
        assert log.read == list(range(6, until + 1))
        assert (found.waiting, found.complete) == (waiting, until == _END)
    whole = lag(lags._source, lags._target, "quiet")
    assert (whole.waiting, whole.complete) == (1, True)


def test_each_event_is_read_once_where_none_is_far_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    for most in (10, None):
        log = Log()
        lags = reader(monkeypatch, log, most, hot=90, quiet=95)
        assert [(one.waiting, one.complete) for one in (*lags.read(), *lags.read())] == [(9, True), (1, True)] * 2
        assert log.read == list(range(91, _END + 1))


def test_a_log_that_is_slow_to_read_is_read_on_by_the_next_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hive_replication.lag.cached_log._LONGEST", 0.0)
    lags = reader(monkeypatch, Log(), 10, hot=95, quiet=97)
    assert [(hot.waiting, hot.complete) for hot, _ in (lags.read() for _ in range(6))] == [
        (1, False), (2, False), (2, False), (3, False), (4, True), (4, True)
    ]  # fmt: skip
    whole = reader(monkeypatch, Log(), None, hot=95, quiet=97)
    assert [(one.waiting, one.complete) for one in whole.read()] == [(4, True), (1, True)]


REMOTE = Database(name="remote", type=DatabaseType.REMOTE)


def test_a_database_that_the_source_does_not_have_is_told_from_one_without_a_replica(monkeypatch: pytest.MonkeyPatch) -> None:
    lags = reader(monkeypatch, Log(), 10, hot=95, quiet=95, new=0, dropped=0, remote=0)
    source, target = lags._source.metastore, lags._target.metastore
    have = target.database
    monkeypatch.setattr(target, "database", lambda name: have(name) if name in ("hot", "quiet") else None)
    monkeypatch.setattr(source, "database", {"new": Database(name="new"), "remote": REMOTE}.get, raising=False)
    assert {one.database: (one.applied, one.in_source) for one in lags.read()} == {
        "hot": (95, True),
        "quiet": (95, True),
        "new": (None, True),
        "dropped": (None, False),
        "remote": (None, False),
    }


def test_a_database_that_a_metastore_does_not_show_hides_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    lags = reader(monkeypatch, Log(), 10, hot=95, hr=0, closed=0)
    source, target = lags._source.metastore, lags._target.metastore
    have = target.database

    def shown(name: str) -> Database | None:
        if name == "closed":
            raise MetastoreError("closed: permission denied")
        return have(name) if name == "hot" else None

    def denied(name: str) -> Database:
        raise MetastoreError(f"{name}: permission denied")

    monkeypatch.setattr(target, "database", shown)
    monkeypatch.setattr(source, "database", denied, raising=False)
    assert {one.database: (one.applied, one.gap) for one in lags.read()} == {
        "hot": (95, ""),
        "hr": (None, "hr: permission denied"),
        "closed": (None, "closed: permission denied"),
    }


def test_many_databases_are_read_at_the_same_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A tick of the sensor was killed, each time anew, where each of hundreds of databases took its calls after the others'."""
    lags = reader(monkeypatch, Log(), None, **{f"d{n}": 95 if n % 2 else 0 for n in range(200)})
    have = lags._target.metastore.database

    def slow(*arguments: object) -> None:
        time.sleep(0.02)

    def database(name: str) -> Database | None:
        slow()
        return have(name) if int(name[1:]) % 2 else None

    monkeypatch.setattr(lags._target.metastore, "database", database)
    monkeypatch.setattr(lags._source.metastore, "database", slow, raising=False)
    monkeypatch.setattr("hive_replication.lag.reader.history_gap", slow)
    begun = time.monotonic()
    found = lags.read()
    assert time.monotonic() - begun < 4  # one after another they take eight seconds
    assert [(one.database, one.applied, one.in_source) for one in found] == [
        (f"d{n}", 95 if n % 2 else None, bool(n % 2)) for n in range(200)
    ]


class Purged(Log):
    """A log that begins after some event."""

    def __init__(self, first: int) -> None:
        super().__init__()
        self.first = first

    def events(self, after: int, until: int, **_: object) -> Iterator[NotificationEvent]:
        if after + 1 < self.first:
            raise MissingEvents(f"the log lacks the events {after + 1} to {self.first - 1}")
        return super().events(after, until)


@pytest.mark.parametrize("reason", ["undone to 5 by request", "event 6 failed"])
def test_a_table_that_was_undone_for_long_is_no_gap_of_its_database(monkeypatch: pytest.MonkeyPatch, reason: str) -> None:
    """As long as the log has its events they count as the table's; one that is held otherwise cannot catch up without them."""
    held = ReplicaState("uuid/hot", 95).quarantine("t", 5, reason)
    for first, waiting in ((1, 94), (50, 4)):
        lags = reader(monkeypatch, Purged(first), None, hot=95)
        shown = Database(name="hot", parameters=held.parameters())
        monkeypatch.setattr(lags._target.metastore, "database", {"hot": shown}.get)
        (found,) = lags.read()
        if first == 1 or held.waits("t"):
            assert (found.gap, found.tables[0].waiting) == ("", waiting)
        else:
            assert (found.gap, found.waiting) == ("the log lacks the events 6 to 49", None)


@pytest.mark.parametrize("obstacle", ["", "there is no dump"])
def test_an_interrupted_load_that_cannot_be_done_is_shown(monkeypatch: pytest.MonkeyPatch, obstacle: str) -> None:
    """Status, alarms and checks showed a lag alone. One that runs has the mark, too, and is nobody's concern."""
    monkeypatch.setattr("hive_replication.lag.reader.is_interrupted", lambda *_: False)
    lags = reader(monkeypatch, Log(), None, hot=95)
    state = ReplicaState("uuid/hot", 95, checkpoint="hdfs://d/dumps/1", obstacle=obstacle)
    monkeypatch.setattr(lags._target.metastore, "database", {"hot": Database(name="hot", parameters=state.parameters())}.get)
    (found,) = lags.read()
    reason = "the load of hdfs://d/dumps/1 was interrupted, and cannot be done again: there is no dump"
    assert (found.gap, found.changed) == (reason if obstacle else "", "")


@pytest.mark.parametrize(
    ("change", "answer", "told"),
    [
        ({}, True, True),
        ({}, MetastoreError("no locks here"), False),
        ({"checkpoint": ""}, True, False),
        ({"paused": "by anna"}, True, False),
        ({"applied": None}, True, False),
    ],
    ids=["killed", "not known", "none", "paused", "first bootstrap"],
)
def test_a_killed_load_of_objects_is_told_where_nothing_waits(
    monkeypatch: pytest.MonkeyPatch, change: dict[str, Any], answer: bool | Exception, told: bool
) -> None:
    """In a quiet database every light was green, though tables were half made."""
    monkeypatch.setattr("hive_replication.lag.reader.is_interrupted", Mock(side_effect=[answer]))
    lags = reader(monkeypatch, Log(), None, sales=_END)
    state = replace(ReplicaState("uuid/sales", _END, checkpoint="hdfs://d/dumps/1"), **change)
    parameters = state.parameters() | ({PAUSED: state.paused} if state.paused else {})
    monkeypatch.setattr(lags._target.metastore, "database", {"sales": Database(name="sales", parameters=parameters)}.get)
    monkeypatch.setattr(lags._source.metastore, "database", lambda _: Database(parameters={}), raising=False)
    (found,) = lags.read()
    assert ("was killed" in found.changed) is told
    if told:
        assert not is_up_to_date(found, 60)
        assert condition_of(state, found, 60) == "behind"


@pytest.mark.parametrize(("reason", "late"), [("undone to 5 by request", ()), ("event 6 failed", ("t",))])
def test_a_table_that_was_undone_makes_its_database_not_late(
    monkeypatch: pytest.MonkeyPatch, reason: str, late: tuple[str, ...]
) -> None:
    """Undoing one table raised the alarm of a lag, and no other lateness could begin one until the table's release."""
    lags = reader(monkeypatch, Log(), None, hot=_END)
    shown = Database(name="hot", parameters=ReplicaState("uuid/hot", _END).quarantine("t", 5, reason).parameters())
    monkeypatch.setattr(lags._target.metastore, "database", {"hot": shown}.get)
    (found,) = lags.read()
    kinds = [alarm.kind for alarm in of_database(found, 60)]
    assert (found.late, bool(found.waiting), bool(found.seconds_behind)) == (late, bool(late), bool(late))
    assert kinds == (["lag", "held table"] if late else [])
    assert [(one.table, one.waiting) for one in found.tables] == [("t", _END - 6)]


def test_a_database_with_an_undone_table_is_not_level_before_the_log_is_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only events of that table were read yet: what waits beyond them showed as no lag at all, and raised no alarm."""

    class Others(Log):
        def events(self, after: int, until: int, **_: object) -> Iterator[NotificationEvent]:
            for row in super().events(after, until):
                row.tableName = "t" if row.eventId <= 50 else "other"
                yield row

    lags = reader(monkeypatch, Others(), 10, hot=50)
    state = ReplicaState("uuid/hot", 50).quarantine("t", 5, "undone to 5 by request")
    monkeypatch.setattr(lags._target.metastore, "database", {"hot": Database(name="hot", parameters=state.parameters())}.get)
    found = [lags.read()[0] for _ in range(10)]
    assert [(one.waiting, one.complete) for one in found[:4]] == [(None, False)] * 4
    assert all(one.seconds_behind is None if one.waiting is None else _seconds(one) > 0 for one in found)
    assert (found[-1].waiting, found[-1].complete) == (49, True)
    assert "lag" in [alarm.kind for alarm in of_database(found[-1], 60)]


class Transactions(Log):
    """A log of transactions that ended, with no other event: one of the database, and one of another."""

    def events(self, after: int, until: int, **_: object) -> Iterator[NotificationEvent]:
        for row in super().events(after, until):
            row.eventType, row.catName, row.dbName, row.tableName = "OPEN_TXN", None, None, None
            if row.eventId in (97, 98):
                row.eventType = "COMMIT_TXN"
                row.message = json.dumps({"txnid": row.eventId, "databases": ["hot" if row.eventId == 97 else "other"]})
            yield row


def test_a_commit_waits_though_its_row_is_of_no_database(monkeypatch: pytest.MonkeyPatch) -> None:
    """The files of an INSERT into a transactional table come with it alone."""
    waits, level = reader(monkeypatch, Transactions(), None, hot=96, quiet=96).read()
    assert (waits.waiting, waits.bytes_waiting, waits.tables) == (1, None, ())
    assert _seconds(waits) > 0
    assert (level.waiting, level.bytes_waiting, level.seconds_behind) == (0, 0, 0)
    (applied,) = reader(monkeypatch, Transactions(), None, hot=97).read()
    assert (applied.waiting, applied.bytes_waiting) == (0, 0)


class Outside(Log):
    """A log of one INSERT into a partition outside the filter of its table."""

    def events(self, after: int, until: int, **_: object) -> Iterator[NotificationEvent]:
        return iter([insert_outside(_END)] if after < _END <= until else [])


def test_an_insert_outside_a_filter_waits_where_a_partition_inside_may_have_its_directory(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    lags = reader(monkeypatch, Outside(), None, sales=96)
    cast("Any", lags._source).policy = FILTERED
    (lag_of_sales,) = LagReader(lags._source, lags._target).read()
    assert (lag_of_sales.waiting, lag_of_sales.bytes_waiting) == (1, 0)


class LongLog(Log):
    """A log of many events, of which nothing is noted down."""

    def current_event_id(self) -> int:
        return _MANY

    def events(self, after: int, until: int, **_: object) -> Iterator[NotificationEvent]:
        for row in super().events(after, until):
            self.read.clear()
            yield row


def test_millions_of_events_may_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    lags = reader(monkeypatch, LongLog(), None, hot=0, quiet=_MANY)
    tracemalloc.start()
    try:
        hot, _ = lags.read()
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (hot.waiting, hot.complete) == (_MANY - 1, True)
    assert kept / _MANY < 40  # bytes


class Ceases(Log):
    """A metastore that ceases to answer, once."""

    def events(self, after: int, until: int, **_: object) -> Iterator[NotificationEvent]:
        for row in super().events(after, until):
            if row.eventId == 50 and self.read.count(50) == 1:
                raise Unreachable("no answer")
            yield row


def test_an_outage_while_the_log_is_read_counts_nothing_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    log = Ceases()
    lags = reader(monkeypatch, log, None, hot=5, quiet=95)
    with pytest.raises(Unreachable):
        lags.read()
    assert [one.waiting for one in lags.read()] == [_END - 5 - 1, 1]
    assert sorted(set(log.read)) == list(range(6, _END + 1))
    assert log.read.count(49) == 1


def _seconds(found: Lag) -> float:
    assert found.seconds_behind is not None
    return found.seconds_behind
