"""Retiring directories that no location points at any more; :mod:`hive_replication.load.layout.directories` names them.

Directories of dropped replicas stay where they are until :mod:`hive_replication.load.retention.sweep` moves them.
"""

from __future__ import annotations

import secrets

from hive_replication.load.layout.directories import HIDDEN, Layout
from hive_replication.load.layout.live_locations import Locations
from hive_replication.load.layout.protected_moves import ProtectedMoves
from hive_replication.storage import Storage, paths


def retire(storage: Storage, location: str, directory: str | None, evid: int) -> str:
    """Retires the directory of a dropped or foreign object, for an event; nothing happens if it lies outside the database's.

    Returns:
        Where it is now, "" where nothing was done.
    """
    directory = (directory or "").rstrip("/")
    if directory.startswith(location.rstrip("/") + "/") and storage.exists(directory):
        retired = f"{Layout(location).retired(str(evid), directory)}-{secrets.token_hex(4)}"
        ProtectedMoves(storage).move(directory, retired)
        return retired
    return ""


def retire_unused(storage: Storage, location: str, directory: str | None, evid: int, live: Locations) -> str:
    """Retires a directory as :func:`retire`, unless anything that is in use lies at, above or below it."""
    directory = paths.collapsed(directory or "")
    if directory.startswith(f"{location}/") and not live.touches(directory):
        return retire(storage, location, directory, evid)
    return ""


def retire_database(storage: Storage, location: str, evid: int) -> None:
    """Retires the directory of a dropped database, beside itself; one that is a storage root stays."""
    _retire_beside(storage, location, location, evid)


def retire_own(storage: Storage, location: str, evid: int) -> None:
    """Retires what replication itself keeps of a dropped database whose directory stays, since others lie in it."""
    _retire_beside(storage, location, f"{location}/{HIDDEN}", evid)


def _retire_beside(storage: Storage, location: str, directory: str, evid: int) -> None:
    if storage.holds(paths.parent(location)) and storage.exists(directory):
        storage.rename(directory, Layout(location).dropped_database(evid))
