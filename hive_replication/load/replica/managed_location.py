"""Where the target's metastore takes the transactional tables of a database.

All that a load keeps of a database lies in one directory, the database's: tables, staged and old data, the journal. A Hive 4
metastore takes a transactional table there only if that is in its warehouse, or in the database's ``managedLocationUri``. It is
not where external tables have a warehouse of their own, nor where somebody chose a directory outside of both.
"""

from __future__ import annotations

import logging

from hive_replication.dump.database_homes import Setting, warehouses
from hive_replication.errors import Refused
from hive_replication.load.replica.parameter_lock import parameter_lock
from hive_replication.logs import about
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import Database, Table, copy_of
from hive_replication.storage import paths

_LOG = logging.getLogger(__name__)


def open_location(metastore: Metastore, database: str) -> Database | None:
    """Makes a metastore take transactional tables in a database's directory, unless the database keeps them elsewhere.

    Args:
        metastore: the target's.
        database: target database.

    Returns:
        The database as it is then; None if there is none.
    """
    found = metastore.database(database)
    if found is None or metastore.features.major < 4 or _is_open(found, metastore.config_value):
        return found
    with parameter_lock(metastore, database):
        found = metastore.database(database)
        if found is None or _is_open(found, metastore.config_value):
            return found
        opened = copy_of(found)
        opened.managedLocationUri = (found.locationUri or "").rstrip("/")
        metastore.alter_database(database, opened, found)
    _LOG.info("managed tables of %s lie in %s from now on", database, opened.managedLocationUri, extra=about(database))
    return opened


def require_open(metastore: Metastore, image: Table) -> None:
    """Makes sure that the metastore takes a table in its database's directory, where it is transactional.

    Args:
        metastore: the target's.
        image: of a table that is about to be created.

    Raises:
        Refused: the database keeps such tables elsewhere.
    """
    if is_transactional(image) and (found := open_location(metastore, image.dbName)) and (reason := elsewhere(found)):
        raise Refused(reason)


def elsewhere(database: Database) -> str:
    """Why transactional tables of a target database cannot be replicated, "" where they can."""
    location, managed = ((one or "").rstrip("/") for one in (database.locationUri, database.managedLocationUri))
    if not managed or paths.is_under(location, managed):
        return ""
    return (
        f"the metastore takes transactional tables of {database.name} in {managed} alone, its managed location, and replicas lie "
        f"in its directory {location}: create the database without a managed location, or let the load create it"
    )


def without_external(database: Database, setting: Setting) -> str:
    """Why a metastore refuses external tables in a database's directory, "" where it takes them."""
    location = (database.locationUri or "").rstrip("/")
    managed, external = warehouses(setting, location)
    if not external or managed == external or not location or not paths.is_under(location, managed):
        return ""
    return f"{location} is in the warehouse of managed tables, {managed}, in which the metastore takes no external ones"


def _is_open(database: Database, setting: Setting) -> bool:
    """Whether nothing is to be done: it is open, or was closed on purpose, or is ``default``, which is everybody's."""
    location = (database.locationUri or "").rstrip("/")
    warehouse, _ = warehouses(setting, location)
    others = not location or not warehouse or database.name.lower() == "default"
    return others or bool(database.managedLocationUri) or paths.is_under(location, warehouse)
