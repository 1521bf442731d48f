"""Catch-ups of tables that the source hides: they ask for these, and dump no more than other held tables need."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.load.replica.state import ReplicaState
from hive_replication.statements import ReplDump
from repl_assets.catalog.keys import Window
from repl_assets.steps import engine as module
from repl_assets.steps.engine import Engine
from tests.lags import POLICY


@pytest.mark.parametrize(
    ("others", "window", "dumped", "asked"),
    [
        ({}, Window(0, 90), (90, 90), True),
        ({"t": 40}, Window(0, 90), (40, 90), True),
        ({}, Window(0, 70), (70, 70), True),
        ({}, Window(90, 95), (90, 95), False),
        ({"t": 40}, Window(40, 90), (40, 90), True),
    ],
    ids=["hidden alone", "with one that is behind", "an earlier window again", "a window", "of one that is behind"],
)
def test_a_hidden_table_has_no_events_to_be_dumped(
    others: dict[str, int], window: Window, dumped: tuple[int, int], asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands nowhere: all of the log was dumped, or compared with the source where that had lost its beginning."""
    at = {"v": 0, **others}
    state = ReplicaState("uuid/sales", 90, at=at, held=dict.fromkeys(at, "held"), scope=POLICY.scope("sales").text)
    monkeypatch.setattr(Engine, "state", lambda *_: state)
    made, how = list[ReplDump](), list[dict[str, object]]()

    def dump(_: Engine, statement: ReplDump, **__: object) -> None:
        made.append(statement)

    def find_gap(*_: object, **more: object) -> None:
        how.append(more)

    monkeypatch.setattr(Engine, "dump", dump)
    monkeypatch.setattr(module, "find_gap", find_gap)
    target = SimpleNamespace(policy=POLICY, metastore=None)
    connection = cast("Any", SimpleNamespace(source=SimpleNamespace(policy=POLICY, acid=True), target=target))
    Engine(connection, cast("Any", None), cast("Any", None)).dump_events("sales", window)
    assert [(one.from_evid, one.to_evid) for one in made] == [dumped]
    assert how == [{"read_log": False, "unfinished": asked}]
