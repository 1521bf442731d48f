"""Columns of partitions that follow their table's."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

from hive_replication.events import event_records as r
from hive_replication.load.operations.columns import SetColumns
from hive_replication.load.replica.fingerprint import FINGERPRINT, altered_aspects, with_fingerprint
from hive_replication.load.replica.target import Target
from hive_replication.metastore.types import FieldSchema, Partition, StorageDescriptor, Table


def column(comment: str | None, kind: str = "int") -> FieldSchema:
    return FieldSchema(name="a", type=kind, comment=comment)


def test_a_change_of_comments_alone_may_be_one_with_cascade() -> None:
    def may_cascade(*columns: FieldSchema) -> bool:
        keys = [FieldSchema(name="p", type="string")]
        tables = (Table(tableName="t", dbName="db", sd=StorageDescriptor(cols=[one]), partitionKeys=keys) for one in columns)
        return r.AlterTable(1, 1, "ALTER_TABLE", "db", "t", *tables, truncate=False).may_cascade

    assert may_cascade(column("old"), column("new"))
    assert may_cascade(column("old"), column("old", "bigint"))
    assert not may_cascade(column(None), column(""))


def test_partitions_get_comments_that_they_do_not_have() -> None:
    found = {name: Partition(values=[name], sd=StorageDescriptor(cols=[column(name)]), parameters={}) for name in ("new", "old")}
    altered: list[Partition] = []
    metastore = SimpleNamespace(
        partitions=lambda _, __, names: [found[name] for name in names],
        alter_partitions=lambda _, __, images: altered.extend(images),
    )
    SetColumns(7, "t", ("new", "old"), (column("new"),)).carry_out(cast("Target", SimpleNamespace(metastore=metastore)), "db")
    assert [(part.values, part.sd.cols) for part in altered] == [(["old"], [column("new")])]


def test_partitions_that_got_columns_were_not_altered_by_somebody_else() -> None:
    """Each window that touched them said so, until the source altered them."""
    found = with_fingerprint(Partition(values=["1"], sd=StorageDescriptor(cols=[column("")]), parameters={}))
    foreign = Partition(values=["2"], sd=StorageDescriptor(cols=[column("")]), parameters={})
    altered: list[Partition] = []
    metastore = SimpleNamespace(
        partitions=lambda *_: [found, foreign], alter_partitions=lambda _, __, images: altered.extend(images)
    )
    target = cast("Target", SimpleNamespace(metastore=metastore))
    SetColumns(7, "t", ("p=1", "p=2"), (column("", "bigint"),)).carry_out(target, "db")
    assert [(altered_aspects(one), FINGERPRINT in one.parameters) for one in altered] == [((), True), ((), False)]
