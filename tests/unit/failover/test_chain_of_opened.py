"""A replica of a database that was opened: commits from before, whose log names databases of another metastore, still arrive."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from hive_replication.dump.incremental import dump_events as dumping
from hive_replication.dump.source import is_replica
from hive_replication.errors import MissingEvents
from hive_replication.failover.changes import changes
from hive_replication.failover.finish import opened
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.types import Database, NotificationEvent
from hive_replication.verify.witness.pending import pending_tables
from tests.unit.failover.fakes import Side, connected

WAS = ReplicaState("thrift://a:1/db", 9)


def commit(evid: int) -> NotificationEvent:
    """Of a transaction that stands for another's: it names the database of a transaction of the same number."""
    message = json.dumps({"txnid": evid, "databases": ["other"]})
    return NotificationEvent(eventId=evid, eventTime=0, eventType="COMMIT_TXN", message=message, messageFormat="json-0.2")


@pytest.fixture
def side() -> Side:
    """Opened after the second of three commits."""
    made: Any = Side({"a": {}}, [commit(1), commit(2), commit(3)], features=SimpleNamespace(major=4, statistics=True))
    made.parameters = opened(WAS.parameters(), WAS, "nightly", 1, 2, "PLANNED")
    made.write_events = Mock(return_value=[SimpleNamespace(table="a")])
    return made


@pytest.mark.parametrize(("after", "expected"), [(0, True), (1, True), (2, False), (3, False), (None, False)])
def test_its_transactions_stand_for_others_up_to_the_event_at_which_it_was_opened(
    side: Side, after: int | None, *, expected: bool
) -> None:
    assert is_replica(side.database("db"), after) == expected
    assert is_replica(Database(name="db", parameters=WAS.parameters()), after)
    assert not is_replica(Database(name="db", parameters={}), after)


@pytest.mark.parametrize(("after", "expected"), [(40, True), (50, False), (60, False), (None, False)])
def test_one_that_an_earlier_version_opened_does_not_count_for_ever(after: int | None, *, expected: bool) -> None:
    """That wrote ``true`` for good: commits and aborts of the whole metastore counted as the database's."""
    was = {"hive_replication.was_replica": "true"}
    assert is_replica(Database(name="db", parameters={**was, "hive_replication.failover.opened": "50"}), after) == expected
    assert not is_replica(Database(name="db", parameters=was), after)


def test_a_commit_of_which_the_log_tells_no_more_is_missing_too(side: Side) -> None:
    """Its transaction was open for longer than the log lasts: it was counted as one that had changed nothing."""
    metastore: Any = side
    metastore.write_events, metastore.events_left = Mock(return_value=[]), Mock(return_value=[])
    assert list(changes(connected(side, Side()).source, "db", 2)) == []
    with pytest.raises(MissingEvents, match="what transaction 3 wrote to 'other'"):
        list(changes(connected(side, Side()).source, "other", 2))


def test_a_commit_of_which_the_log_tells_a_part_is_missing_too(side: Side) -> None:
    """What it wrote last was taken for all of it: the failover went on without what it had written first."""
    metastore: Any = side
    opening = NotificationEvent(eventId=1, eventTime=0, eventType="OPEN_TXN", message=json.dumps({"fromTxnId": 3, "toTxnId": 3}))
    metastore.events_left = Mock(side_effect=[[], [], [opening]])
    with pytest.raises(MissingEvents, match="what transaction 3 wrote to 'other'"):
        list(changes(connected(side, Side()).source, "other", 2))
    assert [one.tables for one in changes(connected(side, Side()).source, "other", 2)] == [("a",)]


def test_its_events_wait_for_a_replica_that_stands_before(side: Side) -> None:
    source = connected(side, Side()).source
    assert [(one.evid, one.tables) for one in changes(source, "db", 1)] == [(2, ("a",)), (3, ("a",))]
    assert [one.evid for one in changes(source, "db", 2)] == []
    metastore: Any = side
    assert pending_tables(metastore, "db", 1, 3, 1000).transactions
    assert not pending_tables(metastore, "db", 2, 3, 1000).transactions


@pytest.mark.parametrize(("after", "expected"), [(1, True), (2, False)])
def test_a_dump_takes_them(side: Side, monkeypatch: pytest.MonkeyPatch, after: int, *, expected: bool) -> None:
    class Read(Exception):
        pass

    def reader(_source: object, _locations: object, _includes: object, _boundary: object, replica: object) -> None:
        raise Read(replica)

    monkeypatch.setattr(dumping, "TransactionReader", reader)
    source: Any = connected(side, Side()).source
    with pytest.raises(Read) as found:
        dumping.dump_events(source, dumping.Scope("db"), after, None, 0, None, None)  # type: ignore[arg-type]
    assert found.value.args == (expected,)
