from __future__ import annotations

from hive_replication.load.plan.incarnations import BEFORE, Incarnations


def ids(**found: int):
    return found.get


def test_a_name_that_nothing_is_known_of_is_from_before() -> None:
    incarnations = Incarnations()
    incarnation = incarnations.of("a")
    assert (incarnation.names, incarnation.created, incarnation.dropped) == ([("a", BEFORE)], None, None)
    assert incarnations.of("a") is incarnation
    assert incarnation.located(ids(a=0)) == "a"
    assert incarnation.located(ids(a=99)) == "a"
    assert incarnation.located(ids()) is None


def test_dropped_and_created_again() -> None:
    incarnations = Incarnations()
    old = incarnations.of("a")
    assert incarnations.drop("a", 10) is old
    new = incarnations.create("a", 20)
    assert (old.dropped, new.created, new.dropped) == (10, 20, None)
    for state_id, expected in [(5, (True, False)), (9, (True, False)), (20, (False, True)), (30, (False, True))]:
        assert (old.located(ids(a=state_id)) == "a", new.located(ids(a=state_id)) == "a") == expected


def test_a_swap() -> None:
    incarnations = Incarnations()
    old, new = incarnations.of("t"), incarnations.of("t_new")
    incarnations.rename("t", "t_old", 10)
    incarnations.rename("t_new", "t", 11)
    assert old.names == [("t", BEFORE), ("t_old", 10)]
    assert new.names == [("t_new", BEFORE), ("t", 11)]
    assert (incarnations.of("t_old"), incarnations.of("t")) == (old, new)
    before = {"t": 3, "t_new": 4}.get
    assert (old.located(before), new.located(before)) == ("t", "t_new")
    between = {"t_old": 10, "t_new": 4}.get
    assert (old.located(between), new.located(between)) == ("t_old", "t_new")
    after = {"t_old": 10, "t": 11}.get
    assert (old.located(after), new.located(after)) == ("t_old", "t")
    assert incarnations.of("t_new").names == [("t_new", 11)]


def test_there_and_back() -> None:
    incarnations = Incarnations()
    incarnation = incarnations.create("a", 5)
    incarnations.rename("a", "b", 6)
    assert incarnations.rename("b", "a", 7) is incarnation
    assert incarnations.drop("a", 9) is incarnation
    assert [
        incarnation.located(ids(**found)) for found in ({"a": 5}, {"b": 6}, {"a": 7}, {"a": 8}, {"a": 9}, {"b": 7}, {"a": 4})
    ] == [
        *("a", "b", "a", "a", None, None, None),
    ]
