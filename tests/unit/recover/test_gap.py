"""Gaps: whether the source's log is the one that a replica follows."""

from __future__ import annotations

import json
from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from hive_replication.dump.beginnings import OpenedInLog
from hive_replication.errors import MetastoreError, Refused
from hive_replication.load.replica.failover_marks import FailoverMarks
from hive_replication.load.replica.state import ReplicaState, database_with_state
from hive_replication.metastore.types import Database, NotificationEvent, StorageDescriptor, Table
from hive_replication.recover import UNFINISHED, Gap, find_gap, history_gap, require_history
from tests import model

STATE = ReplicaState(source="s/db", applied=100, applied_time=5, applied_hash="ab")


def source(time: int = 5, message_hash: str = "ab") -> Any:
    """A source whose log has one event 100; without a hash it is purged."""
    return SimpleNamespace(reach=Mock(return_value=(time, message_hash)))


@pytest.mark.parametrize("current", [100, 150])
def test_the_event_that_was_applied_last_is_in_the_log(current: int) -> None:
    assert history_gap(source(), STATE, current) is None


@pytest.mark.parametrize(("time", "message_hash"), [(5, "cd"), (6, "ab")])
def test_another_event_of_the_same_id_is_another_history(time: int, message_hash: str) -> None:
    found = history_gap(source(time, message_hash), STATE, 150)
    assert found is not None
    assert (found.kind, found.applied) == ("other history", 100)


def test_a_log_that_ends_before_the_replica_is_another_history() -> None:
    found = history_gap(source(), STATE, 99)
    assert found is not None
    assert found.kind == "other history"
    assert "ends at event 99" in found.reason


def test_a_purged_event_is_a_gap_only_if_later_ones_exist() -> None:
    found = history_gap(source(0, ""), STATE, 150)
    assert found is not None
    assert found.kind == "missing events"
    assert history_gap(source(0, ""), STATE, 100) is None  # nothing to apply: nothing can be missing


def test_nothing_is_known_without_a_remembered_event() -> None:
    assert history_gap(source(9, "ff"), ReplicaState(source="s/db", applied=100), 150) is None


@pytest.mark.parametrize(
    ("written", "purged", "acid", "kind"),
    [
        ([], 3, True, "missing events"),
        ([], 1, True, ""),
        (["t"], 3, True, "missing events"),
        (["t"], 1, True, ""),
        ([], 3, False, ""),
    ],
)
def test_a_commit_of_which_the_log_tells_no_more_is_a_gap(
    monkeypatch: pytest.MonkeyPatch, written: list[str], purged: int, *, acid: bool, kind: str
) -> None:
    """The dump failed at it and advised to recover, which found none."""
    module = import_module("hive_replication.recover.gap")
    for name in ("forgotten", "history_gap"):
        monkeypatch.setattr(module, name, Mock(return_value=None))

    def event(evid: int, kind: str, **message: object) -> NotificationEvent:
        return NotificationEvent(evid, 0, kind, message=json.dumps(message))

    log = [event(2, "OPEN_TXN", fromTxnId=3, toTxnId=3), event(3, "OPEN_TXN", fromTxnId=9, toTxnId=9)]
    log += [event(4, "OPEN_TXN", fromTxnId=4, toTxnId=4), event(5, "OPEN_TXN", fromTxnId=5, toTxnId=5)]
    log += [event(6, "COMMIT_TXN", txnid=one, databases=["db"]) for one in (4, 3)]
    log[-1].eventId = 7

    def left(after: int, until: int) -> list[NotificationEvent]:
        return [one for one in log if max(after, purged) < one.eventId <= until]

    def one(evid: int) -> NotificationEvent | None:
        return next(iter(left(evid - 1, evid)), None)

    home = database_with_state(Database("db", locationUri="file:///db", parameters={}), ReplicaState("uuid/db", 3))
    target: Any = SimpleNamespace(policy=SimpleNamespace(target_of=str), storage=None, metastore=Mock(), identity="t")
    target.metastore.database.return_value = home
    metastore = Mock(
        events=left, events_left=left, event=one, current_event_id=lambda: 7, write_events=Mock(return_value=written)
    )
    metastore.database.return_value = Database("db", parameters={})
    source: Any = SimpleNamespace(identity="uuid", metastore=metastore, acid=acid, opened_in_log=OpenedInLog(metastore))
    gap = find_gap(source, target, "db")
    assert (gap.kind if gap else "") == kind
    assert [one.args for one in metastore.write_events.call_args_list] == ([(3, "db")] if acid else [])


DENIED = MetastoreError("get_table db.v: Permission denied")
VIEW = Table("v", "db", tableType="VIRTUAL_VIEW", parameters={}, sd=StorageDescriptor(cols=[]))
HIDDEN, UNSHOWN = "the source hides the table from replication: denied", "the source's metastore did not show it to the account"


@pytest.mark.parametrize("reason", [HIDDEN, UNSHOWN])
@pytest.mark.parametrize(
    ("answer", "listed", "gap"),
    [(DENIED, ["v"], False), (VIEW, [], False), (VIEW, ["v"], True), (None, [], True)],
    ids=["denied", "left out of lists", "shown", "gone"],
)
def test_a_table_that_the_source_still_hides_is_no_gap(reason: str, answer: object, listed: list[str], *, gap: bool) -> None:
    """Each catch-up was a recovery that did not bring it, and that copied transactional tables anew."""
    state = replace(STATE, at={"v": 0}, held={"v": reason})
    found, asked = gap_of(state, Mock(side_effect=answer if isinstance(answer, Exception) else lambda *_: answer), listed)
    assert (found.kind if found else None) == (UNFINISHED if gap else None)
    assert set(asked) == {("db", "v")}


@pytest.mark.parametrize("reason", [HIDDEN, UNSHOWN])
@pytest.mark.parametrize(
    "hides", ["", "table_statistics", "constraints", "partition_names", "partitions", "partition_statistics"]
)
def test_a_table_of_which_the_source_hides_something_else_that_a_dump_reads_is_no_gap(reason: str, hides: str) -> None:
    """A broken row of a partition is enough: the table itself was shown, and each catch-up was a recovery all the same."""
    table = model.table_image("v", model.Tab(7, f"{model.ROOT}/v", partitioned=True))
    part = model.partition_image("v", "p=1", model.Part(7, f"{model.ROOT}/v/p=1"))
    answers: dict[str, Any] = {
        "table_statistics": [], "constraints": (), "partition_names": ["p=1"], "partitions": [part], "partition_statistics": {}
    }  # fmt: skip
    calls = {call: Mock(side_effect=MetastoreError("broken") if call == hides else [answer]) for call, answer in answers.items()}
    state = replace(STATE, at={"v": 0}, held={"v": reason})
    found, _ = gap_of(state, Mock(return_value=table), ["v"], **calls)
    assert (found.kind if found else None) == (None if hides else UNFINISHED)


def test_what_failed_for_another_reason_is_recovered_whatever_is_hidden() -> None:
    state = replace(STATE, at={"t": 0, "v": 0}, held={"t": "its directory was missing", "v": HIDDEN})
    found, _ = gap_of(state, Mock(side_effect=DENIED), [])
    assert found is not None
    assert found.reason == "a bootstrap or a recovery failed for t, or passed it over: its directory was missing"


def test_windows_do_not_ask_for_what_is_hidden() -> None:
    assert gap_of(replace(STATE, at={"v": 0}, held={"v": HIDDEN}), Mock(), [], unfinished=False) == (None, [])


@pytest.mark.parametrize("obstacle", ["", "there is no dump"])
def test_an_interrupted_load_that_cannot_be_done_is_a_gap(obstacle: str) -> None:
    """Windows do it first, and were refused until somebody ran a recovery: now the next one recovers."""
    state = replace(STATE, checkpoint="hdfs://d/dumps/1", obstacle=obstacle)
    found, _ = gap_of(state, Mock(), [], unfinished=False)
    reason = "the load of hdfs://d/dumps/1 was interrupted, and cannot be done again: there is no dump"
    assert found == (Gap("interrupted load", 100, reason) if obstacle else None)


def gap_of(
    state: ReplicaState, table: Mock, listed: list[str], *, unfinished: bool = True, **calls: Mock
) -> tuple[Gap | None, list[object]]:
    """The gap of a replica whose source answers so, and which tables that was asked for."""
    home = database_with_state(Database("db", locationUri="file:///db", parameters={}), state)
    target: Any = SimpleNamespace(policy=SimpleNamespace(target_of=str), storage=Mock(), metastore=Mock(), identity="t")
    target.metastore.database.return_value = home
    target.storage.ls.return_value = ()
    metastore = Mock(table=table, table_names=lambda *_: listed, current_event_id=lambda: 100, **calls)
    metastore.database.return_value = Database("db", parameters={})
    made: Any = SimpleNamespace(identity="s", metastore=metastore, threads=SimpleNamespace(map=map), reach=lambda _: (5, "ab"))
    made.policy, made.acid, made.storage = SimpleNamespace(metadata_only=False), True, None
    return find_gap(made, target, "db", read_log=False, unfinished=unfinished), [one.args for one in table.call_args_list]


def test_a_restored_target_that_its_source_was_closed_for_is_no_gap() -> None:
    """A recovery would make the opened database a replica again, and retire what its users wrote."""
    marks = FailoverMarks("SOURCE", 100, successor="t/db", opened=5)
    home = database_with_state(Database("db", locationUri="file:///db", parameters={}), STATE)
    target: Any = SimpleNamespace(policy=SimpleNamespace(target_of=str), storage=None, metastore=Mock(), identity="t")
    target.metastore.database.return_value = home
    source: Any = SimpleNamespace(identity="s", metastore=Mock())
    source.metastore.database.return_value = Database("db", parameters=marks.parameters())
    for asked in (lambda: find_gap(source, target, "db"), lambda: require_history(source, target, "db", 100)):
        with pytest.raises(Refused, match="the source of 'db' was closed by a failover"):
            asked()
