"""Commands of a failover at the same time as others: what one has opened or taken back, another one leaves as it is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from importlib import import_module
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from hive_replication import direction, failover
from hive_replication.connect import Connection, Reachable
from hive_replication.errors import Refused, Unreachable
from hive_replication.failover import sides
from hive_replication.lag import LagReader, lags_reachable
from hive_replication.load.replica.failover_marks import ORIGIN, SUCCESSOR, FailoverMarks, failover_marks
from hive_replication.load.replica.held_reasons import LEFT_OUT_REASON
from hive_replication.load.replica.state import SOURCE, ReplicaState
from hive_replication.verify import TableComparison
from tests.unit.failover.fakes import Side, connected, log, without_locks

CREATE, INSERT = ("create", 0, 0, 0), ("insert", 0, 0, 0)
starting, finishing = (import_module(f"hive_replication.failover.{name}") for name in ("start", "finish"))
LEVEL = ReplicaState("thrift://a:1/db", 2)


class Comparison:
    """What a start does last; others may do something meanwhile."""

    def __init__(self) -> None:
        self.meanwhile: Callable[[], object] = lambda: None
        self.differences: tuple[str, ...] = ()
        self.table = "a"

    def __call__(self, *_: object, **__: object) -> Iterator[TableComparison]:
        self.meanwhile()
        yield TableComparison(self.table, differences=self.differences)


@pytest.fixture(autouse=True)
def comparison(monkeypatch: pytest.MonkeyPatch) -> Comparison:
    without_locks(monkeypatch)
    monkeypatch.setattr(finishing, "remove_snapshots", Mock())
    monkeypatch.setattr(starting, "compare_database", made := Comparison())
    return made


@pytest.fixture
def pair() -> tuple[Connection, Side, Side]:
    source = Side({"a": {}}, log(CREATE, INSERT))
    target = Side({"a": {}}, log(CREATE), parameters=LEVEL.parameters(), uri="thrift://b:1")
    return connected(source, target), source, target


def marks(side: Side) -> FailoverMarks:
    return failover_marks(side.database("db"))


def test_one_that_ends_late_leaves_an_opened_database_as_it_is(
    pair: tuple[Connection, Side, Side], comparison: Comparison
) -> None:
    """Else it would be no replica, no source that anything can fail back to, and the next bootstrap's target."""
    connection, _, target = pair
    assert failover.start(connection, "db").status.phase == "ready"
    comparison.meanwhile = lambda: failover.start_unplanned(connection, "db", Reachable(), force=True)
    with pytest.raises(Refused, match="'db' was opened, or is loaded anew, at the same moment"):
        failover.start(connection, "db")
    assert (marks(target).role, marks(target).origin, marks(target).opened) == ("opened", "thrift://a:1/db", 1)
    assert failover.finish(connection, "db").phase == "finished"


def test_one_that_begins_before_it_was_opened_loads_nothing(
    pair: tuple[Connection, Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, _, _ = pair

    def opens(*_: object, **__: object) -> tuple[int, ...]:
        failover.start_unplanned(connection, "db", Reachable(), force=True)
        return ()

    monkeypatch.setattr(starting, "drain", opens)
    with pytest.raises(Refused, match="was opened, or is loaded anew"):
        failover.start(connection, "db")
    assert failover.status(connection, "db").phase == "opened"


def test_one_that_is_refused_after_it_closed_the_source_is_recorded(
    pair: tuple[Connection, Side, Side], comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writers fail from then on: the history said neither since when nor who did it."""
    connection, source, _ = pair
    kept: list[tuple[str, str]] = []
    monkeypatch.setattr("hive_replication.recorded._keep", lambda _, record: kept.append((record.outcome, record.text)))
    comparison.differences = ("columns differ",)
    with pytest.raises(Refused) as refused:
        direction.failover_start(connection, "db")
    assert (source.parameters["readonly"], kept) == ("true", [("failed", str(refused.value))])
    failover.rollback(connection, "db")
    kept.clear()
    source.parameters = {SOURCE: "thrift://other:1/db"}
    with pytest.raises(Refused, match="is a replica of"):
        direction.failover_start(connection, "db")
    assert kept == [], "nothing was begun"


def test_a_step_that_is_repeated_is_recorded_once(pair: tuple[Connection, Side, Side], monkeypatch: pytest.MonkeyPatch) -> None:
    """The history told of a failover by whoever repeated it last, and of one taken back that never was."""
    connection, _, _ = pair
    kept: list[str] = []
    monkeypatch.setattr("hive_replication.recorded._keep", lambda _, record: kept.append(record.action))
    monkeypatch.setattr(direction, "connect_reachable", lambda *_: (connection, Reachable()))
    whole = connection.source.policy
    for step in (
        partial(direction.failover_rollback, whole),
        partial(direction.failover_start, connection),
        partial(direction.failover_rollback, whole),
        partial(direction.failover_open, whole, force=True),
        partial(direction.failover_finish, whole),
    ):
        step(name="db")
        step(name="db")
    assert kept == ["failover start", "failover rollback", "failover open", "failover finish"]


def test_a_rollback_meanwhile_stays_one(pair: tuple[Connection, Side, Side], comparison: Comparison) -> None:
    connection, source, target = pair
    comparison.meanwhile = lambda: failover.rollback(connection, "db")
    with pytest.raises(Refused, match="was taken back at the same moment"):
        failover.start(connection, "db")
    assert (marks(source), marks(target), failover.status(connection, "db").phase) == (
        FailoverMarks(),
        FailoverMarks(),
        "replicating",
    )


@pytest.mark.parametrize("of_source_alone", [False, True])
def test_a_rollback_while_it_is_finished_stays_one(
    pair: tuple[Connection, Side, Side], monkeypatch: pytest.MonkeyPatch, *, of_source_alone: bool
) -> None:
    """The rollback had answered that replication goes on, the source was written, and the target was opened and it closed.

    One that read before the target was ready takes back the source alone.
    """
    connection, source, target = pair
    failover.start(connection, "db")
    require = finishing._require_nothing_new

    def taken_back(found: sides.Sides) -> None:
        require(found)
        if of_source_alone:
            source.parameters = {}
        else:
            failover.rollback(connection, "db")

    monkeypatch.setattr(finishing, "_require_nothing_new", taken_back)
    with pytest.raises(Refused, match="was taken back at the same moment, or is started again"):
        failover.finish(connection, "db")
    assert (marks(source), marks(target).role, "readonly" in source.parameters) == (FailoverMarks(), "", False)
    assert failover.status(connection, "db").phase == "replicating"


def test_a_rollback_that_read_before_it_was_opened_changes_nothing(
    pair: tuple[Connection, Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    connection, source, target = pair
    failover.start(connection, "db")
    now = sides.Sides.now(connection, "db")
    failover.finish(connection, "db")
    before = (dict(source.parameters), dict(target.parameters))
    monkeypatch.setattr(finishing, "Sides", SimpleNamespace(now=Mock(return_value=now)))
    with pytest.raises(Refused, match="was opened, or is loaded anew"):
        failover.rollback(connection, "db")
    assert (source.parameters, target.parameters) == before


def test_one_that_finds_a_difference_takes_back_that_it_was_ready(
    pair: tuple[Connection, Side, Side], comparison: Comparison
) -> None:
    connection, _, _ = pair
    assert failover.start(connection, "db").status.phase == "ready"
    comparison.differences = ("content",)
    with pytest.raises(Refused, match="differs from its source"):
        failover.start(connection, "db")
    assert failover.status(connection, "db").phase == "started"
    with pytest.raises(Refused, match="no failover of 'db' is ready"):
        failover.finish(connection, "db")


def test_a_closed_source_that_lost_its_successor_can_be_opened_again(pair: tuple[Connection, Side, Side]) -> None:
    connection, source, target = pair
    failover.start(connection, "db")
    failover.finish(connection, "db")
    assert source.parameters["readonly"] == "true"
    gone: Any = replace(target, parameters={})
    assert failover.rollback(connected(source, gone), "db").phase == "no replica"
    assert (marks(source), "readonly" in source.parameters) == (FailoverMarks(), False)


@pytest.mark.parametrize("started", [False, True])
def test_a_source_that_another_replica_replaced_is_neither_opened_nor_failed_over_again(
    pair: tuple[Connection, Side, Side], *, started: bool
) -> None:
    """Else two databases are written, or three."""
    first, source, _ = pair
    other = Side({"a": {}}, log(CREATE), parameters=LEVEL.parameters(), uri="thrift://c:1")
    second = connected(source, other)
    if started:
        assert failover.start(second, "db").status.phase == "ready"
    failover.start(first, "db")
    assert failover.finish(first, "db").phase == "finished"
    before = (dict(source.parameters), dict(other.parameters))
    assert failover.status(second, "db").phase == "replaced by another"
    steps: tuple[Callable[..., object], ...] = (failover.start, failover.finish, failover.rollback)
    for step in (*steps, partial(failover.start_unplanned, reach=Reachable())):
        with pytest.raises(Refused, match="'db' was closed by a failover to thrift://b:1/db: "):
            step(second, "db")
    assert (source.parameters, other.parameters) == before
    assert failover.finish(first, "db").phase == "finished"

    source.parameters[SUCCESSOR] = ""  # by hand: that database is lost, with its metastore
    assert failover.rollback(second, "db").phase == "replicating"
    assert (marks(source), marks(other), "readonly" in source.parameters) == (FailoverMarks(), FailoverMarks(), False)


def test_what_a_source_that_does_not_answer_still_needs_is_an_error(pair: tuple[Connection, Side, Side]) -> None:
    """It would stay read-only, or open, and nobody would know."""
    connection, source, target = pair
    down = Reachable(source="down")
    failover.start(connection, "db")
    with pytest.raises(Unreachable, match="may still be read-only: run it again once it does"):
        failover.rollback(connection, "db", down)
    assert (marks(source).endpoint, marks(target)) == ("SOURCE", FailoverMarks())
    assert failover.status(connection, "db", down).read_only is None
    done = failover.rollback(connection, "db")
    assert (done.phase, done.read_only, marks(source)) == ("replicating", False, FailoverMarks())

    failover.start_unplanned(connection, "db", down)
    with pytest.raises(Unreachable, match="'db' is open; the old source does not answer"):
        failover.finish(connection, "db", down)
    assert failover.finish(connection, "db").phase == "finished"


def test_tables_that_an_interrupted_load_was_making_are_opened_as_unfinished(
    pair: tuple[Connection, Side, Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody knew of them, and "nothing would be lost"; of those that are whole, the last write is shown before all else ends."""
    connection, _, target = pair
    ended, module = Mock(), import_module("hive_replication.failover.finish")
    steps = ["end_snapshots", "end_replayed", "retire_not_given_out"]
    for name in steps:
        monkeypatch.setattr(module, name, getattr(ended, name))
    target.parameters = replace(LEVEL, checkpoint="hdfs://d/killed").parameters()
    ours = {SOURCE: LEVEL.source}
    target.tables_there |= {"half": dict(ours), "Whole": {**ours, "repl.last.id": "1"}, "mine": {}}
    (lag,) = lags_reachable(connection, Reachable(source="down"), ["db"])
    assert (lag.loading, LagReader(connection.source, connection.target).read()[0].loading) == ("hdfs://d/killed",) * 2
    failover.start_unplanned(connection, "db", Reachable(source="down"))
    assert [call[0] for call in ended.method_calls] == steps
    assert failover.status(connection, "db", Reachable(source="down")).unfinished == ("half",)


def test_a_source_that_the_opened_database_never_came_from_is_not_closed(pair: tuple[Connection, Side, Side]) -> None:
    connection, _, target = pair
    failover.start_unplanned(connection, "db", Reachable(), force=True)
    rebuilt = Side({"a": {}}, log(CREATE, INSERT), uri="thrift://d:1")
    with pytest.raises(Refused, match="'db' was opened in place of thrift://a:1/db, not of thrift://d:1/db"):
        failover.finish(connected(rebuilt, target), "db")
    assert rebuilt.parameters == {}
    assert failover.finish(connection, "db").phase == "finished"


OPENED = FailoverMarks("TARGET", 9, "thrift://z:1/db", opened=1)


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        (OPENED.parameters(), "'db' was opened in place of thrift://z:1/db, which is no replica of it yet"),
        (ReplicaState("thrift://z:1/db", 9).parameters(), "'db' is a replica of thrift://z:1/db, and would get nothing"),
    ],
    ids=["opened", "a replica"],
)
def test_a_source_whose_own_replication_or_failback_would_end_is_not_closed(
    pair: tuple[Connection, Side, Side], parameters: dict[str, str], reason: str
) -> None:
    """Else its old source could never fail back, or its own source would replicate to nobody."""
    connection, source, _ = pair
    source.parameters = dict(parameters)
    with pytest.raises(Refused, match=reason):
        failover.start(connection, "db")
    failover.start_unplanned(connection, "db", Reachable(), force=True)
    with pytest.raises(Refused, match=reason):
        failover.finish(connection, "db")
    assert (source.parameters, failover.status(connection, "db").phase) == (parameters, "opened")

    source.parameters = {**parameters, ORIGIN: ""} if ORIGIN in parameters else {}  # by hand, or by a failover
    assert failover.finish(connection, "db").phase == "finished"


def test_differences_that_the_policy_promises_hinder_no_failover(
    pair: tuple[Connection, Side, Side], comparison: Comparison, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A replica stays where the source's table became one of Iceberg: no repair removes it, and none is to."""
    connection, source, target = pair
    comparison.differences = ("the table is on the target, not on the source",)
    source.tables_there["a"], target.tables_there["a"] = {"table_type": "ICEBERG"}, {SOURCE: LEVEL.source}
    with pytest.raises(Refused, match=r"differs from its source \(a: the table is on the target"):
        failover.start(connection, "db")
    held = LEVEL.quarantine("a", 1, f"{LEFT_OUT_REASON}tables of Iceberg are not replicated")
    target.parameters = held.parameters()
    loaded = SimpleNamespace(held=[SimpleNamespace(tables=("a",), reason=held.held["a"])])
    for step, answer in (("repl_dump", SimpleNamespace(directory="d")), ("repl_load", loaded), ("require_history", None)):
        monkeypatch.setattr(starting, step, Mock(return_value=answer))
    monkeypatch.setattr(starting, "changes", Mock(return_value=iter(())))
    connection.store = None  # type: ignore[misc]
    assert failover.start(connection, "db").status.phase == "ready"
    assert not starting.repl_load.called, "it stands where its source does"
    other = held.quarantine("b", 1, "no space")
    target.parameters = other.parameters()
    loaded.held.append(SimpleNamespace(tables=("b",), reason="no space"))
    with pytest.raises(Refused, match=r"tables of 'db' are held \(b\): no space"):
        failover.start(connection, "db")
    target.parameters = held.parameters()
    assert failover.start(connection, "db").status.phase == "ready"
    assert failover.finish(connection, "db").phase == "finished", "what was written to it since does not count"


def test_a_held_table_that_is_replicated_again_or_gone_at_the_source_hinders_a_failover(
    pair: tuple[Connection, Side, Side], comparison: Comparison
) -> None:
    """Its hold stays until a repair: the opened database lacked the rows that were written to it since."""
    connection, source, target = pair
    held = LEVEL.quarantine("a", 2, f"{LEFT_OUT_REASON}tables of Iceberg are not replicated")
    target.tables_there["a"] = {SOURCE: LEVEL.source}
    target.parameters, comparison.differences = held.parameters(), ("numRows: 2 at the source, 1 on the target",)
    with pytest.raises(Refused, match=r"differs from its source \(a: numRows: 2.*hive-repl repair db"):
        failover.start(connection, "db")
    del source.tables_there["a"]
    with pytest.raises(Refused, match="differs from its source"):
        failover.start(connection, "db")
    source.tables_there["a"] = {"table_type": "ICEBERG"}
    assert failover.start(connection, "db").status.phase == "ready"


def test_a_table_of_the_target_alone_hinders_no_failover(pair: tuple[Connection, Side, Side], comparison: Comparison) -> None:
    """As a failback with keep-aside leaves one: it was to be repaired, which drops no foreign table."""
    connection, source, target = pair
    comparison.table, comparison.differences = "a_kept_170", ("the table is on the target, not on the source",)
    target.tables_there["a_kept_170"] = {SOURCE: LEVEL.source}
    with pytest.raises(Refused, match=r"differs from its source \(a_kept_170: "):
        failover.start(connection, "db")
    target.tables_there["a_kept_170"] = {}
    source.tables_there["a_kept_170"] = {}
    with pytest.raises(Refused, match=r"differs from its source \(a_kept_170: "):
        failover.start(connection, "db")
    source.tables_there["a_kept_170"] = {"table_type": "ICEBERG"}
    assert failover.start(connection, "db").status.phase == "ready"
    del source.tables_there["a_kept_170"]
    assert failover.start(connection, "db").status.phase == "ready"
    assert failover.finish(connection, "db").phase == "finished"


@pytest.mark.parametrize(
    ("reason", "purged", "refusal"),
    [
        ("undone to 1 by request", 0, "were undone by request (a): first hive-repl undo db.a --release"),
        ("undone to 1 by request", 2, "were undone by request (a): first hive-repl undo db.a --release"),
        ("no space", 2, "stand before what the source's log still has (a): hive-repl repair db.a brings"),
        (f"{LEFT_OUT_REASON}tables of Iceberg are not replicated", 2, ""),
    ],
)
def test_one_table_that_no_window_brings_is_named_with_what_ends_that(
    pair: tuple[Connection, Side, Side], monkeypatch: pytest.MonkeyPatch, reason: str, purged: int, refusal: str
) -> None:
    """The advice was a recovery, which found nothing to do."""
    connection, source, target = pair
    source.log, source.purged = log(CREATE, INSERT, INSERT, INSERT), purged
    state = replace(LEVEL, applied=3).quarantine("a", 1, reason)
    target.parameters = state.parameters()
    loaded, dump = SimpleNamespace(held=[]), Mock(return_value=SimpleNamespace(directory="d"))
    for step, answer in (("repl_dump", dump), ("repl_load", Mock(return_value=loaded)), ("require_history", Mock())):
        monkeypatch.setattr(starting, step, answer)
    monkeypatch.setattr(starting, "changes", Mock(return_value=iter(())))
    connection.store = None  # type: ignore[misc]
    if not refusal:
        assert failover.start(connection, "db").status.phase == "ready"
        assert dump.call_args.args[1].from_evid == 3, "it is not brought, and hinders no other"
        return
    with pytest.raises(Refused) as refused:
        failover.start(connection, "db")
    assert refusal in str(refused.value)
    assert not dump.called


@pytest.mark.parametrize("scope", ["its own", "by its policy"])
def test_a_replica_without_data_takes_no_place(pair: tuple[Connection, Side, Side], scope: str) -> None:
    """It counted as one that loses nothing: it was opened empty, and a failback emptied the only database that had the data."""
    connection, source, target = pair
    assert failover.start(connection, "db").status.phase == "ready"
    without: Any = connection.source.policy.model_copy(update={"metadata_only": True})
    if scope == "its own":
        target.parameters |= replace(LEVEL, scope=without.scope("db").text).parameters()
    else:  # an earlier version, which did not note it
        connection.target.policy = without  # type: ignore[misc]
    before = dict(target.parameters)
    assert LagReader(connection.source, connection.target).read()[0].without_data == (scope == "its own")
    assert lags_reachable(connection, Reachable(source="it is gone"), ["db"])[0].without_data == (scope == "its own")
    for step in (failover.start, partial(failover.start_unplanned, reach=Reachable(), force=True), failover.finish):
        with pytest.raises(Refused, match="'db' has no data"):
            step(connection, "db")
    assert (target.parameters, source.parameters["readonly"]) == (before, "true")
    assert failover.rollback(connection, "db").phase == "replicating"


def test_a_function_that_only_the_target_has_is_to_be_dropped_there(
    pair: tuple[Connection, Side, Side], comparison: Comparison
) -> None:
    comparison.table, comparison.differences = "f()", ("the function is on the target only",)
    with pytest.raises(Refused, match=r"functions that only the target has: drop them there"):
        failover.start(pair[0], "db")
