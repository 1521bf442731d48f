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
    location, name = (database.locationUri or "").rstrip("/"), database.name.lower()
    if not location or name == "default":
        return ""
    chosen = f"{name}.db"
    try:
        defaults = _defaults(metastore.config_value, chosen) if metastore else ()
    except ReplicationError:
        defaults = ()
    if not defaults:
        return "" if paths.name(location) == chosen else location
    return "" if location in {qualified(one, location) for one in defaults} else location


def _defaults(setting: Callable[[str, str], str], directory: str) -> tuple[str, ...]:
    keys = ("hive.metastore.warehouse.dir", "hive.metastore.warehouse.external.dir")
    return tuple(f"{one.rstrip('/')}/{directory}" for one in (setting(key, "") for key in keys) if one)
