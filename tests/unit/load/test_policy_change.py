"""Loads where the policy takes other tables than the replica was made with."""

from __future__ import annotations

import pytest

from hive_replication.errors import Refused
from hive_replication.load.bootstrap import load_objects
from hive_replication.load.replica.state import ReplicaState
from hive_replication.policy import PolicyScope
from tests.bootstraps import SOURCE, header, loaded, loading, record

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
