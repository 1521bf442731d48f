"""Whose an existing directory of a partition is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


def places(
    *tables: Table,
    partitions: Callable[..., Iterator[Partition]] = lambda *_: iter(()),
    root: str | None = None,
    there: bool = True,
) -> TakenPlaces:
    metastore = SimpleNamespace(
        table_names=lambda _: [one.tableName for one in tables], tables=lambda *_: iter(tables), partitions=partitions
    )
    storage = SimpleNamespace(exists=lambda _: there)
    target: Any = SimpleNamespace(metastore=metastore, storage=storage, policy=SimpleNamespace(external_root=root))
    return TakenPlaces(target, "db", "hdfs://dst/w/db.db")


def table(name: str, place: str, *keys: str) -> Table:
    columns = [FieldSchema(key, "string", "") for key in keys]
    return Table(name, "db", sd=StorageDescriptor(location=place), partitionKeys=columns)


@pytest.fixture
def taken() -> TakenPlaces:
    return places(table("t", BASE, "d", "x"), partitions=partitions)


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
    taken = places(partitions=lambda *_: iter([part]))
    assert taken.is_another_partitions("t", ["p", "0"], f"{BASE}/d=p/x=0")


@pytest.mark.parametrize("there", [False, True])
def test_no_partition_goes_into_the_directory_of_a_table_that_lay_elsewhere_at_the_source(*, there: bool) -> None:
    """Tables of two stores share ``external_root``: readers of the one found the files of the other's partition there."""
    taken = places(table("a", "hdfs://dst/ext/x"), table("b", "hdfs://dst/ext/y", "d"), root="hdfs://dst/ext/", there=there)
    assert taken.is_live("hdfs://dst/ext/x/d=1")
    assert not taken.is_live("hdfs://dst/ext/y/d=1")


def test_an_empty_table_in_the_place_of_a_partition_keeps_it() -> None:
    taken = places(table("t", BASE, "d", "x"), table("a", f"{BASE}/d=p/x=0"), partitions=partitions)
    assert taken.is_another_partitions("t", ["p", "3"], f"{BASE}/d=p/x=0")
    assert not taken.is_another_partitions("t", ["p", "3"], f"{BASE}/d=p/x=3")
