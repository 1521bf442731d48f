"""``failover plan`` tells that a failback would lead to an older version of Hive."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import Any
from unittest.mock import Mock

import pytest

from hive_replication import failover
from hive_replication.connect import Reachable
from hive_replication.lag import Lag
from hive_replication.load.replica.state import ReplicaState
from hive_replication.metastore.dialect import Features
from tests.unit.failover.fakes import Side, connected

Problems = Callable[[str, str, Reachable], tuple[str, ...]]
SENTENCE = (
    "the target is of Hive {}, the source of {}: the failback would lead to an older version, to which nothing was tried; "
    "upgrade the source first, or stay with the target"
)


@pytest.fixture
def problems(monkeypatch: pytest.MonkeyPatch) -> Problems:
    """What is in the way of a failover from one version to another."""
    module = import_module("hive_replication.failover.plan")
    for name, value in (("lags_reachable", [Lag("db", "db", 2, 2, 0, 0.0)]), ("rates_of", None), ("writers", ())):
        monkeypatch.setattr(module, name, Mock(return_value=value))

    def of(source: str, target: str, reach: Reachable) -> tuple[str, ...]:
        state = ReplicaState("thrift://a:1/db", 2).parameters()
        ours: Any = Side(features=Features(source, "a"))
        theirs: Any = Side(parameters=state, uri="thrift://b:1", features=Features(target, "b"))
        theirs.config_value = Mock(return_value="true")
        return failover.plan(connected(ours, theirs), "db", reach).problems

    return of


@pytest.mark.parametrize(("source", "target"), [("3", "4.2.0"), ("4.0.1", "4.2.0"), ("2", "3")])
def test_a_target_of_a_later_version_is_told(problems: Problems, source: str, target: str) -> None:
    assert problems(source, target, Reachable()) == (SENTENCE.format(target, source),)


@pytest.mark.parametrize(("source", "target"), [("4.2.0", "4.2.1"), ("4.2.0", "4.1.0"), ("3.1.3", "3")])
def test_one_that_is_not_later_is_not(problems: Problems, source: str, target: str) -> None:
    assert problems(source, target, Reachable()) == ()


def test_no_version_is_asked_of_a_source_that_does_not_answer(problems: Problems) -> None:
    (only,) = problems("3", "4.2.0", Reachable(source="down"))
    assert only.startswith("the source does not answer")
