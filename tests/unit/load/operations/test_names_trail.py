"""Following names through operations."""

from __future__ import annotations

from hive_replication.events.name_changes import created, dropped, name_after, renamed
from hive_replication.load.operations.names_trail import NamesTrail


def trail(*changes: object) -> NamesTrail:
    made = NamesTrail()
    for change in changes:
        made.follow(change)  # type: ignore[arg-type]
    return made


def swap() -> list[object]:
    return [renamed((one, ""), (other, "")) for one, other in (("a", "t"), ("b", "a"), ("t", "b"))]


def test_names_before_a_swap() -> None:
    made = trail(*swap())
    assert [made.before(name) for name in "abt"] == [("b", ""), ("a", ""), ("", "")]


def test_what_is_new_was_not_there() -> None:
    made = trail(dropped("t"), created("t"), created("p", "ds=1", "ds=2"))
    assert [made.before("t"), made.before("p", "ds=1"), made.before("p", "ds=3")] == [("", ""), ("p", ""), ("p", "ds=3")]


def test_partitions_go_along_with_their_table() -> None:
    made = trail(renamed(("t", "ds=1"), ("t", "ds=2")), renamed(("t", ""), ("u", "")), dropped("u", "ds=3"))
    assert [made.before("u", name) for name in ("ds=1", "ds=2", "ds=3")] == [("t", ""), ("t", "ds=1"), ("t", "")]
    assert [made.gone("u", name) for name in ("ds=1", "ds=2", "ds=3", "ds=4")] == [True, False, True, False]


def test_a_name_after() -> None:
    changes = (*renamed(("t", "ds=1"), ("t", "ds=2")), *renamed(("t", ""), ("u", "")))
    assert name_after(("t", "ds=1"), changes) == ("u", "ds=2")
    assert name_after(("t", ""), changes) == ("u", "")
