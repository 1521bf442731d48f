"""Directories of source databases of Hive 4."""

from __future__ import annotations

import pytest

from hive_replication.dump.database_homes import with_homes
from hive_replication.load.replica.own_location import own_location
from hive_replication.metastore.types import Database

APART = {"hive.metastore.warehouse.dir": "/wh/managed", "hive.metastore.warehouse.external.dir": "/wh/external/"}


def homes(location: str | None, managed: str | None = None, settings: dict[str, str] = APART) -> tuple[str | None, str | None]:
    database = Database(name="x", locationUri=location, managedLocationUri=managed)
    found = with_homes(database, lambda key, default: settings.get(key, default))
    assert (database.locationUri, database.managedLocationUri) == (location, managed)
    return found.locationUri, found.managedLocationUri


@pytest.mark.parametrize(
    ("location", "managed", "wanted"),
    [
        ("hdfs://s/wh/external/x.db", None, ("hdfs://s/wh/external/x.db", "hdfs://s/wh/managed/x.db")),
        ("hdfs://s/custom/x", None, ("hdfs://s/custom/x", "hdfs://s/wh/managed/x.db")),
        ("hdfs://s/custom/x", "hdfs://s/m/x", ("hdfs://s/custom/x", "hdfs://s/m/x")),
        ("hdfs://s/wh/managed/x.db", None, ("hdfs://s/wh/external/x.db", "hdfs://s/wh/managed/x.db")),
        ("hdfs://s/wh/managed/own/x", None, ("hdfs://s/wh/external/x.db", "hdfs://s/wh/managed/own/x")),
        (None, None, (None, None)),
    ],
)
def test_a_database_has_a_directory_for_each_kind_of_tables(
    location: str | None, managed: str | None, wanted: tuple[str | None, str | None]
) -> None:
    assert homes(location, managed) == wanted


@pytest.mark.parametrize("external", ["", "/wh/managed"])
def test_where_there_is_one_warehouse_external_tables_go_to_the_default_place(external: str) -> None:
    settings = APART | {"hive.metastore.warehouse.external.dir": external}
    default, own = "hdfs://s/wh/managed/x.db", "hdfs://s/wh/managed/own/x"
    assert homes(default, None, settings) == (default, None)
    assert homes(own, None, settings) == (default, own)


def test_a_chosen_directory_in_the_managed_warehouse_is_told() -> None:
    found = with_homes(Database(name="x", locationUri="hdfs://s/wh/managed/own/x"), lambda key, _: APART.get(key, ""))
    assert own_location(found, None) == "hdfs://s/wh/managed/own/x"
