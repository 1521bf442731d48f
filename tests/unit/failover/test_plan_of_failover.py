"""What the plan of a failover says is in its way, and what it says is not known."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from hive_replication import failover
from hive_replication.connect import Connection, Reachable
from hive_replication.errors import Refused
from hive_replication.failover.finish import opened
from hive_replication.failover.plan import FailoverPlan, plan
from hive_replication.failover.role import role_now
from hive_replication.load.replica.failover_marks import FailoverMarks
from hive_replication.load.replica.held_reasons import LEFT_OUT_REASON
from hive_replication.load.replica.state import INCOMPATIBLE, ReplicaState
from hive_replication.plans.estimate import Estimate
from tests.lags import WELL
from tests.unit.failover.fakes import Side, connected, log

LEVEL = ReplicaState("thrift://a:1/db", 1)


class Planned:
    """The plan of a failover, of which nothing is estimated."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        module = import_module("hive_replication.failover.plan")
        self.source = Side({"a": {}}, log(("create", 0, 0, 0)))
        self.target = Side({"a": {}}, log(("create", 0, 0, 0)), uri="thrift://b:1")
        for side in (self.source, self.target):
            side.features = SimpleNamespace(major=3, version="3", later_than=Mock(return_value=False))
            cast("Any", side).config_value = Mock(return_value="true")
        self._lags = Mock()
        monkeypatch.setattr(module, "lags_reachable", self._lags)
        for name, answer in (("writers", ()), ("rates_of", None), ("estimate", Estimate(0.0, ""))):
            monkeypatch.setattr(module, name, Mock(return_value=answer))
        self.connection: Connection = connected(self.source, self.target)

    def __call__(self, state: ReplicaState, **parameters: str) -> FailoverPlan:
        self.target.parameters = {**state.parameters(), **parameters}
        self._lags.return_value = [replace(WELL, held=tuple(sorted(state.held.items())))]
        return plan(self.connection, "db", Reachable())


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Planned:
    return Planned(monkeypatch)


def test_what_would_be_lost_of_a_table_that_was_left_out_is_not_known(planned: Planned) -> None:
    """It may be replicated again at the source, and its hold stays until a repair: nothing would be lost, it said."""
    assert planned(LEVEL).status.problem == ""
    found = planned(LEVEL.quarantine("a", 1, f"{LEFT_OUT_REASON}tables of Iceberg are not replicated"))
    assert found.status.problem == "of tables that were left out, and stay as they were until a repair: a"
    assert (found.held, found.problems) == ((), ())


def test_a_replica_that_is_marked_as_incompatible_is_not_ready(planned: Planned) -> None:
    """It was opened, and the mark went: nobody knew any more that Hive had aborted transactions of it."""
    marked = "the target database 'db' has repl.incompatible=true: it was changed so that replication cannot go on"
    assert planned(LEVEL).problems == ()
    (problem,) = planned(LEVEL, **{INCOMPATIBLE: "true"}).problems
    assert problem.startswith(marked)
    assert role_now(planned.connection, replace(WELL, database="db")).readiness == f"not ready: {problem}"
    for step in (failover.start, failover.finish):
        with pytest.raises(Refused, match=marked):
            step(planned.connection, "db")
        planned.source.parameters = FailoverMarks(endpoint="SOURCE").parameters()
        planned.target.parameters |= FailoverMarks(endpoint="TARGET", event=1).parameters()
    assert opened(planned.target.parameters, LEVEL, "nightly", 1, 1, "UNPLANNED")[INCOMPATIBLE] == "true"
