from __future__ import annotations

from collections.abc import Iterable

from hive_replication.load.apply.touched_tables import TouchedTables
from hive_replication.load.operations import kinds as op
from hive_replication.load.report import Touched
from hive_replication.metastore.types import Partition, Table

NO_FILES = op.Content((), "1-0")


def add(evid: int, table: str, *names: str) -> op.AddPartitions:
    return op.AddPartitions(evid, table, tuple(op.NewPartition(name, Partition(), NO_FILES) for name in names))


def create(evid: int, table: str) -> op.CreateTable:
    return op.CreateTable(evid, table, Table(tableName=table), NO_FILES, "")


def touched_tables(operations: Iterable[op.Operation], source_table: str | None, target_table: str | None) -> tuple[Touched, ...]:
    tables = TouchedTables()
    for operation in operations:
        tables.add([operation])
    return tables.sums(source_table, target_table)


def test_partitions_as_they_are_in_the_end() -> None:
    operations = [
        add(1, "t", "p=1", "p=2", "p=3"),
        op.DropPartitions(2, "t", ("p=1",)),
        op.RenamePartition(3, "t", "p=2", "p=4", Partition()),
        op.AlterPartitions(4, "t", (("p=5", Partition()),)),
        op.AppendData(5, "t", "p=6", Partition(), NO_FILES),
        op.ReplaceData(6, "t", "p=7", Partition(), NO_FILES),
    ]
    assert touched_tables(operations, None, None) == (
        Touched("t", "t", 6, ("p=3", "p=4", "p=5", "p=6", "p=7"), ("p=1", "p=2"), dropped=False),
    )


def test_the_table_itself_is_no_partition() -> None:
    operations = [op.AlterTable(1, "t", Table()), op.AppendData(2, "t", "", Table(), NO_FILES)]
    assert touched_tables(operations, None, None) == (Touched("t", "t", 2),)


def test_a_rename_takes_the_partitions_along() -> None:
    operations = [
        add(1, "t", "p=1"),
        op.RenameTable(2, "t", Table(tableName="t_old")),
        op.RenameTable(3, "t_new", Table(tableName="t")),
        add(4, "t", "p=2"),
    ]
    assert touched_tables(operations, None, None) == (
        Touched("t", "t", 4, ("p=2",)),
        Touched("t_new", "t_new", 3, dropped=True),
        Touched("t_old", "t_old", 2, ("p=1",)),
    )


def test_dropped_and_created_again() -> None:
    dropped = [add(1, "t", "p=1"), op.DropTable(2, "t")]
    assert touched_tables(dropped, None, None) == (Touched("t", "t", 2, dropped=True),)
    assert touched_tables([*dropped, create(3, "t"), add(4, "t", "q=1")], None, None) == (Touched("t", "t", 4, ("q=1",)),)


def test_a_table_loaded_under_another_name() -> None:
    assert touched_tables([create(1, "days")], "parts", "days") == (Touched("days", "parts", 1),)
    assert touched_tables([], None, None) == ()
