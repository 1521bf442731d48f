"""Which partitions have the rows of a file, where directories are those of several."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.dump.source import Source
from hive_replication.metastore.types import FieldSchema, Partition, StorageDescriptor, Table
from hive_replication.policy import Root
from hive_replication.storage import Storage
from repl_assets.checks import spark_rows
from repl_assets.checks.findings import Finding
from repl_assets.checks.row_diff import _side  # pyright: ignore[reportPrivateUsage]
from repl_assets.checks.spark_rows import Files, count_rows
from repl_assets.checks.table_checks import TableCheck

TEXT = "org.apache.hadoop.mapred.TextInputFormat"
PLACES = {"1": "t/ds=1", "2": "t/ds=1", "3": "t/ds=1/below", "4": "t/ds=4"}


@pytest.fixture
def side(tmp_path: Path) -> Source:
    """Partitions 1 and 2 share a directory, that of 3 lies within it."""
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    for name in ("ds=1/a", "ds=1/below/b", "ds=4/c"):
        storage.write(f"{tmp_path.as_uri()}/t/{name}", b"1\n")

    def partition(day: str) -> Partition:
        return Partition(values=[day], sd=StorageDescriptor(location=f"{tmp_path.as_uri()}/{PLACES[day]}", inputFormat=TEXT))

    table = Table(tableName="t", partitionKeys=[FieldSchema("ds", "string", "")], parameters={})
    metastore = SimpleNamespace(table=lambda *_: table, partitions=lambda *_: map(partition, PLACES))
    return cast("Source", SimpleNamespace(storage=storage, metastore=metastore))


class Frame:
    """Rows of files as Spark would answer for them: one row of hash 5 in each."""

    def __init__(self, files: Files) -> None:
        self._paths = list(files.partitions)

    def __getattr__(self, _: str) -> Any:
        return lambda *_: self

    def collect(self) -> list[Any]:
        return [Row(path) for path in self._paths]


class Row(tuple[str, int, int]):
    """What is added up of a file."""

    def __new__(cls, path: str) -> Row:
        return super().__new__(cls, (path, 1, 5))

    def __getitem__(self, name: Any) -> Any:
        return {"file_path": self[0], "count": 1}[name] if isinstance(name, str) else super().__getitem__(name)


def test_rows_of_a_directory_are_counted_for_each_of_its_partitions(side: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_rows, "read", lambda _, files: Frame(files))
    counts = count_rows(cast("Any", None), side, "db", "t")
    assert counts == {"ds=1": 2, "ds=2": 2, "ds=3": 1, "ds=4": 1}


def test_a_format_that_spark_does_not_read_is_no_passing_trouble(side: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    def examine(*_: object) -> Finding:
        return Finding({"rows": len(count_rows(cast("Any", None), side, "db", "t"))})

    check = TableCheck("row_counts", "", examine, spark=True)
    monkeypatch.setattr(spark_rows, "_READERS", {"orc": "orc"})
    found = check.find(cast("Any", None), "t", None)
    assert (found.undecided, found.never) == ("rows of db.t cannot be read: Spark does not know text by itself", True)
    monkeypatch.setattr(side.metastore, "table", lambda *_: None)
    monkeypatch.setattr(side.metastore, "uri", "thrift://a:1", raising=False)
    assert not check.find(cast("Any", None), "t", None).never, "the table may come back"


def test_hashes_of_a_directory_are_added_to_each_of_its_partitions(side: Source, monkeypatch: pytest.MonkeyPatch) -> None:
    functions = SimpleNamespace(sum=lambda _: None, col=lambda _: SimpleNamespace(cast=lambda _: None), count=lambda _: None)
    monkeypatch.setattr("pyspark.sql.functions", functions)
    monkeypatch.setattr("repl_assets.checks.row_diff._rows", lambda _, files, __: Frame(files))
    found = _side(cast("Any", None), spark_rows.table_files(side, "db", "t"), 1.0)
    assert found.sums == {"ds=1": (2, 10), "ds=2": (2, 10), "ds=3": (1, 5), "ds=4": (1, 5)}
