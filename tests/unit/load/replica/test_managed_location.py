"""Transactional tables on a Hive 4 metastore whose warehouse is not where the database lies."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import cast

import pytest

from hive_replication.errors import Refused
from hive_replication.load.replica import managed_location
from hive_replication.load.replica.drops import vacate
from hive_replication.load.replica.managed_location import require_open, without_external
from hive_replication.metastore.client import Metastore as Client
from hive_replication.metastore.types import Database, StorageDescriptor, Table, copy_of, directory_of

APART = {"hive.metastore.warehouse.dir": "/wh/managed", "hive.metastore.warehouse.external.dir": "/wh/external"}


class Metastore:
    """Takes managed tables as ``MetastoreDefaultTransformer.validateTablePaths`` does."""

    def __init__(self, location: str, managed: str | None = None, *, major: int = 4, name: str = "x") -> None:
        self.there = Database(name=name, locationUri=location, managedLocationUri=managed, parameters={"a": "b"})
        self.features, self.write_ids, self.calls = SimpleNamespace(major=major), 0, list[str]()

    def config_value(self, key: str, default: str) -> str:
        return APART.get(key, default)

    def database(self, _: str) -> Database:
        return copy_of(self.there)

    def alter_database(self, _: str, database: Database, before: Database) -> None:
        assert before == self.there
        self.calls.append("alter")
        self.there = copy_of(database)

    def max_write_id(self, *_: str) -> int:
        return self.write_ids

    def table(self, *_: str) -> None:
        return None

    def create_table(self, table: Table) -> None:
        root = self.there.managedLocationUri or "hdfs://t/wh/managed"
        assert directory_of(table).startswith(f"{root}/")
        self.calls.append("create")

    def drop_table(self, *_: str, delete_data: bool) -> None:
        assert delete_data
        self.calls.append("drop")


@pytest.fixture(autouse=True)
def _without_lock(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(managed_location, "parameter_lock", lambda *_: nullcontext())


def client(metastore: Metastore) -> Client:
    return cast("Client", metastore)


def image(location: str, *, transactional: bool = True) -> Table:
    parameters = {"transactional": "true"} if transactional else {}
    sd = StorageDescriptor(location=location)
    return Table("t", "x", tableType="MANAGED_TABLE", parameters=parameters, sd=sd, partitionKeys=[])


@pytest.mark.parametrize("location", ["hdfs://t/wh/external/x.db", "hdfs://t/chosen/x"])
def test_the_first_transactional_table_opens_the_databases_directory_for_such(location: str) -> None:
    """All of them were held for ever: the metastore took none there."""
    metastore = Metastore(location)
    require_open(client(metastore), image(f"{location}/t", transactional=False))
    assert metastore.calls == []
    for _ in range(2):
        require_open(client(metastore), image(f"{location}/t"))
        metastore.create_table(image(f"{location}/t"))
    assert metastore.calls == ["alter", "create", "create"]
    assert metastore.there == Database(name="x", locationUri=location, managedLocationUri=location, parameters={"a": "b"})


@pytest.mark.parametrize(
    "metastore",
    [
        Metastore("hdfs://t/wh/managed/x.db"),
        Metastore("hdfs://t/chosen/x", "hdfs://t/chosen"),
        Metastore("hdfs://t/wh/external", name="default"),
        Metastore("hdfs://t/chosen/x", major=3),
    ],
    ids=["in the warehouse", "in its managed location", "default", "Hive 3"],
)
def test_a_database_is_left_as_it_is_where_nothing_is_to_be_done(metastore: Metastore) -> None:
    require_open(client(metastore), image(f"{metastore.there.locationUri}/t"))
    assert metastore.calls == []


def test_a_managed_location_that_somebody_chose_stays() -> None:
    metastore = Metastore("hdfs://t/wh/external/x.db", "hdfs://t/secret/x")
    with pytest.raises(Refused, match="in hdfs://t/secret/x alone"):
        require_open(client(metastore), image("hdfs://t/wh/external/x.db/t"))
    assert metastore.calls == []


@pytest.mark.parametrize("managed", [None, "hdfs://t/secret/x"])
def test_write_ids_of_a_name_are_forgotten_wherever_managed_tables_lie(managed: str | None) -> None:
    metastore = Metastore("hdfs://t/wh/external/x.db", managed)
    metastore.write_ids = 7
    vacate(client(metastore), image("hdfs://t/wh/external/x.db/t"))
    assert metastore.calls[-2:] == ["create", "drop"]


def test_external_tables_are_not_taken_in_the_warehouse_of_managed_ones() -> None:
    def reason(location: str, external: str = "/wh/external") -> str:
        settings = APART | {"hive.metastore.warehouse.external.dir": external}
        return without_external(Database(name="x", locationUri=location), lambda key, _: settings[key])

    assert "takes no external ones" in reason("hdfs://t/wh/managed/x.db")
    assert [reason("hdfs://t/wh/external/x.db"), reason("hdfs://t/chosen/x"), reason("hdfs://t/wh/managed/x.db", "")] == [""] * 3
