from __future__ import annotations

from hive_replication.load.lives import BEFORE, Lives


def ids(**found: int):
    return found.get


def test_a_name_that_nothing_is_known_of_is_from_before() -> None:
    lives = Lives()
    life = lives.of("a")
    assert (life.names, life.created, life.dropped) == ([("a", BEFORE)], None, None)
    assert lives.of("a") is life
    assert life.located(ids(a=0)) == "a"
    assert life.located(ids(a=99)) == "a"
    assert life.located(ids()) is None


def test_dropped_and_created_again() -> None:
    lives = Lives()
    old = lives.of("a")
    assert lives.drop("a", 10) is old
    new = lives.create("a", 20)
    assert (old.dropped, new.created, new.dropped) == (10, 20, None)
    for state_id, expected in [(5, (True, False)), (9, (True, False)), (20, (False, True)), (30, (False, True))]:
        assert (old.located(ids(a=state_id)) == "a", new.located(ids(a=state_id)) == "a") == expected


def test_a_swap() -> None:
    lives = Lives()
    old, new = lives.of("t"), lives.of("t_new")
    lives.rename("t", "t_old", 10)
    lives.rename("t_new", "t", 11)
    assert old.names == [("t", BEFORE), ("t_old", 10)]
    assert new.names == [("t_new", BEFORE), ("t", 11)]
    assert (lives.of("t_old"), lives.of("t")) == (old, new)
    before = {"t": 3, "t_new": 4}.get
    assert (old.located(before), new.located(before)) == ("t", "t_new")
    between = {"t_old": 10, "t_new": 4}.get
    assert (old.located(between), new.located(between)) == ("t_old", "t_new")
    after = {"t_old": 10, "t": 11}.get
    assert (old.located(after), new.located(after)) == ("t_old", "t")
    assert lives.of("t_new").names == [("t_new", 11)]


def test_there_and_back() -> None:
    lives = Lives()
    life = lives.create("a", 5)
    lives.rename("a", "b", 6)
    assert lives.rename("b", "a", 7) is life
    assert lives.drop("a", 9) is life
    assert [life.located(ids(**found)) for found in ({"a": 5}, {"b": 6}, {"a": 7}, {"a": 8}, {"a": 9}, {"b": 7}, {"a": 4})] == [
        *("a", "b", "a", "a", None, None, None),
    ]
