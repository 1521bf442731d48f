"""Retiring directories that no location points at any more; :mod:`hive_replication.load.layout.directories` names them.

Directories of dropped replicas stay where they are until :mod:`hive_replication.load.retention.sweep` moves them.
"""

from __future__ import annotations

import secrets

from hive_replication.load.layout.directories import Layout
from hive_replication.storage import Storage, paths


def retire(storage: Storage, location: str, directory: str | None, evid: int) -> None:
    """Retires the directory of a dropped or foreign object, for an event; nothing happens if it lies outside the database's."""
    directory = (directory or "").rstrip("/")
    if directory.startswith(location.rstrip("/") + "/") and storage.exists(directory):
        storage.rename(directory, f"{Layout(location).retired(str(evid), directory)}-{secrets.token_hex(4)}")


def retire_database(storage: Storage, location: str, evid: int) -> None:
    """Retires the directory of a dropped database, beside itself; one that is a storage root stays."""
    if storage.holds(paths.parent(location)) and storage.exists(location):
        storage.rename(location, Layout(location).dropped_database(evid))
