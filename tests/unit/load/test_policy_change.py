"""Loads where the policy takes other tables than the replica was made with."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from hive_replication.errors import Refused
from hive_replication.load.bootstrap import load_objects
from hive_replication.load.newly_included_tables import with_joined_tables
from hive_replication.load.operations.mark_left import MarkLeft
from hive_replication.load.policy_change import with_scope
from hive_replication.load.replica.state import ReplicaState
from hive_replication.policy import PolicyScope
from tests.bootstraps import SOURCE, header, loaded, loading, record, replica

SOME = PolicyScope(("*",), ("secret",)).text


def test_a_table_that_the_policy_leaves_out_is_not_loaded_alone() -> None:
    """No window would go on with it: it became stale, and no figure told."""
    session = loading(ReplicaState(SOURCE, 50, scope=SOME), header(60, "secret"), [], [record("secret")])
    session.target.policy = session.target.policy.model_copy(update={"exclude": ("secret",)})  # type: ignore[misc]
    with pytest.raises(Refused, match=r"the policy leave out db\.secret"):
        load_objects(session, repair=False)
    assert session.planned == []


@pytest.mark.parametrize(("dumped", "taken"), [("orders", True), ("secret", False)])
@pytest.mark.parametrize("named", ["orders", "secret", "x"])
def test_the_name_under_which_a_table_is_loaded_does_not_matter(dumped: str, named: str, *, taken: bool) -> None:
    """One of the policy was refused under a name that is not, and one that it leaves out was loaded under another name."""
    session = loading(ReplicaState(SOURCE, 50, scope=PolicyScope(("orders",)).text), header(60, dumped), [], [record(dumped)])
    session.table = named
    session.target.policy = session.target.policy.model_copy(update={"tables": ("orders",), "exclude": ()})  # type: ignore[misc]
    if taken:
        load_objects(session, repair=False)
        assert session.lanes.keys() == {named}
    else:
        with pytest.raises(Refused, match=r"the policy leave out db\.secret"):
            load_objects(session, repair=False)


@pytest.mark.parametrize(
    ("table", "scope"),
    [
        ("orders", SOME),
        ("secret", ""),  # of an earlier version
        ("secret", SOME),  # taken into the policy: it comes again with the next window
    ],
)
def test_other_tables_are_loaded_alone(table: str, scope: str) -> None:
    load = loaded(ReplicaState(SOURCE, 50, scope=scope), header(60, table), [], [record(table)], repair=False)
    assert load.lanes.keys() == {table}


def test_a_window_loads_a_table_that_its_statement_takes_in() -> None:
    """By its expressions, in place of those of the policy."""
    session = loading(ReplicaState(SOURCE, 50, scope=SOME), header(60, "secret"), [], [record("secret")])
    session.target.policy = session.target.policy.model_copy(update={"exclude": ("secret",)})  # type: ignore[misc]
    load_objects(session, repair=True)
    assert session.lanes.keys() == {"secret"}


@pytest.mark.parametrize("now", [PolicyScope(acid=False), PolicyScope(metadata_only=True)])
@pytest.mark.parametrize("excluded", ["keep", "drop"])
def test_replicas_of_transactional_tables_leave_a_policy_without_data(now: PolicyScope, excluded: str) -> None:
    """Nothing told that they were replicated no more, until an event of one held it."""
    before = PolicyScope()
    head = replace(header(60), kind="incremental", from_evid=50, taken=now.text, before=before.text)
    session = loading(
        ReplicaState(SOURCE, 50, scope=before.text), head, [replica("t", 40, transactional="true"), replica("u", 40)]
    )
    session.target.policy = session.target.policy.model_copy(update={"excluded": excluded})  # type: ignore[misc]
    session.replica.write_state(with_scope(session, session.state))
    assert dict(session.state.left) == {"t": 50}
    for _ in range(2):  # nor do later windows take it for one that the policy has again
        with_joined_tables(session, cast("Any", None))
    marks = [one for plan in session.planned for lane in plan.lanes for one in lane.operations if isinstance(one, MarkLeft)]
    if excluded == "keep":
        assert {(one.table, one.at) for one in marks} == {("t", 50)}
        assert (session.dropped, dict(session.state.left)) == (set(), {"t": 50})
    else:
        assert (session.dropped, dict(session.state.left)) == ({"t"}, {})


@pytest.mark.parametrize(("before", "now", "told"), [(True, False, True), (False, True, False), (True, True, False)])
def test_a_load_tells_that_functions_do_not_come_with_data(before: bool, now: bool, told: bool) -> None:
    """They were missing on the target for ever, and nothing but a failed check told."""
    scopes = [PolicyScope(metadata_only=one).text for one in (before, now)]
    session = loading(ReplicaState(SOURCE, 60), replace(header(60), kind="incremental", before=scopes[0], taken=scopes[1]), [])
    with_joined_tables(session, cast("Any", None))
    found = [one.reason.rpartition(": ")[2] for one in session.skipped if one.what == "functions of db"]
    assert found == (["hive-repl repair db"] if told else [])
