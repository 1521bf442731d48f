"""A recovery and what operators took back by request: it stays, until they release it."""

from __future__ import annotations

from contextlib import nullcontext
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import ANY, Mock, call

import pytest

from hive_replication.connect import Connection
from hive_replication.errors import Refused, Unreachable
from hive_replication.load import bootstrap, source_history
from hive_replication.load.operations.transactions import policy_of
from hive_replication.load.replica.advance_idle import advance
from hive_replication.load.replica.state import ReplicaState, database_with_state
from hive_replication.metastore.types import Database
from hive_replication.recover import UNFINISHED, Gap, dump_recovery, find_gap
from tests.bootstraps import SOURCE, Loading, header, loaded, loading, record, replica

UNDONE = "undone to 40 by request"
STATE = ReplicaState(SOURCE, 50, recovery="token").quarantine("x", 0, "no space").quarantine("t", 40, UNDONE)


@pytest.mark.parametrize("there", [True, False])
def test_a_recovery_leaves_a_table_that_was_undone(there: bool) -> None:
    """Beside one that was lost; also where the source does not have it any more."""
    found = [replica("t", 40), replica("gone", 41)]
    load = loaded(STATE, header(60, recovery="token"), found, [record("x"), *([record("t")] if there else [])])
    assert (load.lanes.keys(), load.dropped, load.held) == ({"x", "gone"}, {"gone"}, [])
    state = load.state
    assert (state.applied, dict(state.held), state.waits("t"), state.tried) == (60, {"t": UNDONE}, True, [])
    assert (state.lost, state.unfinished) == (["t"], [])  # whatever the log has since then, it is not to be applied to it
    released = state.released("t")
    assert (released.unfinished, released.tried) == (["t"], ["t"])


def test_what_stands_for_transactions_ends_before_a_recovery_is_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    """Their ends came before the dump's event, and were never loaded: they stayed open until Hive gave the database up.

    A dump without transactional tables may go to a metastore that keeps no transactions.
    """
    done = list[object]()
    monkeypatch.setattr(
        source_history, "end_replayed", lambda _, database, policy, _check, _note: done.append((database, policy))
    )
    retired = Mock()
    monkeypatch.setattr(source_history, "retire_not_given_out", retired)
    monkeypatch.setattr(bootstrap, "end_snapshots", lambda *_: None)
    monkeypatch.setattr(Loading, "carry_out", lambda *_: done.append("tables"))
    monkeypatch.setattr(Loading, "finish", lambda *_, **__: None)
    for head in (header(60, recovery="token", acid=True), header(60, acid=True), header(60, recovery="token")):
        session = loading(STATE, head, [replica("t", 40)], [record("t")])
        session.copier = cast("Any", object())
        bootstrap.load_objects(session, repair=True)
    assert (done[0], set(done[1:])) == (("db", policy_of(SOURCE, "db")), {"tables"})
    assert retired.call_args_list == [call(ANY, "db", SOURCE, 60, ANY, half_made=False)], "a killed one goes on with its files"


def test_tables_whose_transactions_were_ended_are_lost_until_the_recovery_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else the next recovery takes them for equal, or a window passes commits of which the target knows nothing any more."""
    monkeypatch.setattr(source_history, "end_replayed", lambda *args: args[-1](["t"]))
    monkeypatch.setattr(source_history, "retire_not_given_out", Mock())

    def fails(*_: object) -> None:
        raise Unreachable("the target")

    monkeypatch.setattr(Loading, "carry_out", fails)
    state = ReplicaState(SOURCE, 50, recovery="token")
    head = header(60, recovery="token", acid=True)
    session = loading(state, head, [replica("t", 40), replica("u", 40)], [record("t")])
    session.copier = cast("Any", object())
    with pytest.raises(Unreachable):
        bootstrap.load_objects(session, repair=True)
    assert (session.state.unfinished, session.state.recovery) == (["t"], "token")


def test_a_rebuild_ends_the_undo_of_tables() -> None:
    load = loaded(STATE, header(60), [replica("t", 40)], [record("x"), record("t")])
    assert (load.lanes.keys(), dict(load.state.held), dict(load.state.at)) == ({"x", "t"}, {}, {})


@pytest.mark.parametrize("repair", [True, False])
def test_a_rebuild_ends_the_undo_of_its_database(repair: bool) -> None:
    """It stands at the present, and windows go on from there; one that is left alone says so, and stays."""
    undone = ReplicaState(SOURCE, 40, undone=40)
    load = loaded(undone, header(60), [replica("t", 40)], [record("t")], repair=repair)
    assert (load.state.applied, load.state.undone) == (60, None)
    assert loaded(undone, header(40), [replica("t", 40)], [record("t")], repair=False).state.undone == 40


@pytest.mark.parametrize(
    ("state", "why"),
    [
        pytest.param(
            ReplicaState(SOURCE, 40, undone=40),
            "was undone to event 40 by request and loads nothing later: hive-repl undo db --release",
            id="undone",
        ),
        pytest.param(
            ReplicaState(SOURCE, 40, policy="b"), "is written by the policy 'b', and this one is 'a'", id="another policy's"
        ),
    ],
)
def test_a_database_whose_recovery_would_not_be_loaded_is_not_recovered(
    monkeypatch: pytest.MonkeyPatch, state: ReplicaState, why: str
) -> None:
    """Before anything is compared: it stays where it is."""
    module = import_module("hive_replication.recover.command")
    for name in ("MetastoreLock", "parameter_lock"):
        monkeypatch.setattr(module, name, lambda *_: nullcontext())
    home = database_with_state(Database("db", parameters={}), state)
    policy = SimpleNamespace(name="a", target_of=str)
    both: Any = SimpleNamespace(metastore=SimpleNamespace(database=lambda _: home), policy=policy)
    connection = Connection(both, both, cast("Any", None), cast("Any", None))
    with pytest.raises(Refused, match=why):
        dump_recovery(connection, "db", Gap("missing events", 40, "purged"))


def test_a_database_that_is_marked_as_incompatible_is_not_recovered(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before anything is compared, since its load would be refused; nor is it advanced while its source is quiet."""
    for name in ("hive_replication.recover.command", "hive_replication.load.replica.advance_idle"):
        for lock in ("MetastoreLock", "parameter_lock"):
            monkeypatch.setattr(import_module(name), lock, lambda *_, **__: nullcontext())
    home = database_with_state(Database("db", parameters={"repl.incompatible": "true"}), ReplicaState(SOURCE, 40))
    both: Any = SimpleNamespace(metastore=SimpleNamespace(database=lambda _: home), policy=SimpleNamespace(target_of=str))
    connection = Connection(both, both, cast("Any", None), cast("Any", None))
    with pytest.raises(Refused, match=r"'db' has repl\.incompatible=true"):
        dump_recovery(connection, "db", Gap("missing events", 40, "purged"))
    assert not advance(both, "db", 40, 50, 0, "")


def test_an_undone_table_that_a_recovery_passed_over_is_a_gap_once_it_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("hive_replication.recover.gap")
    monkeypatch.setattr(module, "forgotten", lambda *_: None)
    monkeypatch.setattr(module, "history_gap", lambda *_: None)
    state = ReplicaState(SOURCE, 60).quarantine("t", 0, UNDONE)

    def kind(state: ReplicaState) -> str:
        home = database_with_state(Database("db", locationUri="file:///db", parameters={}), state)
        here = SimpleNamespace(database=lambda _: home)
        target: Any = SimpleNamespace(policy=SimpleNamespace(target_of=str), storage=None, metastore=here, identity="t")
        there = SimpleNamespace(current_event_id=lambda: 60, database=lambda _: None)
        source: Any = SimpleNamespace(identity="uuid", metastore=there)
        gap = find_gap(source, target, "db", read_log=False)
        return gap.kind if gap else ""

    assert (kind(state), kind(state.released("t"))) == ("", UNFINISHED)
