"""Partitions at one directory, as the source's metastore has them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from types import SimpleNamespace

import pytest

from hive_replication.dump.incremental import shared_directories
from hive_replication.dump.incremental.present_location import Location, Lookup
from hive_replication.dump.incremental.shared_directories import SharedDirectories
from hive_replication.errors import MetastoreError
from hive_replication.events import event_records as r
from hive_replication.metastore.types import FieldSchema, Partition, StorageDescriptor, Table, copy_of

TABLE = Table(
    tableName="t",
    dbName="db",
    tableType="EXTERNAL_TABLE",
    sd=StorageDescriptor(location="hdfs://nn/d"),
    partitionKeys=[FieldSchema(name="p", type="string")],
    parameters={"EXTERNAL": "TRUE"},
)


def partition(value: str, location: str) -> Partition:
    return Partition(values=[value], dbName="db", tableName="t", sd=StorageDescriptor(location=location), parameters={})


MANAGED, ACID, OTHER = copy_of(TABLE), copy_of(TABLE), copy_of(TABLE)
MANAGED.tableType, MANAGED.parameters = "MANAGED_TABLE", {}
ACID.tableType, ACID.parameters = "MANAGED_TABLE", {"transactional": "true"}
OTHER.tableName = "u"


class Log:
    """Events of a window, and the partitions that the tables have now; counts how often they are read.

    Args:
        there: partitions by the present names of tables.
        now: the present name of a table that had a name after an event; "" where it is gone.
    """

    def __init__(self, there: dict[str, list[Partition]], now: dict[tuple[str, int], str] | None = None) -> None:
        self.read, self.there, self.now = Counter[str](), there, now or {}
        self.renamed: dict[str, str] = {}
        metastore = SimpleNamespace(partition_count=self._count, partitions=self._partitions)
        source = SimpleNamespace(policy=SimpleNamespace(metadata_only=False), metastore=metastore)
        locations = SimpleNamespace(database="db", find_table=self._find, find=self._followed)
        self._shared = SharedDirectories(source, locations)  # type: ignore[arg-type]

    def _count(self, _: str, table: str) -> int:
        return len(self.there[table])

    def _partitions(self, _: str, table: str) -> list[Partition]:
        self.read[table] += 1
        return self.there[table]

    def _find(self, table: str, evid: int, _: Table) -> SimpleNamespace:
        return SimpleNamespace(table=self.now.get((table, evid), table if not self.now else ""))

    def _followed(self, lookups: list[Lookup]) -> dict[Lookup, Location]:
        return {one: Location(one.location, 0, one.table, self.renamed.get(one.partition, one.partition)) for one in lookups}

    def beside(self, *events: r.Event) -> list[str]:
        return [
            self._shared.beside(SimpleNamespace(decoded=one, row=SimpleNamespace(table=one.table), evid=one.evid))  # type: ignore[arg-type]
            for one in events
        ]


def added(evid: int, partitions: Iterable[Partition], table: Table = TABLE) -> r.AddPartition:
    new = tuple(r.AddedPartition(f"p={one.values[0]}", one, None) for one in partitions)
    return r.AddPartition(evid, 0, "ADD_PARTITION", "db", table.tableName, table, new)


def insert(evid: int, into: Partition, table: Table = TABLE, *, replace: bool = False) -> r.Insert:
    return r.Insert(evid, 0, "INSERT", "db", table.tableName, table, into, f"p={into.values[0]}", replace, ())


def truncation(evid: int, of: Partition, table: Table = TABLE) -> r.AlterPartition:
    name = f"p={of.values[0]}"
    change = r.ChangedPartition(name, name, of, of)
    return r.AlterPartition(evid, 0, "ALTER_PARTITION", "db", "t", table, (change,), truncate=True)


def beside(there: str, here: str) -> str:
    """What is at the directory of a new partition 1, where the table has a partition 0."""
    new = partition("1", here)
    return Log({"t": [partition("0", there), new]}).beside(added(5, [new]))[0]


@pytest.mark.parametrize("odd", ["/d/x", "hdfs://nn/d//p=0", "hdfs://nn/d/../p=0", "", "d/x"])
def test_an_odd_location_of_one_partition_does_not_end_the_dump(odd: str) -> None:
    assert beside(odd, "hdfs://nn/d/p=1") == ""
    assert beside("hdfs://nn/d/p=0", odd) == ""


def test_partitions_that_the_metastore_does_not_show_hold_their_table_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """One such table ended the dump of each window."""

    def refused(_: Log, __: str, ___: str) -> list[Partition]:
        raise MetastoreError("get_partitions_by_names db.t: Permission denied")

    monkeypatch.setattr(Log, "_partitions", refused)
    external, managed = partition("1", "hdfs://nn/d/p=1"), partition("1", "hdfs://nn/d/p=1")
    found = Log({"t": [external]}).beside(added(5, [external]), added(6, [managed], MANAGED))
    assert found == ["perhaps another one (the metastore does not show them)", ""]


def test_a_table_with_too_many_partitions_to_look_at_is_told_once(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Nothing said that its replica may lack files."""
    monkeypatch.setattr(shared_directories, "MOST_PARTITIONS", 1_000)
    one = partition("1", "hdfs://nn/x")
    log = Log({"t": [one] * 1_000, "u": [one] * 1_001}, {("t", 5): "t", ("u", 6): "u", ("u", 8): "u"})
    drop = r.DropTable(7, 0, "DROP_TABLE", "db", "u", OTHER)
    assert log.beside(insert(6, one, OTHER), drop, insert(8, one, OTHER)) == ["", "", ""]
    log.beside(insert(5, one))
    (warning,) = [record for record in caplog.records if record.name == shared_directories.__name__]
    assert (warning.levelname, warning.__dict__["database"], warning.__dict__["table"]) == ("WARNING", "db", "u")
    assert warning.getMessage().startswith("it has 1,001 partitions: beyond 1,000 nobody looks whether some share a directory.")


@pytest.mark.parametrize("same", ["hdfs://nn/d/x", "hdfs://nn/d/x/", "/d/x", "HDFS://nn/d/x"])
def test_spellings_of_one_directory(same: str) -> None:
    assert beside(same, "hdfs://nn/d/x") == "p=0"
    assert beside("hdfs://nn/d/x", same) == "p=0"


def test_a_name_that_was_dropped_and_made_anew_is_another_tables() -> None:
    """What was read of the one was kept for the other: the second partition at a directory lacked what came for the first."""
    one, two = partition("1", "hdfs://nn/x"), partition("2", "hdfs://nn/x")
    log = Log({"t": [one, two]}, {("t", 5): "", ("t", 8): "t", ("t", 9): "t"})
    drop = r.DropTable(6, 0, "DROP_TABLE", "db", "t", TABLE)
    new = r.CreateTable(7, 0, "CREATE_TABLE", "db", "t", TABLE, ())
    found = log.beside(added(5, [partition("0", "hdfs://nn/d/p=0")]), drop, new, added(8, [one, two]), insert(9, one))
    assert found == ["", "", "", "p=1, p=2", "p=2"]
    assert log.read == {"t": 1}


def test_a_name_that_a_table_gave_up_is_another_tables() -> None:
    one, two = partition("1", "hdfs://nn/x"), partition("2", "hdfs://nn/x")
    log = Log({"u": [partition("1", "hdfs://nn/u/p=1")], "t": [one, two]}, {("t", 5): "u", ("t", 8): "t"})
    away = r.AlterTable(6, 0, "ALTER_TABLE", "db", "t", TABLE, OTHER, truncate=False)
    new = r.CreateTable(7, 0, "CREATE_TABLE", "db", "t", TABLE, ())
    assert log.beside(insert(5, partition("1", "hdfs://nn/u/p=1")), away, new, insert(8, one)) == ["", "", "", "p=2"]


def test_managed_partitions_at_one_location_are_found() -> None:
    one, two = partition("1", "hdfs://nn/d/x"), partition("2", "hdfs://nn/d/x")
    log = Log({"t": [one, two]})
    assert log.beside(insert(5, one, MANAGED), added(6, [two], MANAGED)) == ["p=2", "p=1"]
    assert log.read == {"t": 1}


def test_nothing_is_read_for_ordinary_managed_partitions_and_transactional_tables() -> None:
    plain = partition("1", "hdfs://nn/d/p=1")
    log = Log({"t": [plain]})
    assert log.beside(insert(5, plain, MANAGED), added(6, [plain], MANAGED), truncation(7, plain, MANAGED)) == ["", "", ""]
    assert log.beside(added(8, [partition("2", "hdfs://nn/x")], ACID)) == [""]
    assert not log.read


def test_a_partition_in_another_ones_directory_brings_files_to_both() -> None:
    outer, inner, beside = partition("1", "hdfs://nn/x"), partition("2", "hdfs://nn/x/sub"), partition("3", "hdfs://nn/x-y")
    log = Log({"t": [outer, inner, beside]})
    assert log.beside(insert(5, inner), insert(6, outer), insert(7, beside)) == ["p=1", "", ""]
    assert log.beside(insert(8, outer, replace=True), truncation(9, outer), truncation(9, inner)) == ["p=2", "p=2", "p=1"]


def test_a_truncation_empties_all_partitions_of_a_directory() -> None:
    one, two = partition("1", "hdfs://nn/x"), partition("2", "hdfs://nn/x")
    assert Log({"t": [one, two]}).beside(truncation(5, one)) == ["p=2"]


def test_a_partition_that_was_renamed_later_is_itself() -> None:
    log = Log({"t": [partition("2", "hdfs://nn/x")]})
    log.renamed = {"p=1": "p=2"}
    assert log.beside(insert(5, partition("1", "hdfs://nn/x"))) == [""]
