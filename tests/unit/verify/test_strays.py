"""Strays of a database of which tables are dropped while they are looked for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.errors import MetastoreError
from hive_replication.metastore.faults import NotFound
from hive_replication.metastore.types import Database, FieldSchema, Partition, StorageDescriptor, Table
from hive_replication.policy import Root
from hive_replication.storage import Storage
from hive_replication.verify import strays
from tests.lags import POLICY


class Metastore:
    """Partitioned tables a and b, of which a is dropped, or not shown, when its partitions are asked for."""

    error = MetastoreError()

    def __init__(self, location: str, days: Iterable[str], dropped: str = "") -> None:
        self._location, self._days, self._dropped = location, list(days), dropped

    def within(self, _: object) -> Metastore:
        return self

    def databases(self) -> list[str]:
        return ["default", "sales"]

    def database(self, name: str) -> Database:
        return Database(name=name, locationUri=self._location if name == "sales" else self._location.rpartition("/")[0])

    def table_names(self, _: str) -> list[str]:
        return ["a", "b"]

    def tables(self, _: str, names: Iterable[str]) -> list[Table]:
        keys = [FieldSchema("ds", "string", "")]
        return [Table(tableName=name, partitionKeys=keys, sd=StorageDescriptor(), parameters={}) for name in names]

    def partition_names(self, _: str, table: str) -> list[str]:
        if table == self._dropped:
            raise self.error
        return [f"ds={day}" for day in self._days]

    def partitions(self, _: str, table: str, names: Iterable[str] = ()) -> list[Partition]:
        return [Partition(values=[name.partition("=")[2]], sd=StorageDescriptor()) for name in names]


@pytest.mark.parametrize("error", [NotFound("table not found"), MetastoreError("Permission denied")])
@pytest.mark.parametrize("side", ["source", "target"])
def test_a_table_that_is_dropped_meanwhile_or_not_shown_stops_no_other(
    side: str, error: MetastoreError, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Metastore, "error", error)
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    dropped = {side: "a"}
    source: Any = SimpleNamespace(policy=POLICY, metastore=Metastore("", "1", dropped.get("source", "")))
    held = Metastore(f"{tmp_path.as_uri()}/sales.db", "12", dropped.get("target", ""))
    target: Any = SimpleNamespace(storage=storage, metastore=held)
    target.within_filters = lambda _: target
    assert [(one.kind, one.name) for one in strays(source, target, "sales")] == [("partition", "b/ds=2")]


def test_the_directory_of_another_database_is_no_stray(tmp_path: Path) -> None:
    """All of them were, in ``default``: whoever deletes strays by such a list deletes databases."""
    storage = Storage((Root(uri=tmp_path.as_uri()),))
    for file in ("sales.db/t/f", "left/f"):
        storage.write(f"{tmp_path.as_uri()}/{file}", b"1")
    policy = POLICY.model_copy(update={"databases": {"default": "default"}})
    source: Any = SimpleNamespace(policy=policy, metastore=Metastore("", "1"))
    target: Any = SimpleNamespace(storage=storage, metastore=Metastore(f"{tmp_path.as_uri()}/sales.db", "1"))
    target.within_filters = lambda _: target
    assert [(one.kind, one.name) for one in strays(source, target, "default")] == [("directory", f"{tmp_path.as_uri()}/left")]
