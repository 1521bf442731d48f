"""Which databases the end of a transaction is an event of, and what the metastore is asked for it."""

from __future__ import annotations

import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.dump.beginnings import UnnamedEnds
from hive_replication.dump.ended_transactions import ended_in
from hive_replication.events.event_records import Notification
from hive_replication.metastore.transactions import WriteEvent
from hive_replication.metastore.types import NotificationEvent
from tests.lags import POLICY

ASKED = frozenset({"sales", "stock"})


def ended(kind: str = "COMMIT_TXN", **message: object) -> Notification:
    return Notification(7, 1007, kind, "", "", json.dumps({"txnid": 3, **message}))


def found(row: Notification, *known: str | NotificationEvent, acid: bool = True, **policy: object) -> tuple[set[str], int]:
    """The databases, and how often the metastore was asked; it knows of writes to tables, each ``database.table``, and events."""
    asked: list[int] = []

    def write_events(transaction: int) -> list[WriteEvent]:
        asked.append(transaction)
        pairs = (one.split(".") for one in known if isinstance(one, str))
        return [WriteEvent(table, "", 1, database=database) for database, table in pairs]

    def events_left(after: int, until: int) -> list[NotificationEvent]:
        return [one for one in known if not isinstance(one, str) and after < one.eventId <= until]

    metastore: Any = SimpleNamespace(write_events=write_events, events_left=events_left)
    source: Any = SimpleNamespace(acid=acid, policy=POLICY.model_copy(update=policy), metastore=metastore)
    source.unnamed_ends = UnnamedEnds(metastore)
    return set(ended_in(source, row, ASKED)), len(asked)


OPENED = NotificationEvent(4, 0, "OPEN_TXN", message=json.dumps({"fromTxnId": 3, "toTxnId": 3}))


@pytest.mark.parametrize("named", [["sales"], ["SALES", "other"]])
@pytest.mark.parametrize(("kind", "key"), [("COMMIT_TXN", "databases"), ("ABORT_TXN", "dbsUpdated")])
def test_the_message_names_the_databases(kind: str, key: str, named: list[str]) -> None:
    assert found(ended(kind, **{key: named}), OPENED) == ({"sales"}, 0)


@pytest.mark.parametrize("named", [["other"], []])
def test_commits_of_others_are_of_none_and_cost_nothing(named: list[str]) -> None:
    policies: tuple[dict[str, Any], ...] = ({}, {"exclude": ("left_*",)})
    for policy in policies:
        assert found(ended(databases=named), "sales.a", **policy) == (set(), 0)


def test_of_a_commit_without_names_the_metastore_is_asked_once() -> None:
    """Hive 4.0 names none."""
    assert found(ended(), "sales.a", "sales.b", "other.a") == ({"sales"}, 1)
    assert found(ended(databases=None), "sales.a", "stock.a") == ({"sales", "stock"}, 1)
    assert found(ended()) == (set(), 1)
    assert found(ended("ABORT_TXN")) == (set(), 0)


def test_of_a_policy_that_leaves_out_tables_the_metastore_is_asked_which_were_written() -> None:
    row = ended(databases=["sales", "stock"])
    policy: dict[str, Any] = {"exclude": ("left_*",)}
    assert found(row, "sales.left_out", "stock.left_out", "stock.a", **policy) == ({"stock"}, 1)
    assert found(row, "sales.left_out", **policy) == ({"stock"}, 1), "a commit without rows still ends its transaction"
    assert found(ended(), "sales.left_out", "stock.a", **policy) == ({"stock"}, 1)
    assert found(row, "sales.a", tables=("b",)) == ({"stock"}, 1)


def test_an_abort_without_names_is_of_the_databases_that_it_began_in() -> None:
    """Of tables that were dropped meanwhile Hive names no database."""
    message = {"dbName": "stock", "tableName": "a", "txnIdList": [3], "writeIdList": [1]}
    allocated = NotificationEvent(5, 0, "ALLOC_WRITE_ID_EVENT", "stock", "a", json.dumps(message))
    aborted = ended("ABORT_TXN", dbsUpdated=[])
    assert found(aborted, OPENED, allocated) == ({"stock"}, 0)
    assert found(aborted, OPENED) == (set(), 0)
    assert found(ended("ABORT_TXN", dbsUpdated=["sales"]), OPENED, allocated) == (set(ASKED), 0)
    assert found(aborted, allocated) == (set(ASKED), 0), "nothing tells of others"


def test_a_statement_that_failed_after_hours_is_not_looked_for_in_all_of_the_log() -> None:
    """Each tick of the sensor read it again, until Dagster ended the tick."""
    calls: list[int] = []

    def events_left(after: int, until: int) -> list[NotificationEvent]:
        calls.append(until - after)
        return [NotificationEvent(evid, 0, "INSERT", "sales", "a", "{}") for evid in range(after + 1, until + 1)]

    metastore: Any = SimpleNamespace(events_left=events_left)
    source: Any = SimpleNamespace(acid=True, policy=POLICY, metastore=metastore, unnamed_ends=UnnamedEnds(metastore))
    row = replace(ended("ABORT_TXN", dbsUpdated=[]), evid=100_000)
    assert ended_in(source, row, ASKED) == ASKED
    assert len(calls) <= 15
    assert sum(calls) == 10_000
    before = len(calls)
    assert ended_in(source, row, {"stock"}) == {"stock"}
    assert len(calls) == before, "another database asks for the same"


def test_one_that_cannot_be_read_may_be_of_any() -> None:
    assert found(Notification(7, 1007, "COMMIT_TXN", "", "", "{")) == (set(ASKED), 0)


def test_other_events_and_policies_without_transactional_tables_have_none() -> None:
    assert found(ended("OPEN_TXN", databases=["sales"]), "sales.a") == (set(), 0)
    assert found(ended(databases=["sales"]), "sales.a", acid=False) == (set(), 0)
