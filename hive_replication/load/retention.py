"""Directories that are no longer pointed at: moved aside under the database's directory, never deleted here."""

from __future__ import annotations

import secrets
from pathlib import PurePosixPath

from hive_replication.storage import Storage


class Retention:
    """Keeps old directories of one target database in ``.repl/retired/<evid>/``.

    Args:
        storage: the target's.
        location: the database's directory.
    """

    def __init__(self, storage: Storage, location: str) -> None:
        self._storage, self._location = storage, location.rstrip("/")

    def retire(self, directory: str | None, evid: int) -> None:
        """Moves a directory aside. One that is absent, or outside the database's directory, is left as it is.

        Args:
            directory: that nothing in the metastore points at any more.
            evid: event that made it old.
        """
        directory = (directory or "").rstrip("/")
        if not directory.startswith(self._location + "/") or not self._storage.exists(directory):
            return
        name = directory[len(self._location) + 1 :].removeprefix(".repl/")
        kept = f"{self._location}/.repl/retired/{evid}/{name}"
        if self._storage.exists(kept):
            kept = f"{kept}-{secrets.token_hex(4)}"
        self._storage.rename(directory, kept)

    def retire_database(self, evid: int) -> None:
        """Moves the whole database's directory aside, beside itself."""
        path = PurePosixPath(self._location.split("://", 1)[-1])
        parent = self._location[: -len(path.name) - 1]
        if self._storage.exists(self._location):
            self._storage.rename(self._location, f"{parent}/.repl/retired/{path.name}-{evid}-{secrets.token_hex(4)}")
