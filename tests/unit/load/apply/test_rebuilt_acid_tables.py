"""Transactional tables that are made anew: what stands for the source's transactions ends before it is found no more."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from hive_replication.load.apply import change_tables
from hive_replication.load.apply.change_tables import TableChanges
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.transactions import policy_of
from hive_replication.load.replica.state import SOURCE, ReplicaState
from hive_replication.load.replica.target_boundary import TargetBoundary
from hive_replication.metastore.types import StorageDescriptor, Table
from tests.bootstraps import SOURCE as OURS
from tests.bootstraps import header, loaded, record, replica


def _table(**parameters: str) -> Table:
    return Table("t", "db", sd=StorageDescriptor(cols=[]), parameters={SOURCE: OURS, **parameters})


@pytest.mark.parametrize(("ends", "transactional"), [(True, True), (False, True), (True, False)])
def test_what_wrote_to_a_table_ends_before_its_drop(monkeypatch: pytest.MonkeyPatch, *, ends: bool, transactional: bool) -> None:
    """A load that was killed after the drop, or Dagster's repair, left it open until Hive gave its database up."""
    calls, found = Mock(), _table(**({"transactional": "true"} if transactional else {}))
    monkeypatch.setattr(change_tables, "end_replayed", lambda _, *names, only: calls.end(*names, only))
    monkeypatch.setattr(change_tables, "drop_table", lambda *_: calls.drop())
    target: Any = SimpleNamespace(metastore=Mock(table=lambda *_: found))
    check = Mock()
    changes = TableChanges(target, "db", OURS, cast("TargetBoundary", None), check)
    changes.carry_out(cast("Any", SimpleNamespace(lane=SimpleNamespace(operations=(op.DropTable(7, "t", ends=ends),)))), 0)
    named = [one.args for one in calls.end.call_args_list]
    assert named == ([("db", policy_of(OURS, "db"), check, "t")] if ends and transactional else [])
    assert [name for name, *_ in calls.method_calls][-1] == "drop"


@pytest.mark.parametrize("ends", [True, False])
def test_what_wrote_to_a_table_that_is_gone_ends_with_a_load_of_objects_only(
    monkeypatch: pytest.MonkeyPatch, *, ends: bool
) -> None:
    """In a window it ended what another lane had opened at that moment, and that table lacked its rows."""
    calls = Mock()
    monkeypatch.setattr(change_tables, "end_replayed", lambda *_, only: calls.end(only))
    monkeypatch.setattr(change_tables, "require_open", lambda *_: None)
    monkeypatch.setattr(change_tables, "vacate", lambda _, __, first: (first(), calls.vacate()))
    metastore = Mock(features=SimpleNamespace(major=4), create_table=lambda _: calls.create())
    changes = TableChanges(
        cast("Any", SimpleNamespace(metastore=metastore)), "db", OURS, cast("TargetBoundary", None), lambda: None
    )
    create = op.CreateTable(7, "t", _table(transactional="true"), op.Content((), ""), "", ends=ends)
    changes.carry_out(cast("Any", SimpleNamespace(lane=SimpleNamespace(operations=(create,)), directories={})), 0)
    assert [name for name, *_ in calls.method_calls] == [*(["end"] if ends else []), "vacate", "create"]


@pytest.mark.parametrize("table", ["t", None])
def test_repairs_end_what_wrote_to_the_tables_that_they_drop(table: str | None) -> None:
    """Also to tables that the source has no more, in a repair of their database; windows have the ends themselves."""
    there = [replica(name, 50, transactional="true") for name in ("t", "gone")]
    load = loaded(ReplicaState(OURS, 60), header(60, table), there, [record("t")])
    lanes = [lane for plan in load.planned for lane in plan.lanes]
    drops = [one for lane in lanes for one in lane.operations if isinstance(one, op.DropTable)]
    assert {(one.table, one.ends) for one in drops} == {("t", True), *([] if table else [("gone", True)])}
