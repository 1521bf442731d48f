"""The gate: which events apply (design: load, gate), and that no other module of a load compares event ids with state ids."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from itertools import product
from pathlib import Path

import pytest

from hive_replication.load.plan import gate
from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.state import ReplicaState

EVID = 10
#: What the target's database says of names: window done to 8, one name ahead by a repair, one held, one that stands nowhere.
STATE = ReplicaState("uuid/db", applied=8, at={"ahead": 12, "behind": 5, "lost": 0})


@pytest.mark.parametrize(
    ("own", "table", "name", "reason"),
    [
        # The name has no entry: the database's applied id counts.
        (0, 0, "level", ""),
        (0, 9, "level", ""),
        (9, 9, "level", ""),
        (0, 10, "level", "applied already (state id 10)"),  # a table done in a window that was killed before its end
        (10, 0, "level", "applied already (state id 10)"),  # a partition done, and its table not yet
        (11, 9, "level", "applied already (state id 11)"),  # a partition repaired on its own
        (9, 11, "level", "applied already (state id 11)"),  # a table repaired: what its partitions say is older
        # A repair, or a drop by one, brought the name ahead of the database.
        (0, 0, "ahead", "applied already (state id 12)"),
        (13, 9, "ahead", "applied already (state id 13)"),
        # A held name stands behind the database's applied id, and catches up.
        (0, 0, "behind", ""),
        (0, 6, "behind", ""),
        (0, 10, "behind", "applied already (state id 10)"),
        (0, 0, "lost", ""),
    ],
)
def test_an_event_applies_if_its_id_is_greater_than_all_that_counts(own: int, table: int, name: str, reason: str) -> None:
    assert gate.applied(EVID, object_id=own, table_id=table, position=STATE.position(name)) == reason


def test_events_up_to_the_database_s_applied_id_apply_to_a_held_name_only() -> None:
    evids = (5, 6, 8, 9)
    assert [bool(gate.applied(evid, position=STATE.position("level"))) for evid in evids] == [True, True, True, False]
    assert [bool(gate.applied(evid, position=STATE.position("behind"))) for evid in evids] == [True, False, False, False]


def test_before_its_bootstrap_nothing_was_applied() -> None:
    assert gate.applied(1, position=ReplicaState().position("any")) == ""


def test_no_id_hides_another_and_nothing_applies_twice() -> None:
    for own, table, position, evid in product(range(4), repeat=4):
        reason = gate.applied(evid, object_id=own, table_id=table, position=position)
        assert (reason == "") == (evid > own and evid > table and evid > position)
        # Whichever of the three is raised by the event, a repeat is skipped.
        ids = {"object_id": own, "table_id": table, "position": position}
        for raised in ids:
            assert gate.applied(evid, **{**ids, raised: max(evid, ids[raised])}) != ""


@pytest.mark.parametrize(
    ("state_id", "load", "repair"), [(9, True, True), (10, False, True), (11, False, False)], ids=["older", "same", "later"]
)
def test_a_dump_of_objects_replaces_what_is_older_and_a_repair_what_is_of_the_same_event(
    state_id: int, *, load: bool, repair: bool
) -> None:
    assert gate.due(EVID, state_id) is load
    assert gate.due(EVID, state_id, again=True) is repair
    assert gate.due(EVID, state_id, other_history=True)  # its state ids count the events of another log


@pytest.mark.parametrize(
    ("entered", "left", "of"),
    [
        (-1, None, True),  # had the name before the window, and has it after
        (10, None, True),  # made by that very event
        (11, None, False),  # made later: what the target has is an older incarnation
        (-1, 11, True),
        (-1, 10, False),  # dropped by the event that the target's object stands at: that one came after
        (11, 12, False),
    ],
)
def test_which_incarnation_an_object_of_the_target_is(entered: int, left: int | None, *, of: bool) -> None:
    assert gate.of_incarnation(10, entered, left) is of


def test_what_stands_at_an_event_id_covers_that_event_and_all_before() -> None:
    assert [covers(EVID, evid) for evid in (9, 10, 11)] == [True, True, False]
    assert not covers(None, 0)  # nothing is applied before a bootstrap


@pytest.mark.parametrize(
    ("applied", "failed", "done"),
    [(None, False, False), (9, False, False), (10, False, True), (10, True, False), (11, True, True)],
    ids=["not finished", "older", "done", "done but for some tables", "beyond"],
)
def test_a_bootstrap_is_repeated_until_it_is_done_for_all_tables(applied: int | None, *, failed: bool, done: bool) -> None:
    assert gate.bootstrapped(applied, EVID, failed=failed) is done


def test_a_window_brings_up_names_from_which_no_event_is_missing() -> None:
    positions = {"missing before": 4, "at the begin": 5, "inside": 7, "at the end": 9, "beyond": 10}
    assert gate.reached(positions, 5, 9) == {"at the begin", "inside"}
    assert gate.ahead(positions, 9) == {"beyond": 10}


#: What state ids and positions are called.
STANDS = {"object_id", "state_id", "position", "applied", "last_id"}


def names(node: ast.AST) -> set[str]:
    return {getattr(one, "id", getattr(one, "attr", "")) for one in ast.walk(node)}


def weighs(node: ast.AST) -> bool:
    """Whether it puts a state id in order with something, or an event id with anything but an event id."""
    if not isinstance(node, ast.Compare) or not any(isinstance(one, ast.Lt | ast.LtE | ast.Gt | ast.GtE) for one in node.ops):
        return False
    sides = [names(side) for side in (node.left, *node.comparators)]
    of_events = {any("evid" in name for name in side) for side in sides}
    return of_events == {True, False} or any(STANDS & side for side in sides)


def comparisons(tree: ast.AST, path: tuple[str, ...] = ()) -> Iterator[str]:
    """Functions (with their class) that do so."""
    for node in ast.iter_child_nodes(tree):
        inside = (*path, node.name) if isinstance(node, ast.ClassDef | ast.FunctionDef) else path
        if weighs(node):
            yield ".".join(inside)
        yield from comparisons(node, inside)


def test_nothing_else_of_a_load_compares_event_ids_with_state_ids() -> None:
    root = Path(gate.__file__).parents[1]
    files = [path for path in root.rglob("*.py") if path.name not in ("gate.py", "covers.py")]
    assert [f"{path.stem}: {where}" for path in files for where in comparisons(ast.parse(path.read_text()))] == []


def test_other_modules_of_a_plan_ask_the_gate() -> None:
    planning = Path(gate.__file__).parent
    users = [path.name for path in planning.rglob("*.py") if "replica.covers" in path.read_text()]
    assert users == ["gate.py"]
