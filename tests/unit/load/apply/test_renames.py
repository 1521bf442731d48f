"""A managed table is external for the time of a rename, and managed again afterwards, also after a crash in between."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import pytest

from hive_replication.errors import MetastoreError, ReplicationError
from hive_replication.load.apply.renames import clear_destination, rename_partitions, rename_table, restore_managed
from hive_replication.load.replica.target import Target
from hive_replication.metastore.client import Metastore as Client
from hive_replication.metastore.dialect import Features
from hive_replication.metastore.marked_external import MARK, TRANSLATION, restored
from hive_replication.metastore.types import Database, FieldSchema, Partition, StorageDescriptor, Table, copy_of
from hive_replication.policy import Root
from hive_replication.storage import Storage

TRANSLATED = {"EXTERNAL": "TRUE", "TRANSLATED_TO_EXTERNAL": "TRUE", "external.table.purge": "TRUE"}


class Metastore:
    """Records the tables as they are altered; ``dies`` after so many calls."""

    def __init__(self, dies: int = 99) -> None:
        self.calls: list[tuple[str, Table]] = []
        self.renamed: list[Sequence[str]] = []
        self.dies = dies

    def alter_table(self, _: str, name: str, image: Table) -> None:
        if len(self.calls) == self.dies:
            raise KeyboardInterrupt
        self.calls.append((name, copy_of(image)))

    @property
    def features(self) -> Features:
        return Features("4.2.0", "")

    def max_write_id(self, *_: str) -> int:
        return 0

    def rename_partitions(self, _: str, __: str, renames: Sequence[tuple[Sequence[str], Partition]]) -> None:
        assert self.calls[-1][1].tableType == "EXTERNAL_TABLE"
        self.renamed += [values for values, _ in renames]


def client(metastore: Metastore) -> Client:
    return metastore  # type: ignore[return-value]


def table(kind: str, **parameters: str) -> Table:
    return Table(dbName="db", tableName="t", tableType=kind, parameters={"owner": "x", **parameters})


MANAGED = table("MANAGED_TABLE")
BY_HIVE_4 = table("EXTERNAL_TABLE", **TRANSLATED)


@pytest.mark.parametrize("before", [MANAGED, BY_HIVE_4], ids=["managed", "translated by Hive 4"])
def test_the_data_of_a_managed_table_stays_in_place(before: Table) -> None:
    metastore, image = Metastore(), copy_of(before)
    image.tableName = "u"
    rename_table(client(metastore), before, image)
    (_, marked), (name, after) = metastore.calls
    assert (marked.tableName, marked.tableType, MARK in marked.parameters) == ("t", "EXTERNAL_TABLE", True)
    assert TRANSLATION & marked.parameters.keys() == {"EXTERNAL"}
    assert (name, after) == ("t", image)


@pytest.mark.parametrize("before", [MANAGED, BY_HIVE_4], ids=["managed", "translated by Hive 4"])
def test_a_table_that_a_killed_load_left_external_is_managed_again(before: Table) -> None:
    dying = Metastore(dies=1)
    with pytest.raises(KeyboardInterrupt):
        rename_table(client(dying), before, before)
    ((_, left),) = dying.calls
    metastore = Metastore()
    assert restore_managed(client(metastore), left) == before
    assert metastore.calls == [("t", before)]


@pytest.mark.parametrize(
    "before", [table("EXTERNAL_TABLE", EXTERNAL="TRUE"), table("MANAGED_TABLE", transactional="true")], ids=["external", "acid"]
)
def test_other_tables_are_renamed_as_they_are(before: Table) -> None:
    metastore = Metastore()
    rename_table(client(metastore), before, before)
    assert metastore.calls == [("t", before)]
    assert restored(before) is before


def test_partitions_are_renamed_one_by_one() -> None:
    metastore = Metastore()
    renames = [("ds=1", Partition()), ("ds=2", Partition())]
    rename_partitions(client(metastore), MANAGED, renames)
    assert metastore.renamed == [("1",), ("2",)]
    assert metastore.calls[-1] == ("t", MANAGED)


@pytest.mark.parametrize("dies", [99, 1], ids=["restored", "not even that"])
def test_a_table_whose_partition_cannot_be_renamed_is_managed_again(dies: int) -> None:
    """It stayed external, with the mark of a rename, until another load came upon it."""

    class Refusing(Metastore):
        def alter_table(self, _: str, name: str, image: Table) -> None:
            if len(self.calls) == self.dies:
                raise MetastoreError("no answer")
            super().alter_table(_, name, image)

        def rename_partitions(self, *_: object) -> None:
            raise MetastoreError("ds=2 exists")

    metastore = Refusing(dies)
    with pytest.raises(MetastoreError, match="ds=2 exists"):
        rename_partitions(client(metastore), MANAGED, [("ds=1", Partition())])
    assert (metastore.calls[-1] == ("t", MANAGED)) is (dies > 1)


def test_a_table_that_cannot_be_renamed_is_managed_again() -> None:
    class Refusing(Metastore):
        def alter_table(self, _: str, name: str, image: Table) -> None:
            if image.tableName != name:
                raise MetastoreError("u exists")
            super().alter_table(_, name, image)

    metastore, image = Refusing(), copy_of(MANAGED)
    image.tableName = "u"
    with pytest.raises(MetastoreError, match="u exists"):
        rename_table(client(metastore), MANAGED, image)
    assert [one.tableType for _, one in metastore.calls] == ["EXTERNAL_TABLE", "MANAGED_TABLE"]


@dataclass
class Places:
    """A database with a transactional table ``t`` and a partitioned one, ``other``, and the storage below it."""

    storage: Storage
    home: str
    used: str

    @property
    def metastore(self) -> Places:
        return self

    def database(self, _: str) -> Database:
        return Database(name="db", locationUri=self.home)

    def table_names(self, _: str) -> list[str]:
        return ["t", "other"]

    def tables(self, _: str, names: Sequence[str]) -> list[Table]:
        return [one for one in (self.of("t"), self.of("other", FieldSchema(name="ds", type="string"))) if one.tableName in names]

    def of(self, name: str, *keys: FieldSchema) -> Table:
        place = StorageDescriptor(location=f"{self.home}/{name}")
        transactional = {"transactional": "true"}
        return Table(dbName="db", tableName=name, sd=place, partitionKeys=[*keys], parameters={} if keys else transactional)

    def partitions(self, *_: str) -> list[Partition]:
        return [Partition(values=["1"], sd=StorageDescriptor(location=self.used))]


@pytest.mark.parametrize(
    ("used", "free"), [("other/ds=1", True), ("u", False), ("u/ds=1", False), ("u2", True), ("x/..//u/ds=1", False)]
)
@pytest.mark.parametrize("store", ["file://", "file:", "", "hdfs://NN1:8020"])
def test_a_transactional_table_goes_to_no_directory_that_a_partition_reads(
    tmp_path: Path, store: str, used: str, *, free: bool
) -> None:
    home, storage = f"{tmp_path.as_uri()}/db.db", Storage((Root(uri=tmp_path.as_uri()),))
    storage.write(f"{home}/u/ds=1/file", b"1")
    places = Places(storage, home, f"{store}{tmp_path}/db.db/{used}")
    with nullcontext() if free else pytest.raises(ReplicationError, match="is a directory of other: rebuild it"):
        clear_destination(cast("Target", places), places.of("t"), f"{home}/u", 7)
    assert storage.exists(f"{home}/u/ds=1/file") is not free
