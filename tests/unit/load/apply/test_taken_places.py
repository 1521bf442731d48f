"""Whose an existing directory of a partition is."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.load.apply.taken_places import TakenPlaces
from hive_replication.metastore.types import FieldSchema, Partition, StorageDescriptor, Table

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
    assert taken._partitions["t"].result() == {"/w/db.db/t/d=p/x=0"}


@pytest.mark.parametrize(
    ("database", "store"),
    [
        *(("hdfs://dst", store) for store in ("hdfs://dst", "hdfs://DST", "hdfs://nn1:8020", "hdfs://", "")),
        *(("s3a://lake", store) for store in ("s3a://lake", "s3://lake", "")),
        ("gs://lake", "gs://lake"),
    ],
)
@pytest.mark.parametrize("spelled", ["/t", "./t", "x/../t", "t//", "t"])
@pytest.mark.parametrize("partitioned", [False, True])
def test_a_directory_is_a_tables_however_its_location_is_spelled(
    database: str, store: str, spelled: str, *, partitioned: bool
) -> None:
    """Else a new replica got the directory of a table that somebody made there, and its files beside that one's."""
    home = f"{database}/w/db.db"
    keys = [FieldSchema("ds", "string", "")] if partitioned else []
    there = Table("x", "db", sd=StorageDescriptor(location=f"{store}/w/db.db/{spelled}"), partitionKeys=keys)
    part = Partition(values=["1"], sd=StorageDescriptor(location=f"{store}/w/db.db/{spelled}/ds=1"))
    odd = Table("odd", "db", sd=StorageDescriptor(location="/w/no store"), partitionKeys=[])
    metastore = SimpleNamespace(
        table_names=lambda _: ["odd", "x"], tables=lambda *_: iter([odd, there]), partitions=lambda *_: iter([part])
    )
    storage = SimpleNamespace(exists=lambda _: True)
    target: Any = SimpleNamespace(metastore=metastore, storage=storage, policy=SimpleNamespace(external_root=None))
    taken = TakenPlaces(target, "db", home)
    wanted = f"{home}/t/ds=1" if partitioned else f"{home}/t"
    assert taken.is_a_tables(wanted)
    assert not taken.is_a_tables(f"{home}/u")


@pytest.mark.parametrize(
    "spelled", [f"{BASE}/d=p//x=0", f"{BASE}/./d=p/x=0", "hdfs://nn1:8020/w/db.db/t/d=p/x=0", "/w/db.db/t/d=p/x=0"]
)
def test_a_directory_is_another_partitions_however_its_location_is_spelled(spelled: str) -> None:
    part = Partition(values=["p", "1"], sd=StorageDescriptor(location=spelled))
    metastore = SimpleNamespace(partitions=lambda *_: iter([part]))
    target: Any = SimpleNamespace(metastore=metastore, policy=SimpleNamespace(external_root=None))
    assert TakenPlaces(target, "db", "hdfs://dst/w/db.db").is_another_partitions("t", ["p", "0"], f"{BASE}/d=p/x=0")
