"""The state of names of any length, and reasons of any content, as parameters of a database."""

from __future__ import annotations

import pytest

from hive_replication.load.replica.held_lanes import with_held
from hive_replication.load.replica.state import ReplicaState, replica_state
from hive_replication.load.report import Held
from hive_replication.metastore.types import Database


def test_a_name_that_is_too_long_for_a_key() -> None:
    names = ["n" * 256, "m" * 256, "a.b", "~", "x y", "c/b", "f()"]
    state = ReplicaState("s", applied=9)
    for evid, name in enumerate(names, 1):
        state = state.quarantine(name, evid, f"why {evid}").failed(name, evid, 5)
    parameters = state.parameters()
    assert max(map(len, parameters)) <= 180
    assert replica_state(Database(name="d", parameters=parameters)) == state
    assert not any("n" * 100 in key or key.startswith("hive_replication.name.") for key in ReplicaState("s", 9).parameters())


def test_a_reason_that_a_metastore_would_not_keep() -> None:
    state = with_held(ReplicaState("s", applied=9), [Held(("t",), 3, 4, "a\0b\nc\ud800")])
    assert replica_state(Database(name="d", parameters=state.parameters())).held == {"t": "a\\x00b\\nc\\ud800"}


@pytest.mark.parametrize("lost", [200, 1])
def test_a_metastore_in_latin_1_keeps_every_name_and_reason(lost: int) -> None:
    """Hive's schema for MySQL has parameters in Latin-1: one other character, and no window of the database ended any more."""
    names = ["kunden_größe", "таблица", "表", r"a\u0041", "\\", "😀" * lost, "x" * 300 + r"\n"]
    state = ReplicaState("s", applied=9)
    for evid, name in enumerate(names, 1):
        state = with_held(state, [Held((name,), evid, evid + 1, f"{name}: Größe 表 ist falsch")])
    parameters = state.parameters()
    assert max(map(len, parameters)) <= 180
    for text in (*parameters, *parameters.values()):
        text.encode("latin-1")
    found = replica_state(Database(name="d", parameters=parameters))
    assert (found.at, found.quarantines) == (state.at, state.quarantines)
    assert found.held["kunden_größe"] == r"kunden_größe: Größe \u8868 ist falsch"
    assert found.parameters() == parameters  # so that it is known again


def test_an_edited_name_is_taken_literally() -> None:
    parameters = {"hive_replication.at.~1": "5", "hive_replication.name.~1": "\\u12"}
    assert replica_state(Database(name="d", parameters=parameters)).at == {"\\u12": 5}
