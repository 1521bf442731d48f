"""The directories of a source database whose metastore keeps managed and external tables apart, as that of Hive 4 may."""

from __future__ import annotations

from collections.abc import Callable

from hive_replication.metastore.types import Database, copy_of
from hive_replication.storage import paths
from hive_replication.storage.boundary import qualified

_MANAGED, _EXTERNAL = "hive.metastore.warehouse.dir", "hive.metastore.warehouse.external.dir"


def with_homes(database: Database, setting: Callable[[str, str], str]) -> Database:
    """A database with the directory of its external tables as its location, and with that of its managed ones beside it.

    A database of before the warehouses were apart lies in that of managed tables: new external ones go to the other one, under
    its name. Where there is one warehouse, and of a database that names no directory, nothing is changed.

    Args:
        database: of the source, with the directories that it has in its metastore.
        setting: a setting of that metastore, by Hive's name, or the default.
    """
    location = (database.locationUri or "").rstrip("/")
    managed, external = (qualified(setting(key, ""), location).rstrip("/") for key in (_MANAGED, _EXTERNAL))
    if not location or not managed or not external or managed == external:
        return database
    name = database.name.lower()
    below = "" if name == "default" else f"/{name}.db"
    within, found = paths.is_under(location, managed), copy_of(database)
    found.managedLocationUri = database.managedLocationUri or (location if within else f"{managed}{below}")
    found.locationUri = f"{external}{below}" if within else database.locationUri
    return found
