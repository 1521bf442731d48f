"""What a failback may overwrite, and what it names first: by logs, and by comparison where they do not tell."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import pytest

from hive_replication.dump.source import Source, message_hash
from hive_replication.errors import Refused
from hive_replication.failover import reverse_findings
from hive_replication.failover.changes import changes
from hive_replication.failover.finish import opened
from hive_replication.failover.reverse_findings import both_changed, kept_aside, require_allowed
from hive_replication.failover.status import status
from hive_replication.load.replica.failover_marks import FailoverMarks, failover_marks
from hive_replication.load.replica.held_lanes import with_held
from hive_replication.load.replica.held_reasons import LEFT_OUT_REASON
from hive_replication.load.replica.state import LEFT_MARK, ReplicaState
from hive_replication.load.report import Held
from hive_replication.metastore.types import NotificationEvent
from hive_replication.verify import TableComparison
from tests import model
from tests.unit.failover.fakes import Side, connected, log

A, B, C = model.NAMES
CREATE, INSERT = ("create", 0, 0, 0), ("insert", 0, 0, 0)


@pytest.fixture
def different(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Names of tables whose comparison finds a difference."""
    found = set[str]()

    def compare(source: Source, target: Any, name: str, *, table: str | None = None, progress: object = None) -> Iterable[Any]:
        del progress
        names = {*source.metastore.table_names(name), *target.metastore.table_names(name)} if table is None else {table}
        return [TableComparison(one, differences=("content",) if one in found else ()) for one in sorted(names)]

    monkeypatch.setattr(reverse_findings, "compare_database", compare)
    return found


OLD = log(CREATE, INSERT, ("create", 1, 0, 0))
MARKS = FailoverMarks(endpoint="TARGET", event=2, origin="thrift://a:1/db", opened=1, kind="UNPLANNED")


@pytest.mark.parametrize("purged", [0, 3])
def test_what_the_old_source_changed_is_a_conflict_whatever_the_other_log_tells(purged: int) -> None:
    opened = Side({A: {}, B: {}}, log(CREATE, INSERT, INSERT, INSERT), purged=purged)
    found = both_changed(connected(opened, Side({A: {}, B: {}}, OLD)), "db", MARKS)
    assert (found.conflicting, bool(found.problem), len(found.changed)) == ((B,), purged > 0, 0 if purged else 3)


def test_a_compaction_changes_no_row_unless_it_rebalances() -> None:
    """A failover was refused, since its source had been written to."""

    def found(kind: str) -> list[str]:
        message = f'{{"type": "{kind}", "dbname": "db", "tableName": "{A}"}}'
        event = NotificationEvent(4, 0, "COMMIT_COMPACTION_EVENT", "db", A, message, "json-0.2")
        made = connected(Side({}, [*OLD, event]), Side({}, []))
        return [one.type for one in changes(made.source, "db", 3)]

    assert (found("MAJOR"), found("REBALANCE")) == ([], ["COMMIT_COMPACTION_EVENT"])


def test_where_its_changes_are_unknown_all_that_differs_is_kept_aside(different: set[str]) -> None:
    different |= {A, C, "d"}
    opened, old = Side({A: {}, B: {}, "d": {}}, log(CREATE)), Side({A: {}, B: {}, C: {}}, OLD, purged=3)
    made = connected(opened, old, "keep-aside")
    found = both_changed(made, "db", MARKS)
    assert found.problem == "the log lacks the events 3 to 3"
    assert (found.conflicting, found.dropped) == ((A, C), ()), "only the opened database has d"
    assert kept_aside(made, found) == {A, C}
    assert both_changed(connected(opened, old, "replace"), "db", MARKS).dropped == (C,)


def test_an_old_source_with_another_history_is_recognised(different: set[str]) -> None:
    """Restored from a backup, it went on, so that its log has other events of the same ids."""
    different.add(B)
    marks = replace(MARKS, message_hash=message_hash(OLD[1].message))
    restored = Side({A: {}, B: {}}, log(CREATE, ("create", 1, 0, 0), ("insert", 1, 0, 0)))
    opened = Side({A: {}, B: {}}, log(CREATE))
    found = both_changed(connected(opened, restored), "db", marks)
    assert found.problem.startswith("event 2 of thrift://a:1 is another one than the replica has")
    assert found.conflicting == (B,)
    with pytest.raises(Refused, match="is not known"):
        require_allowed(found, "refuse", drop=True)

    opened.parameters = marks.parameters()
    there = connected(restored, opened)
    assert status(there, "db").problem == found.problem
    assert both_changed(connected(opened, restored), "db", MARKS).problem == "", "an earlier version did not keep the hash"
    restored.purged = 2
    assert list(changes(there.source, "db", 2, {}, marks.message_hash)), "it is not there any more: nobody can compare"


@pytest.mark.parametrize("behind", [{}, {A: 1}])
def test_an_old_source_that_was_restored_to_before_what_the_other_has_is_recognised(
    different: set[str], behind: dict[str, int]
) -> None:
    """Its log does not come as far as the other stands: where a table stood further behind, all its events seemed known."""
    different.add(B)
    restored = Side({A: {}, B: {}}, log(CREATE, ("create", 1, 0, 0), ("insert", 1, 0, 0)))
    marks = replace(MARKS, event=5, behind=behind, message_hash="0123456789abcdef")
    made = connected(Side({A: {}, B: {}}, log(CREATE), parameters=marks.parameters()), restored)
    found = both_changed(made, "db", marks)
    assert "ends at event 3, the replica has event 5: its metastore was restored" in found.problem
    with pytest.raises(Refused, match="is not known"):
        require_allowed(found, "refuse", drop=False)


def test_an_old_source_seen_from_the_way_back_is_not_asked_by_its_own_event_ids() -> None:
    marks = FailoverMarks(endpoint="SOURCE", event=900, successor="thrift://b:1/db", opened=1, message_hash="00")
    opened = Side({A: {}}, log(CREATE, INSERT), parameters=MARKS.parameters(), uri="thrift://b:1")
    found = status(connected(opened, Side({A: {}}, OLD, parameters=marks.parameters())), "db")
    assert (found.phase, found.event, [one.evid for one in found.not_replicated]) == ("to be reversed", 1, [2])


@pytest.mark.parametrize("how", ["unfinished", "left"])
def test_what_the_opened_database_never_had_is_a_conflict(different: set[str], how: str) -> None:
    """Without any change on either side: the opened database's own would replace the only good one."""
    different.add(A)
    marks = replace(MARKS, event=3, behind={A: 0, B: 0, "gone": 0} if how == "unfinished" else {})
    left = {LEFT_MARK: "2"} if how == "left" else {}
    opened, old = Side({A: left, B: left}, log(CREATE), parameters=marks.parameters()), Side({A: {}, B: {}, C: {}}, OLD)
    made = connected(opened, old, "keep-aside")
    found = both_changed(made, "db", marks)
    assert (found.conflicts, found.conflicting, found.never_equal, found.problem) == ((), (A,), (A,), "")
    assert kept_aside(made, found) == {A}
    require_allowed(found, "keep-aside", drop=True)
    with pytest.raises(Refused, match=f"the opened database 'db' never had {A} as the old source 'db' has it"):
        require_allowed(found, "refuse", drop=True)
    assert status(connected(old, opened), "db").unfinished == ((A, B, "gone") if how == "unfinished" else ())


def test_a_failback_that_began_goes_on_with_what_was_settled(different: set[str]) -> None:
    different.add(A)
    begun = FailoverMarks(endpoint="SOURCE", successor="thrift://b:1/db", behind={A: 0}, settled=3)
    opened, old = Side({A: {}, B: {}}, log(CREATE)), Side({A: {}, B: {}}, OLD, purged=3, parameters=begun.parameters())
    found = both_changed(connected(opened, old), "db", replace(MARKS, behind={A: 0}))
    assert (found.conflicting, found.never_equal, found.problem) == ((A,), (), "")
    require_allowed(found, "refuse", drop=True)


def test_functions_are_compared_with_all_tables(different: set[str]) -> None:
    different |= {"f()", B}
    marks = replace(MARKS, event=3, behind={"f()": 0})
    opened, old = Side({B: {}, "f()": {}}, log(CREATE)), Side({B: {}, "f()": {}}, OLD)
    assert both_changed(connected(opened, old), "db", marks).never_equal == ("f()",)


def test_a_table_that_stood_before_the_log_hides_nothing_of_the_others(different: set[str]) -> None:
    """Undone, or held, for longer than the old source keeps events: all that differed counted as changed there."""
    different |= {A, B}
    old = Side({A: {}, B: {}, C: {}}, [*OLD, *log(INSERT)], purged=2)
    marks = replace(MARKS, event=3, behind={A: 1})
    opened = Side({A: {}, B: {}, C: {}}, log(CREATE), parameters=marks.parameters())
    found = both_changed(connected(opened, old), "db", marks)
    assert (found.conflicting, found.never_equal, found.problem) == ((A,), (A,), ""), "B differs since the opened one was written"
    told = status(connected(old, opened), "db")
    assert (told.not_replicated, told.problem) == ((), f"the log lacks events of tables that stand before 3: {A}")
    old.purged = 1
    assert both_changed(connected(opened, old), "db", marks).never_equal == (), "the log tells"


def test_a_table_that_was_left_out_and_is_replicated_again_is_a_conflict(different: set[str]) -> None:
    """Held until a repair, it stood where the windows ended: a failback took it for equal, and its rows were lost."""
    different |= {A, B}
    why = Held((A,), 1, 2, f"{LEFT_OUT_REASON}tables of Iceberg are not replicated", table=A)
    state = with_held(ReplicaState("thrift://a:1/db", 3), [why], window=3)
    parameters = opened(state.parameters(), state, "nightly", 1, 1, "UNPLANNED")
    now, old = Side({A: {}, B: {}}, log(CREATE), parameters=parameters), Side({A: {}, B: {}, C: {}}, OLD)
    found = both_changed(connected(now, old), "db", failover_marks(now.database("db")))
    assert (found.conflicting, found.never_equal, found.problem) == ((A,), (A,), ""), "B differs since the opened one was written"
    assert status(connected(old, now), "db").unfinished == (A,)
