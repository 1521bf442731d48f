"""Partitions that lie in one directory: an event names one of them, and all of them read its files."""

from __future__ import annotations

import pytest

from hive_replication.dump.incremental.shared_directories import SharedDirectories
from hive_replication.dump.incremental.table_redumps import TableRedumps
from hive_replication.verify.witness import witness
from repl_assets.checks.row_diff import diff_rows
from repl_assets.checks.spark_rows import count_rows
from resources.spark_copier import SparkCopier
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@pytest.fixture
def renamed(warehouse: Warehouse) -> Warehouse:
    """Hive leaves the directory of an external partition where it is when the partition is renamed."""
    warehouse.sql("CREATE EXTERNAL TABLE outside (a INT) PARTITIONED BY (ds STRING)", "CREATE TABLE plain (a INT)")
    warehouse.load_data("outside PARTITION (ds='1')", "1\n")
    warehouse.load_data("outside PARTITION (ds='5')", "5\n")
    warehouse.replicate()
    warehouse.sql(
        "ALTER TABLE outside PARTITION (ds='1') RENAME TO PARTITION (ds='2')",
        "ALTER TABLE outside PARTITION (ds='2') RENAME TO PARTITION (ds='3')",
    )
    return warehouse


def differences(warehouse: Warehouse) -> list[str]:
    connection = warehouse.connection
    return [f"{one.table}/{one.partition}" for one in witness(connection.source, connection.target, warehouse.database).wrong]


def nothing(*_: object) -> str:
    return ""


@pytest.mark.parametrize("windows", [1, 2])
def test_both_partitions_get_the_new_files(renamed: Warehouse, windows: int) -> None:
    if windows == 2:
        renamed.replicate()
    renamed.load_data("outside PARTITION (ds='1')", "10\n")
    renamed.load_data("plain", "1\n")
    assert renamed.replicate().held == ()
    renamed.assert_equal()
    renamed.load_data("outside PARTITION (ds='3')", "30\n")
    renamed.load_data("outside PARTITION (ds='5')", "50\n")
    assert renamed.replicate().held == ()
    renamed.assert_equal()
    assert differences(renamed) == []


def test_rows_are_those_of_each_partition(renamed: Warehouse) -> None:
    """The last partition of a directory had all of them, and the check failed."""
    renamed.load_data("outside PARTITION (ds='1')", "10\n")
    assert renamed.replicate().held == ()
    connection, name = renamed.connection, renamed.database
    source, target = connection.source, connection.target
    spark = SparkCopier.from_settings({"spark.app.name": "rows"})
    spark.spark_context()
    session = spark.pyspark.spark_session
    counts = {"ds=1": 2, "ds=3": 2, "ds=5": 1}
    assert count_rows(session, source, name, "outside") == count_rows(session, target, name, "outside") == counts
    assert diff_rows(session, source, target, name, "outside").partitions == ()
    (other,) = target.metastore.partitions(name, "outside", ["ds=3"])
    file = max(target.storage.files(str(other.sd.location)), key=lambda one: one.size)
    target.storage.write(file.uri, b"11\n")
    found = diff_rows(session, source, target, name, "outside")
    assert (found.partitions, found.source, found.target) == (("ds=3",), 5, 5)
    assert [(row.partition, row.source, row.target) for row in found.rows] == [("ds=3", 1, 0), ("ds=3", 0, 1)]


def test_without_a_dump_of_the_table_it_is_held_alone(renamed: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    renamed.replicate()
    renamed.load_data("outside PARTITION (ds='1')", "10\n")
    renamed.load_data("plain", "1\n")
    with monkeypatch.context() as patch:  # as if the table had got another name before it was dumped
        patch.setattr(TableRedumps, "redump", nothing)
        (held,) = renamed.replicate().held
    assert held.tables == ("outside",)
    assert "ds=3 shares the directory of a partition of event" in held.reason
    assert "repair it, or give each partition a directory of its own" in held.reason
    assert renamed.load(renamed.dump(renamed.status()).directory).held == ()  # tried again, now with a dump
    renamed.assert_equal()


def test_the_witness_sees_what_one_partition_lacks(renamed: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: nothing was held, and the other partition lacked the file."""
    renamed.load_data("outside PARTITION (ds='1')", "10\n")
    with monkeypatch.context() as patch:
        patch.setattr(SharedDirectories, "beside", nothing)
        assert renamed.replicate().held == ()
    assert set(differences(renamed)) == {"outside/ds=3"}


def test_a_new_partition_stays_out_of_the_directory_of_a_renamed_one(warehouse: Warehouse) -> None:
    """A replica's partition keeps its directory when it is renamed, empty or not."""
    warehouse.sql("CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)", "ALTER TABLE parts ADD PARTITION (ds='1')")
    warehouse.replicate()
    warehouse.sql("ALTER TABLE parts PARTITION (ds='1') RENAME TO PARTITION (ds='2')")
    warehouse.replicate()
    warehouse.load_data("parts PARTITION (ds='1')", "1\n")
    assert warehouse.replicate().held == ()
    warehouse.assert_equal()
    assert differences(warehouse) == []
