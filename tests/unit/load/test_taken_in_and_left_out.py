"""Tables that a window takes into the policy, or rebuilds, and whose own dumps leave them out."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast
from unittest.mock import Mock

import pytest

from hive_replication.dump.format.record_types import DumpHeader
from hive_replication.load import rebuilt_tables
from hive_replication.load.newly_included_tables import with_joined_tables
from hive_replication.load.operations.mark_left import MarkLeft
from hive_replication.load.plan.lanes import WindowEvent
from hive_replication.load.rebuilt_tables import with_rebuilt_tables
from hive_replication.load.replica.held_reasons import LEFT_OUT_REASON, TAKEN_IN_REASON
from hive_replication.load.replica.state import LEFT_MARK, ReplicaState
from hive_replication.load.report import Held
from hive_replication.metastore.types import Table
from hive_replication.policy import PolicyScope
from tests.bootstraps import SOURCE, Loading, header, loaded, loading, record, replica

ICEBERG = "tables of Iceberg are not replicated"
WAITS = f"{TAKEN_IN_REASON}and comes whole with the next load"
EVERY = PolicyScope().text


def window(
    monkeypatch: pytest.MonkeyPatch, state: ReplicaState, *there: Table, dump: DumpHeader, others: tuple[str, ...] = ()
) -> Loading:
    """A window up to event 50, beside which a table was dumped."""
    head = replace(header(50), kind="incremental", from_evid=40, taken=EVERY, joined={"t": "its dump"})
    session = loading(state, head, there)
    beside = loading(state, dump, ()).reader
    monkeypatch.setattr(rebuilt_tables, "opened", Mock(return_value=beside))
    session.copier = cast("Any", object())  # no plan
    session.held = [Held(("t", *others), 50, 50, state.held["t"])]
    return session


def joined(session: Loading) -> Loading:
    with_joined_tables(session, cast("Any", None))
    return session


def awaited(**more: Any) -> ReplicaState:
    return ReplicaState(SOURCE, 50, scope=EVERY, **more).quarantine("t", 50, WAITS)


def test_one_that_the_target_does_not_have_is_awaited_no_longer(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was held for ever, and dumped with each window, while its load held nothing."""
    load = joined(window(monkeypatch, awaited(), dump=header(52, "t", skipped={"t": ICEBERG})))
    assert (load.held, dict(load.state.held), load.state.coming) == ([], {}, frozenset())
    assert [(one.what, one.reason) for one in load.skipped] == [("t", ICEBERG)]


@pytest.mark.parametrize("left", [{}, {"t": 30}])
def test_a_replica_of_one_stays_and_is_held_as_one_that_cannot_be_followed(
    monkeypatch: pytest.MonkeyPatch, left: dict[str, int]
) -> None:
    """Also where the policy had left it, and the table became another one at the source meanwhile."""
    there = replica("t", 30, **({LEFT_MARK: "30"} if left else {}))
    load = joined(window(monkeypatch, awaited(left=left), there, dump=header(52, "t", skipped={"t": ICEBERG})))
    reason = f"{LEFT_OUT_REASON}{ICEBERG}"
    assert [(one.tables, one.reason, one.table) for one in load.held] == [(("t",), reason, "t")]
    assert (dict(load.state.held), load.state.coming, load.state.tried) == ({"t": reason}, frozenset(), [])
    assert (dict(load.state.left), load.dropped) == ({}, set())
    marks = [one for plan in load.planned for lane in plan.lanes for one in lane.operations if isinstance(one, MarkLeft)]
    assert [(one.table, one.at) for one in marks] == ([("t", 0)] if left else [])


def test_a_table_that_is_to_be_rebuilt_and_is_left_out_by_then_is_held(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its load was tried again and again in one window; its reason is not that of the others of its lane."""
    state = ReplicaState(SOURCE, 50, scope=EVERY).quarantine("t", 45, "waits for its dump")
    state = state.quarantine("u", 45, "waits for its dump")
    session = window(monkeypatch, state, replica("t", 30), dump=header(52, "t", skipped={"t": ICEBERG}), others=("u",))

    def load_window(again: Loading, **_: object) -> None:
        again.held.extend(session.held)

    monkeypatch.setattr(rebuilt_tables, "load_window", load_window)
    events = [SimpleNamespace(row=SimpleNamespace(table="t"), evid=50, redump="its dump")]
    load = with_rebuilt_tables(session, cast("list[WindowEvent]", events), cast("Any", None))
    assert [(one.tables, one.table) for one in load.held] == [(("t", "u"), "t")]
    assert (load.state.why_left_out("t"), load.state.why_left_out("u")) == (ICEBERG, "")
    assert load.state.held["u"].startswith("held with t: ")


def test_a_dump_of_one_table_without_the_partitions_outside_its_filter_holds_nothing() -> None:
    """What it leaves out stands under the table's name, and the table itself is there; an earlier hold ends."""
    outside = "3 partitions are left out: they are outside its partition filter p > '3'"
    state = ReplicaState(SOURCE, 50).quarantine("t", 40, "its files are gone")
    load = loaded(state, header(60, "t", skipped={"t": outside}), [replica("t", 40)], [record("t")])
    assert (load.held, dict(load.state.held), dict(load.state.at)) == ([], {}, {"t": 60})
    assert [(one.what, one.reason) for one in load.skipped] == [("t", outside)]
