"""Directories in use: what retention and placement must leave alone."""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import cast

import pytest

from hive_replication.errors import Unreachable
from hive_replication.load.layout.live_locations import Locations, databases_within, live_locations
from hive_replication.load.layout.move_to_retired import retire
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import MetastoreError, NotFound
from hive_replication.metastore.types import Database, FieldSchema, Partition, StorageDescriptor, Table
from hive_replication.policy import Root
from hive_replication.storage import Storage

BASE = "hdfs://dst/w/db.db"
LOCATIONS = Locations([f"{BASE}/a", f"{BASE}/p/ds=1"], bases=[f"{BASE}/p"])


@pytest.mark.parametrize(
    ("path", "contains", "any_below"),
    [
        ("a", True, True),
        ("a/f", True, False),
        ("ab", False, False),
        ("p", False, True),
        ("p/ds=1", True, True),
        ("p/ds=2", False, False),
        ("p/ds=10", False, False),
    ],
)
def test_what_is_in_use(path: str, contains: bool, any_below: bool) -> None:
    assert (LOCATIONS.contains(f"{BASE}/{path}"), LOCATIONS.any_below(f"{BASE}/{path}")) == (contains, any_below)


def test_a_million_places_take_little_memory() -> None:
    number = 20_000
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        live = Locations((f"{BASE}/p/ds={n:07d}" for n in range(number)), bases=[f"{BASE}/p"])
        kept = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert live.contains(f"{BASE}/p/ds=0000007/f")
    assert kept / number < 120  # bytes; the text alone takes 90


def test_above_a_directory_with_data() -> None:
    assert (LOCATIONS.contains(BASE), LOCATIONS.any_below(BASE)) == (False, True)


def test_the_largest_unused_parts(tmp_path: Path) -> None:
    base, storage = f"{tmp_path.as_uri()}/db.db", Storage((Root(uri=tmp_path.as_uri()),))
    for name in ("p/ds=1/f", "p/ds=2/f", "p/ds=2/g", "old/f"):
        storage.write(f"{base}/{name}", b"1")
    live = Locations([f"{base}/p/ds=1"], bases=[f"{base}/p"])
    assert sorted(live.unused_parts(storage, base)) == [f"{base}/old", f"{base}/p/ds=2"]
    assert list(live.unused_parts(storage, f"{base}/old")) == [f"{base}/old"]
    assert list(live.unused_parts(storage, f"{base}/p/ds=1/f")) == []


class Renamed:
    """A metastore whose table ``a`` is dropped, and ``b`` gets the name ``c``, after the names were read."""

    def __init__(self) -> None:
        self._there = {"d": "d", "c": "b"}
        self._listed = 0

    def table_names(self, _: str) -> list[str]:
        self._listed += 1
        return ["a", "b", "d"] if self._listed == 1 else list(self._there)

    def tables(self, _: str, names: list[str]) -> Iterator[Table]:
        if "a" in names:  # dropped before its partitions are read
            yield table("a", "a")
        yield from (table(name, self._there[name]) for name in names if name in self._there)

    def partitions(self, _: str, name: str) -> Iterator[Partition]:
        if name not in self._there:
            raise NotFound(name)
        yield Partition(values=["1"], sd=StorageDescriptor(location=f"{BASE}/{self._there[name]}/ds=1"))


def table(name: str, place: str) -> Table:
    keys = [FieldSchema(name="ds", type="string")]
    return Table(dbName="db", tableName=name, sd=StorageDescriptor(location=f"{BASE}/{place}"), partitionKeys=keys)


def test_tables_that_are_dropped_and_renamed_while_they_are_read() -> None:
    live = live_locations(cast("Metastore", Renamed()), "db")
    assert [live.contains(f"{BASE}/{name}/ds=1") for name in ("a", "b", "d")] == [False, True, True]


def test_tables_that_are_left_out() -> None:
    live = live_locations(cast("Metastore", Renamed()), "db", [f"{BASE}/old"], but=["c"])
    assert [live.contains(f"{BASE}/{name}/ds=1") for name in ("old", "b", "d")] == [True, False, True]


def test_a_location_that_no_load_would_set_is_in_use_where_hadoop_finds_it() -> None:
    """Retention of the database ended at it, and loads held tables."""
    metastore = Renamed()
    for place, lies in (("/../db.db//d", "d"), ("./e/../d", "d"), ("//d//", "d")):
        metastore._there = {"d": place}  # pyright: ignore[reportPrivateUsage]
        live = live_locations(cast("Metastore", metastore), "db", [f"{BASE}//old"])
        assert [live.contains(f"{BASE}/{name}") for name in (f"{lies}/ds=1", "old", "c")] == [True, True, False]


@pytest.mark.parametrize(
    "store", ["hdfs://nn1.example.com:8020", "hdfs://DST", "HDFS://dst", "hdfs://", "hdfs:", "", "//nn1:8020"]
)
def test_a_location_is_in_use_whatever_its_store_is_called(store: str) -> None:
    """Hive keeps it as it was given, and retention deleted the data."""
    live = Locations([f"{store}/w/db.db/a", f"{store}/w/db.db/p/ds=1"], bases=[f"{store}/w/db.db/p"])
    used = {one: (live.contains(f"{BASE}/{one}"), live.any_below(f"{BASE}/{one}")) for one in ("a/f", "p", "p/ds=2", "b")}
    assert used == {"a/f": (True, False), "p": (False, True), "p/ds=2": (False, False), "b": (False, False)}
    assert list(live.within(BASE)) == [f"{BASE}/a", f"{BASE}/p"]


def test_an_archived_partition_is_in_use() -> None:
    live = Locations(["har://hdfs-nn1:8020/w/db.db/p/ds=1/data.har"])
    assert [live.touches(f"{BASE}/p/{one}") for one in ("ds=1", "ds=1/data.har/part-0", "ds=2")] == [True, True, False]


def test_a_bucket_has_one_name() -> None:
    """A table of another one, at the top of it perhaps, keeps nothing of the same path."""
    live = Locations(["s3a://lake/", "s3://Ours/w/a", "/w/b"])
    places = ("s3a://ours/w/a/f", "s3a://ours/w/b", "s3a://ours/w/c", "s3a://lake/x", "hdfs://dst/w/a")
    assert [live.touches(one) for one in places] == [True, True, False, True, False]


class Private(Renamed):
    """A metastore that lists tables, and does not show the partitions of ``d``."""

    refusal: type[Exception] = MetastoreError
    parameters: Mapping[str, str] = MappingProxyType({})

    def tables(self, _: str, names: list[str]) -> Iterator[Table]:
        for one in super().tables(_, names):
            one.parameters = dict(self.parameters)
            yield one

    def partitions(self, _: str, name: str) -> Iterator[Partition]:
        if name == "d":
            raise self.refusal("get_partition_names db.d: Permission denied: user=repl, access=READ")
        return super().partitions(_, name)


def test_all_of_a_strangers_table_is_in_use_whose_partitions_may_not_be_read() -> None:
    """Retention of its database ended, for ever, and loads that dropped a table or took one's place failed."""
    live = live_locations(cast("Metastore", Private()), "db")
    places = {one: live.contains(f"{BASE}/{one}") for one in ("b/ds=1", "b/ds=2", "d", "d/ds=7/f", "e")}
    assert places == {"b/ds=1": True, "b/ds=2": False, "d": True, "d/ds=7/f": True, "e": False}


@pytest.mark.parametrize(
    ("refusal", "parameters"), [(MetastoreError, {"repl.last.id": "7"}), (Unreachable, {})], ids=["a replica's", "out of reach"]
)
def test_partitions_that_may_lie_anywhere_end_what_needs_them(refusal: type[Exception], parameters: dict[str, str]) -> None:
    """Those of a replica lie in staging directories, too, which retention would delete."""
    metastore = Private()
    metastore.refusal, metastore.parameters = refusal, parameters
    with pytest.raises(refusal):
        live_locations(cast("Metastore", metastore), "db")


class Guarded:
    """A metastore that lists a database and does not let it be read."""

    answers: type[Exception] = MetastoreError

    def databases(self) -> list[str]:
        return ["secret", "inner", "db"]

    def database(self, name: str) -> Database:
        if name == "secret":
            raise self.answers("get_database secret: no right to read it")
        return Database(name=name, locationUri=f"{BASE}//{name}")


def test_a_database_that_may_not_be_read_counts_as_lying_there() -> None:
    metastore = Guarded()
    assert databases_within(cast("Metastore", metastore), BASE, "db") == [f"{BASE}/secret.db", f"{BASE}/inner"]
    metastore.answers = Unreachable
    with pytest.raises(Unreachable):
        databases_within(cast("Metastore", metastore), BASE, "db")


def test_a_directory_is_retired_once_and_only_inside_the_database(tmp_path: Path) -> None:
    base, storage = f"{tmp_path.as_uri()}/db.db", Storage((Root(uri=tmp_path.as_uri()),))
    for uri in (f"{base}/t/f", f"{tmp_path.as_uri()}/outside/f"):
        storage.write(uri, b"1")
    for directory in (f"{base}/t/", f"{base}/t", f"{tmp_path.as_uri()}/outside", "", None):
        retire(storage, base, directory, 170)
    assert storage.exists(f"{tmp_path.as_uri()}/outside/f")
    assert not storage.exists(f"{base}/t")
    assert [status.uri.rpartition("-")[0] for status in storage.ls(f"{base}/.repl/retired/170")] == [
        f"{base}/.repl/retired/170/t"
    ]
