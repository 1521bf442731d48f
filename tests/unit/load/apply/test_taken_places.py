"""Whose an existing directory of a partition is."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.load.apply.taken_places import TakenPlaces
from hive_replication.metastore.types import Partition, StorageDescriptor

BASE = "hdfs://dst/w/db.db/t"


def partitions(*_: object) -> Iterator[Partition]:
    """A thousand at their places; x=1 lies where it was as x=0, x=2 where a load staged it, a:b at its escaped place."""
    for values, place in (
        *((["p", str(n)], f"d=p/x={n}") for n in range(10, 1000)),
        (["p", "1"], "d=p/x=0"),
        (["p", "2"], "../.repl/7-0/d=p/x=2"),
        (["p", "a:b"], "d=p/x=a%3Ab"),
    ):
        yield Partition(values=values, sd=StorageDescriptor(location=f"{BASE}/{place}"))


@pytest.fixture
def taken() -> TakenPlaces:
    target: Any = SimpleNamespace(metastore=SimpleNamespace(partitions=partitions), policy=SimpleNamespace(external_root=None))
    return TakenPlaces(target, "db", "hdfs://dst/w/db.db")


@pytest.mark.parametrize(
    ("values", "place", "another"),
    [
        (["p", "0"], "d=p/x=0", True),
        (["p", "1"], "d=p/x=1", False),
        (["p", "2"], "d=p/x=2", False),
        (["p", "2"], "../.repl/7-0/d=p/x=2", False),
        (["p", "10"], "d=p/x=10", False),
        (["p", "a:b"], "d=p/x=a%3Ab", False),
        (["p", "99"], "d=p/x=10", True),
    ],
)
def test_a_partition_keeps_its_directory_when_it_is_renamed(
    taken: TakenPlaces, values: list[str], place: str, *, another: bool
) -> None:
    assert taken.is_another_partitions("t", values, f"{BASE}/{place}") is another
    assert not taken.is_another_partitions("", values, f"{BASE}/{place}")


def test_only_places_are_kept_that_do_not_say_whose_they_are(taken: TakenPlaces) -> None:
    taken.is_another_partitions("t", ["p", "0"], f"{BASE}/d=p/x=0")
    assert taken._partitions["t"].result() == {f"{BASE}/d=p/x=0"}
