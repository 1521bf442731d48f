"""Databases that were created at a location of their own, and not where their metastore puts one of their name."""

from __future__ import annotations

from collections.abc import Callable

from hive_replication.errors import ReplicationError
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Database
from hive_replication.storage import paths
from hive_replication.storage.boundary import qualified


def own_location(database: Database, metastore: Metastore | None) -> str:
    """The directory of a database of the source where somebody chose it, else "".

    Args:
        database: of the source.
        metastore: the source's, which knows its warehouse; where it cannot be asked, ``<name>.db`` counts as its choice.
    """
    name = database.name.lower()
    locations = [one.rstrip("/") for one in (database.locationUri, database.managedLocationUri) if one]
    if name == "default":
        return ""
    chosen = f"{name}.db"
    try:
        defaults = _defaults(metastore.config_value, chosen) if metastore else ()
    except ReplicationError:
        defaults = ()

    def is_own(location: str) -> bool:
        if not defaults:
            return paths.name(location) != chosen
        return location not in {qualified(one, location) for one in defaults}

    return next(filter(is_own, locations), "")


def _defaults(setting: Callable[[str, str], str], directory: str) -> tuple[str, ...]:
    keys = ("hive.metastore.warehouse.dir", "hive.metastore.warehouse.external.dir")
    return tuple(f"{one.rstrip('/')}/{directory}" for one in (setting(key, "") for key in keys) if one)
