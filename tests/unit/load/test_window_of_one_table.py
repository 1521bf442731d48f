"""A window of one table in which the source's database is dropped, or created."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest
from hive_metastore.ttypes import DatabaseType

from hive_replication.events import event_records as r
from hive_replication.load import window
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.load.plan.load_plan import SegmentPlan
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.session import Session
from hive_replication.metastore.types import Database
from tests.bootstraps import SOURCE, Loading, header, loading, replica


def event(kind: type[r.Event], what: str, evid: int, table: str = "", **fields: object) -> WindowEvent:
    return WindowEvent(r.Notification(evid, evid, what, "db", table, ""), kind(evid, evid, what, "db", table, **fields), ())


DROPPED = event(r.DropTable, "DROP_TABLE", 101, "t", before=None), event(r.DropDatabase, "DROP_DATABASE", 102)
CREATED = event(r.CreateDatabase, "CREATE_DATABASE", 103, after=Database("db", parameters={}))


def load(state: ReplicaState, events: list[WindowEvent], *, table: str | None, exists: bool = True) -> Loading:
    head = replace(header(110, table), kind="incremental", from_evid=100)
    session = loading(state, head, [replica("t", 100), replica("u", 100)])
    home = cast("Any", session.replica)
    home.exists, home.raise_table = exists, lambda *_: None
    window.load_window(session, events=events)
    return session


def barriers(session: Loading) -> list[object]:
    return [plan.barrier for plan in session.planned if plan.barrier]


@pytest.fixture(autouse=True)
def same_history(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(window, "require_same_history", lambda _: None)
    monkeypatch.setattr(window, "decoded_events", lambda _: ())


@pytest.mark.parametrize("state", [ReplicaState(), ReplicaState(SOURCE, 100)])
def test_the_drop_of_the_sources_database_drops_that_table_alone(state: ReplicaState) -> None:
    """All tables of the target's database went, those of its users, too."""
    session = load(state, [*DROPPED, CREATED], table="t")
    assert (barriers(session), session.dropped) == ([], {"t"})
    assert [one.reason for one in session.skipped] == ["not of this load", "the target has the database"]
    assert session.exists
    if state.applied is not None:
        whole = load(state, [*DROPPED], table=None)
        assert barriers(whole) == [op.DropDatabase(102, "")]


def test_a_database_that_is_made_again_as_a_remote_one_is_dropped_alone() -> None:
    """The target has no such connector: its window dropped the replica, and then failed for ever."""
    remote = event(r.CreateDatabase, "CREATE_DATABASE", 103, after=Database("db", parameters={}, type=DatabaseType.REMOTE))
    dropped = load(ReplicaState(SOURCE, 100), [*DROPPED, remote], table=None)
    assert barriers(dropped) == [op.DropDatabase(102, "")]
    created = load(ReplicaState(SOURCE, 100), [remote], table=None, exists=False)
    assert barriers(created) == []
    assert created.skipped[-1].reason.startswith("not replicated: its tables are those of another system")


def test_a_database_that_is_made_for_one_table_is_no_replica() -> None:
    """It was stamped as one of the whole database: the next window of which went on from there, without the other tables."""
    session = load(ReplicaState(), [*DROPPED, CREATED], table="t", exists=False)
    (barrier,) = barriers(session)
    assert isinstance(barrier, op.CreateDatabase)
    for table, stands in (("t", None), (None, 103)):
        made = list[int | None]()
        target = SimpleNamespace(policy=session.target.policy, metastore=None, source_metastore=None)
        home = SimpleNamespace(target=target, name="db", state=ReplicaState(), image=None, location="hdfs://dst/db.db")
        home.create = lambda _, state, _source, *, made=made: bool(made.append(state and state.applied))
        created = Session(cast("Any", home), session.reader, table, cast("Any", object()), session.progress)
        created.carry_out(SegmentPlan((), (), barrier), lambda *_: None, cast("Any", None))
        assert made == [stands]
