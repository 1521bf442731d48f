"""How much one call reads or writes of partitions with very many columns."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.dump.bootstrap.table_reader import ObjectReader
from hive_replication.dump.format.record_types import Scope
from hive_replication.metastore import tables
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import ColumnStatisticsObj, FieldSchema, Partition, StorageDescriptor, Table

WIDE = [FieldSchema(f"c{number}", "int") for number in range(100)]
NAMES = [f"ds={number:04}" for number in range(600)]
BOUND = 2_000


@pytest.fixture(autouse=True)
def bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hundredth of the columns that are read at once: so many take long to make."""
    monkeypatch.setattr(tables, "_AT_ONCE", BOUND)


class Server(Metastore):
    """Answers with partitions of a table, and notes of how many each call was."""

    def __init__(self, columns: list[FieldSchema]) -> None:
        self.columns, self.asked, self._batch = columns, list[int](), 500

    def _named(self, db: str, table: str, names: list[str]) -> list[Partition]:
        self.asked.append(len(names))
        return [self.part(name) for name in names]

    def part(self, name: str) -> Partition:
        return Partition([name.partition("=")[2]], sd=StorageDescriptor(location=f"hdfs://s/t/{name}", cols=self.columns))

    def _partition_statistics(self, db: str, table: str, request: Any) -> dict[str, list[ColumnStatisticsObj]]:
        self.asked.append(len(request.partNames))
        return {}

    def _set(self, db: str, table: str, described: list[Any]) -> None:
        self.asked.append(len(described))


def test_a_dump_reads_fewer_partitions_of_a_wide_table_at_once() -> None:
    """Each of its threads held 500 partitions with 10,000 columns each, more than a gigabyte."""
    server = Server(WIDE)
    source = SimpleNamespace(metastore=server)
    lister = SimpleNamespace(many=lambda locations, **_: [() for _ in locations])
    nothing: Any = None
    reader = ObjectReader(cast("Any", source), Scope("db"), nothing, cast("Any", lister))
    keys = [FieldSchema("ds", "string")]
    table = Table("t", "db", sd=StorageDescriptor(cols=WIDE), partitionKeys=keys, tableType="MANAGED_TABLE", parameters={})
    read = [len(parts) for _, parts in reader._partitions(table, NAMES)]
    assert sum(read) == len(NAMES)
    assert max(*read, *server.asked) * len(WIDE) <= BOUND


def test_a_narrow_table_is_read_as_before() -> None:
    server = Server(WIDE[:2])
    assert len(list(server.partitions("db", "t", NAMES))) == len(NAMES)
    assert server.asked == [500, 100]


def test_what_is_read_without_its_table_is_read_in_small_parts_once_it_is_seen_to_be_wide() -> None:
    server = Server(WIDE)
    assert len(list(server.partitions("db", "t", NAMES))) == len(NAMES)
    assert server.asked == [500, *[20] * 5]


@pytest.mark.parametrize("width", [1, 100, 3_000])
def test_statistics_of_many_columns(width: int) -> None:
    server, columns = Server([]), ["c"] * width
    server.partition_statistics("db", "t", columns, NAMES)
    some = [cast("Any", None)] * width
    server.set_statistics("db", "t", dict.fromkeys(NAMES, some))
    assert sum(server.asked) == 2 * len(NAMES)
    assert max(server.asked) == max(1, min(100, BOUND // width))
