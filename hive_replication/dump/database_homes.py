"""The two directories of a source database of Hive 4: one for external tables, and one for managed ones."""

from __future__ import annotations

from collections.abc import Callable

from hive_replication.metastore.types import Database, copy_of
from hive_replication.storage import paths
from hive_replication.storage.boundary import qualified

_MANAGED, _EXTERNAL = "hive.metastore.warehouse.dir", "hive.metastore.warehouse.external.dir"
#: A setting of a metastore by Hive's name, or the default.
Setting = Callable[[str, str], str]


def warehouses(setting: Setting, beside: str) -> tuple[str, str]:
    """Where a metastore puts managed and external tables, as full URIs; "" for one that is not set.

    Args:
        setting: of the metastore.
        beside: a directory on the store of those that name none.
    """
    managed, external = (qualified(setting(key, ""), beside).rstrip("/") for key in (_MANAGED, _EXTERNAL))
    return managed, external


def with_homes(database: Database, setting: Setting) -> Database:
    """A database with the directory of its external tables as its location, and with that of its managed ones beside it.

    Of one that lies in the warehouse of managed tables only these go to its directory; external ones go to the other warehouse,
    or to the default place in the same one where there is no other. Where all go to one directory, nothing is changed.

    Args:
        database: of a Hive 4 source, with the directories that it has in its metastore.
        setting: of that metastore.
    """
    location = (database.locationUri or "").rstrip("/")
    managed, external = warehouses(setting, location)
    if not location or not managed:
        return database
    name = database.name.lower()
    below = "" if name == "default" else f"/{name}.db"
    within, found = paths.is_under(location, managed), copy_of(database)
    found.locationUri = f"{external or managed}{below}" if within else location
    found.managedLocationUri = database.managedLocationUri or (location if within else f"{managed}{below}")
    return database if found.locationUri == found.managedLocationUri == location else found
