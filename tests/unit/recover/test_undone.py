"""A recovery and what operators took back by request: it stays, until they release it."""

from __future__ import annotations

from importlib import import_module
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.load.replica.state import ReplicaState, database_with_state
from hive_replication.metastore.types import Database
from hive_replication.recover import UNFINISHED, find_gap
from tests.bootstraps import SOURCE, header, loaded, record, replica

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


def test_a_rebuild_ends_the_undo_of_tables() -> None:
    load = loaded(STATE, header(60), [replica("t", 40)], [record("x"), record("t")])
    assert (load.lanes.keys(), dict(load.state.held), dict(load.state.at)) == ({"x", "t"}, {}, {})


def test_an_undone_table_that_a_recovery_passed_over_is_a_gap_once_it_is_released(monkeypatch: pytest.MonkeyPatch) -> None:
    module = import_module("hive_replication.recover.gap")
    monkeypatch.setattr(module, "forgotten", lambda *_: None)
    monkeypatch.setattr(module, "history_gap", lambda *_: None)
    state = ReplicaState(SOURCE, 60).quarantine("t", 0, UNDONE)

    def kind(state: ReplicaState) -> str:
        home = database_with_state(Database("db", locationUri="file:///db", parameters={}), state)
        target: Any = SimpleNamespace(
            policy=SimpleNamespace(target_of=str), storage=None, metastore=SimpleNamespace(database=lambda _: home)
        )
        source: Any = SimpleNamespace(identity="uuid", metastore=SimpleNamespace(current_event_id=lambda: 60))
        gap = find_gap(source, target, "db", read_log=False)
        return gap.kind if gap else ""

    assert (kind(state), kind(state.released("t"))) == ("", UNFINISHED)
