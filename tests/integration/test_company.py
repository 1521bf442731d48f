"""The simulated company: the real dump and load of a slice bring to the target exactly what the formula says."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from bench.company import formula
from bench.company.formula import Slice
from bench.company.measure import Replicated, connected, replicate
from bench.company.servers import Side, side
from hive_replication.connect import Connection
from hive_replication.storage import Storage

SLICE = Slice("company_3x50x3", 3, 50, 3)
TABLES = [formula.table_name(number) for number in range(SLICE.tables)]


@dataclass(frozen=True)
class Replica:
    sides: Connection
    source: Side
    target: Side
    made: Replicated


@pytest.fixture(scope="module")
def replica(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Replica]:
    root = tmp_path_factory.mktemp("dumps")
    with side("source") as source, side("target", SLICE.files) as target:
        made = replicate(source, target, SLICE, root)
        yield Replica(connected(source, target, SLICE, root), source, target, made)


def test_the_dump_is_what_the_formula_says(replica: Replica) -> None:
    (directory,) = replica.sides.store.dumps(SLICE.name)
    dump, store = replica.sides.store.open(directory), replica.source.hdfs.rstrip("/")
    numbers = range(SLICE.partitions)
    assert [record.table for record in dump.tables()] == [formula.table(SLICE, number, store) for number in range(SLICE.tables)]
    for table, name in enumerate(TABLES):
        found = list(dump.partitions(name))
        assert [record.partition for record in found] == [formula.partition(SLICE, table, one, store) for one in numbers]
        files = [[(file.name, file.checksum) for file in record.files] for record in found]
        wanted = [[(formula.file_name(file), formula.checksum(table, one, file)) for file in range(3)] for one in numbers]
        assert files == wanted


def test_the_replica_is_what_the_formula_says(replica: Replica) -> None:
    target, store = replica.sides.target, replica.target.hdfs.rstrip("/")
    for table, name in enumerate(TABLES):
        found = sorted(target.metastore.partitions(SLICE.name, name), key=lambda one: one.values)
        assert [one.values for one in found] == [[formula.partition_value(number)] for number in range(SLICE.partitions)]
        for number, one in enumerate(found):
            wanted = formula.partition(SLICE, table, number, store)
            assert one.sd == wanted.sd
            assert wanted.parameters.items() <= one.parameters.items()
            assert {file.uri: target.storage.read(file.uri) for file in target.storage.files(one.sd.location, hidden=True)} == {
                f"{one.sd.location}/{formula.file_name(file)}": formula.content(table, number, file) for file in range(3)
            }


def test_calls_are_as_few_as_they_can_be(replica: Replica) -> None:
    dump, load, files = replica.made.dump.calls, replica.made.load, SLICE.objects * SLICE.files
    assert dump["NameNode getListing"] == SLICE.objects
    assert dump["WebHDFS GETFILECHECKSUM"] == files
    assert {dump[f"metastore {name}"] for name in ("get_partition_names", "get_partitions_by_names")} == {SLICE.tables}
    assert replica.made.dump.calls_of("metastore") < 60
    assert load is not None
    assert {load.calls[f"DataNode {name}"] for name in ("read", "write")} == {files}
    assert {load.calls[f"metastore {name}"] for name in ("create_table", "add_partitions_req")} == {SLICE.tables}
    assert load.calls_of("metastore") < 70


def test_of_a_complete_partition_the_target_keeps_no_more_than_its_numbers(replica: Replica) -> None:
    storage = replica.sides.target.storage
    directory = f"{replica.target.hdfs}warehouse/{SLICE.name}.db/{TABLES[1]}/{formula.KEY}=000007"
    changed = f"{directory}/{formula.file_name(1)}"
    kept = storage.read(changed)
    assert replica.target.complete(SLICE.name) == SLICE.objects
    storage.write(changed, b"another content")
    assert replica.target.complete(SLICE.name) == SLICE.objects - 1
    assert storage.read(changed) == b"another content"
    storage.write(changed, kept)
    assert replica.target.complete(SLICE.name) == SLICE.objects


def test_the_whole_company_is_there_without_being_stored(replica: Replica) -> None:
    metastore, company, last = replica.sides.source.metastore, Slice("company", 10_000, 10_000, 3), formula.table_name(9_999)
    assert len(metastore.table_names("company")) == 10_000
    names = metastore.partition_names("company", last)
    assert len(names) == 10_000
    (found,) = metastore.partitions("company", last, names[-1:])
    assert found == formula.partition(company, 9_999, 9_999, replica.source.hdfs.rstrip("/"))
    assert metastore.table("company", formula.table_name(10_000)) is None


def test_a_directory_is_listed_in_pages(replica: Replica) -> None:
    storage = Storage(replica.source.warehouse.storage_roots)
    table = f"{replica.source.hdfs}warehouse/company_1x2500x1.db/{formula.table_name(0)}"
    assert len(storage.ls(table)) == 2_500
    assert storage.status(f"{table}/{formula.KEY}=002500") is None
