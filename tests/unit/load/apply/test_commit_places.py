"""What a lane creates, by the names that it has later; with operations: ``tests/unit/load/plan/test_plan_transactions.py``."""

from __future__ import annotations

from hive_replication.events.name_changes import NameChange, created, dropped, renamed
from hive_replication.load.apply.commit_places import CreatedInLane


def after(*operations: tuple[NameChange, ...]) -> CreatedInLane:
    made = CreatedInLane()
    for number, changes in enumerate(operations):
        made.follow(number, changes)
    return made


def test_what_is_created_is_found_by_its_later_names() -> None:
    renames = (*renamed(("t", "ds=1"), ("t", "ds=2")), *renamed(("t", ""), ("u", "")))
    made = after(created("t", "ds=1"), renames)
    assert made.key("u", "ds=2") == (0, "ds=1")
    assert (made.key("v", "ds=2"), made.key("t", "ds=1"), made.key("u", "ds=1")) == (None, None, None)


def test_what_was_there_before_is_not_created() -> None:
    assert after(created("t", "ds=1")).key("t", "ds=1") == (0, "ds=1")
    assert after(created("t", "ds=1")).key("t", "ds=2") is None
    assert after(created("t", "ds=1"), created("t")).key("t", "ds=1") is None
    assert after(created("t", "ds=1"), dropped("t")).key("t", "ds=1") is None
    assert after(created("t", "ds=2"), created("t", "ds=1")).key("t", "ds=2") == (0, "ds=2")
    assert after(created("t"), dropped("t", "ds=1")).key("t", "") == (0, "")
    assert after(renamed(("t", "ds=1"), ("t", "ds=2"))).key("t", "ds=2") is None


def test_names_that_are_swapped() -> None:
    changes = (renamed((one, ""), (other, "")) for one, other in (("a", "t"), ("b", "a"), ("t", "b")))
    made = after(created("a"), created("b", "ds=1"), *changes)
    assert (made.key("b", ""), made.key("a", "ds=1"), made.key("t", "")) == ((0, ""), (1, "ds=1"), None)
