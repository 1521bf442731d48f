"""What a failback leaves of the time when the old source was a replica before."""

from __future__ import annotations

import time
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from hive_replication import failover
from hive_replication.errors import BadRequest, Refused, Unreachable
from hive_replication.failover.reverse_findings import FailoverReverse
from hive_replication.load.journal.journal import Journal
from hive_replication.load.journal.restored import forgotten
from hive_replication.load.replica.failover_marks import ORIGIN, FailoverMarks, failover_marks
from hive_replication.load.replica.state import ReplicaState, replica_state, with_state
from hive_replication.load.undo import undo as undoing
from hive_replication.metastore.types import Function, PrincipalType, ResourceUri
from hive_replication.policy import Root
from hive_replication.storage import Storage
from tests import model
from tests.faults import Killed
from tests.unit.failover.fakes import Side, connected, log, without_locks

reversing = import_module("hive_replication.failover.reverse")
A = model.NAMES[0]
CREATE, INSERT, ALTER = ("create", 0, 0, 0), ("insert", 0, 0, 0), ("alter", 0, 0, 0)
OPENED = FailoverMarks(endpoint="TARGET", event=130, origin="thrift://b:1/db", opened=500)
OPENED_AT_FIRST = replace(OPENED, event=1, opened=1)
CLOSED = FailoverMarks(endpoint="SOURCE", event=130, successor="thrift://a:1/db", opened=500)


def test_nothing_is_undone_to_a_load_from_before_the_database_was_a_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No journal has what was written since: tables would be brought to a state that never was."""
    without_locks(monkeypatch)
    old = Side(parameters=CLOSED.parameters(), uri="thrift://b:1", location=f"{tmp_path.as_uri()}/db.db")
    connection: Any = connected(Side(parameters=OPENED.parameters()), old)
    target, storage = connection.target, Storage((Root(uri=tmp_path.as_uri()),))
    target.storage, target.source_identity = storage, "thrift://a:1"
    journal = Journal(storage, old.location)

    def load(begin: int, end: int, state: ReplicaState) -> None:
        time.sleep(0.003)  # the journal goes by milliseconds
        writer = journal.begin(begin, end)
        writer.state(state)
        writer.done(end)

    for begin, end in ((100, 110), (110, 120)):
        load(begin, end, ReplicaState("thrift://a:1/db", end))

    def killed(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(reversing, "stamp", killed)
        with pytest.raises(Killed):
            reversing._take_over(connection, "db", OPENED, FailoverReverse("db", "db"), 0)
    reversing._take_over(connection, "db", OPENED, FailoverReverse("db", "db"), 0)
    state = replica_state(old.database("db"))
    assert (state.applied, forgotten(storage, old.location, 500)) == (500, None)
    assert [entry.status for entry in journal.entries()] == ["former", "former"]

    state = state.advanced(510, 1, "")
    old.parameters = with_state(old.parameters, state)
    load(500, 510, state)
    with pytest.raises(BadRequest, match=r"ended at event 110 since its creation there; the nearest .* to: 510$"):
        undoing.undo(target, "db", None, 110)
    assert undoing.undo(target, "db", None, 510).loads == 0


@pytest.fixture
def unlocked(monkeypatch: pytest.MonkeyPatch) -> None:
    without_locks(monkeypatch)


REPLICA = ReplicaState("thrift://a:1/db", 2).parameters()
STARTED = {"repl.failover.endpoint": "SOURCE", "hive_replication.failover.readonly": "false", "readonly": "true"}
READY = {"repl.failover.endpoint": "TARGET", "hive_replication.failover.event": "2"}
OPENED_ELSEWHERE = {**FailoverMarks("TARGET", 9, "thrift://c:1/db", opened=3).parameters(), "repl.background.enable": "true"}


@pytest.mark.usefixtures("unlocked")
@pytest.mark.parametrize("dry_run", [False, True])
@pytest.mark.parametrize("source", [STARTED, OPENED_ELSEWHERE], ids=["a failover was started", "opened in place of another"])
def test_a_failback_that_is_done_leaves_the_marks_of_other_failovers(source: dict[str, str], *, dry_run: bool) -> None:
    opened, old = Side(parameters=dict(source)), Side(parameters={**REPLICA, **READY}, uri="thrift://b:1")
    before = dict(opened.parameters), dict(old.parameters)
    assert failover.reverse(connected(opened, old), "db", dry_run=dry_run).done
    assert (opened.parameters, old.parameters) == before


@pytest.mark.usefixtures("unlocked")
def test_a_failback_that_was_killed_between_the_two_databases_ends_unless_only_looked_at() -> None:
    opened, old = Side(parameters=OPENED.parameters()), Side(parameters=dict(REPLICA), uri="thrift://b:1")
    connection = connected(opened, old)
    assert failover.reverse(connection, "db", dry_run=True).done
    assert failover_marks(opened.database("db")) == OPENED
    assert failover.reverse(connection, "db").done
    assert failover_marks(opened.database("db")) == FailoverMarks()


@pytest.mark.usefixtures("unlocked")
def test_what_is_written_while_its_changes_are_looked_for_is_not_replaced_unnamed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Jobs of the old source run again: what one commits before it is closed would be a difference, and replaced."""
    opened = Side({A: {}}, log(CREATE), parameters=OPENED_AT_FIRST.parameters())
    old = Side({A: {}}, log(CREATE), uri="thrift://b:1")

    def allowed(*_: object, **__: object) -> None:
        old.log = log(CREATE, INSERT)

    connection: Any = connected(opened, old)
    with monkeypatch.context() as patch:
        patch.setattr(reversing, "require_allowed", allowed)
        with pytest.raises(Refused, match=r"the old source 'db' was written meanwhile \(event 2, INSERT\): stop its writers"):
            failover.reverse(connection, "db")
    marks = failover_marks(old.database("db"))
    assert (marks.role, marks.settled, replica_state(old.database("db")).source) == ("closed", None, "")
    with pytest.raises(Refused, match=f"has changes that the opened database never got, in {A}"):
        failover.reverse(connection, "db")

    old.features = SimpleNamespace(major=4)
    monkeypatch.setattr(reversing, "writers", Mock(return_value=(7, 9)))
    with pytest.raises(Refused, match=r"transactions write to the old source 'db' \(7, 9\): stop its writers"):
        reversing._take_over(connection, "db", OPENED, FailoverReverse("db", "db"), 2)


@pytest.mark.usefixtures("unlocked")
def test_what_is_written_between_a_killed_failback_and_the_next_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hive's ``readonly`` stops no Spark job."""
    opened = Side({A: {}}, log(CREATE), parameters=OPENED_AT_FIRST.parameters())
    old = Side({A: {}}, log(CREATE), uri="thrift://b:1")
    monkeypatch.setattr(reversing, "Journal", Mock())
    monkeypatch.setattr(reversing, "stamp", Mock(side_effect=Unreachable("killed")))
    for written in (CREATE,), (CREATE, ALTER):  # as what stamps does
        old.log = log(*written)
        with pytest.raises(Unreachable, match="killed"):
            failover.reverse(connected(opened, old), "db")
        assert failover_marks(old.database("db")).settled == 1
    old.log = log(CREATE, ALTER, INSERT)
    with pytest.raises(Refused, match=f"has changes that the opened database never got, in {A}"):
        failover.reverse(connected(opened, old), "db")
    with pytest.raises(Unreachable, match="killed"):
        failover.reverse(connected(opened, old, "replace"), "db")
    marks = failover_marks(old.database("db"))
    assert (marks.settled, marks.behind) == (3, {A: 0})


@pytest.mark.usefixtures("unlocked")
@pytest.mark.parametrize("dry_run", [False, True])
def test_an_old_source_whose_own_failback_is_not_done_is_not_closed(*, dry_run: bool) -> None:
    """In a chain of two failovers: its marks, which lead back to the first source, would be those of the second one."""
    own = FailoverMarks("TARGET", 9, "thrift://z:1/db", opened=3, behind={A: 7}).parameters()
    opened, old = Side(parameters=OPENED.parameters()), Side(parameters=dict(own), uri="thrift://b:1")
    connection = connected(opened, old)
    with pytest.raises(Refused, match="'db' was opened in place of thrift://z:1/db, which is no replica of it yet"):
        failover.reverse(connection, "db", dry_run=dry_run)
    assert (old.parameters, opened.parameters) == (own, OPENED.parameters())

    old.parameters[ORIGIN] = ""  # by hand: that one is lost for good
    assert reversing._require_opened(connection, "db")[1] == OPENED
    old.parameters[ORIGIN] = "thrift://a:1/db"  # of a failback between the two that was killed before its end
    assert reversing._require_opened(connection, "db")[1] == OPENED


@pytest.mark.parametrize(
    ("opened", "why"),
    [
        pytest.param({}, r"drop 'db' there, or set .*failover\.to to '' .* REPL DUMP db, and REPL LOAD", id="failed back"),
        pytest.param(
            ReplicaState("thrift://b:1/db", 9).parameters(),
            "says it is a replica, .* hive-repl failover start db --unplanned --force opens it again",
            id="the opened one was restored",
        ),
    ],
)
def test_where_the_old_source_alone_knows_of_the_failover_the_way_on_is_named(opened: dict[str, str], why: str) -> None:
    """A metastore was restored from a backup: loads named reverse, and reverse other sides of the policy, which are right."""
    connection = connected(Side(parameters=opened), Side(parameters=CLOSED.parameters(), uri="thrift://b:1"))
    with pytest.raises(Refused, match=why):
        failover.reverse(connection, "db")
    with pytest.raises(Refused, match="was not opened by a failover"):
        failover.reverse(connected(Side(), Side(uri="thrift://b:1")), "db")


@pytest.mark.parametrize("resources", [[], [ResourceUri(1, "hdfs://src/jars/f.jar")]], ids=["none", "some"])
def test_functions_of_the_opened_database_come_whole(monkeypatch: pytest.MonkeyPatch, resources: list[ResourceUri]) -> None:
    """Those of the old source are no replicas, although their tables are equal: later events would pass them over."""
    opened, old = Side(), Side(parameters=dict(REPLICA))
    function = Function("f", "db", "C", "me", PrincipalType.USER, 0, 1, resources)
    opened.functions = Mock(return_value=[function])  # type: ignore[attr-defined]
    monkeypatch.setattr(reversing, "survey", Mock(return_value=()))
    dumped = Mock(return_value=(SimpleNamespace(tables=()), SimpleNamespace(directory="")))
    monkeypatch.setattr(reversing, "dump_recovery", dumped)
    monkeypatch.setattr(reversing, "_load", Mock(return_value="loaded"))
    connection: Any = connected(opened, old)
    connection.store = None
    assert reversing._compare(connection, "db", None, None) == ((), "loaded" if resources else None)
