"""The simulated company: the real dump of a slice holds exactly what the formula says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.company import formula
from bench.company.formula import Slice
from bench.company.measure import used
from bench.company.servers import Side, side
from hive_replication.connect import Connection, connect
from hive_replication.dump.command import repl_dump
from hive_replication.policy import Policy
from hive_replication.statements import ReplDump
from hive_replication.storage import Storage

SLICE = Slice("company_3x50x3", 3, 50, 3)


@pytest.fixture(scope="module")
def source() -> Iterator[Side]:
    with side("bench.company.serve") as found:
        yield found


def _connected(source: Side, root: Path, database: str = SLICE.name) -> Connection:
    roots = {"source": source.warehouse, "target": source.warehouse, "dump_root": root.as_uri()}
    return connect(Policy(**roots, databases={database: database}))


def test_the_dump_of_a_slice_is_what_the_formula_says(source: Side, tmp_path: Path) -> None:
    sides = _connected(source, tmp_path)
    taken = used(lambda: repl_dump(sides.source, ReplDump(SLICE.name), sides.store), source)
    (directory,) = sides.store.dumps(SLICE.name)
    dump, store = sides.store.open(directory), source.hdfs.rstrip("/")
    numbers = range(SLICE.partitions)
    assert [record.table for record in dump.tables()] == [formula.table(SLICE, number, store) for number in range(SLICE.tables)]
    for table in range(SLICE.tables):
        found = list(dump.partitions(formula.table_name(table)))
        assert [record.partition for record in found] == [formula.partition(SLICE, table, one, store) for one in numbers]
        files = [[(file.name, file.checksum) for file in record.files] for record in found]
        wanted = [[(formula.file_name(file), formula.checksum(table, one, file)) for file in range(3)] for one in numbers]
        assert files == wanted
    assert taken.calls["NameNode getListing"] == SLICE.objects
    assert taken.calls["WebHDFS GETFILECHECKSUM"] == SLICE.objects * SLICE.files
    assert {taken.calls[f"metastore {name}"] for name in ("get_partition_names", "get_partitions_by_names")} == {SLICE.tables}
    assert taken.calls_of("metastore") < 60


def test_the_whole_company_is_there_without_being_stored(source: Side, tmp_path: Path) -> None:
    sides, company = _connected(source, tmp_path, "company"), Slice("company", 10_000, 10_000, 3)
    metastore, last = sides.source.metastore, formula.table_name(9_999)
    assert len(metastore.table_names("company")) == 10_000
    names = metastore.partition_names("company", last)
    assert len(names) == 10_000
    (found,) = metastore.partitions("company", last, names[-1:])
    assert found == formula.partition(company, 9_999, 9_999, source.hdfs.rstrip("/"))
    assert metastore.table("company", formula.table_name(10_000)) is None


def test_a_directory_is_listed_in_pages(source: Side) -> None:
    storage = Storage(source.warehouse.storage_roots)
    table = f"{source.hdfs}warehouse/company_1x2500x1.db/{formula.table_name(0)}"
    assert len(storage.ls(table)) == 2_500
    assert storage.status(f"{table}/{formula.KEY}=002500") is None
