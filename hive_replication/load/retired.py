"""Where data goes that nothing points at any more: ``.repl/retired`` in its database's directory."""

from __future__ import annotations

import secrets
from pathlib import PurePosixPath

from hive_replication.storage import Storage


def retired(location: str, token: str, directory: str) -> str:
    """The place of an old directory or file.

    Args:
        location: the database's directory.
        token: of the load that left it.
        directory: below the database's directory.
    """
    name = directory[len(location.rstrip("/")) + 1 :].removeprefix(".repl/")
    return f"{location.rstrip('/')}/.repl/retired/{token}/{name}"


def retire(storage: Storage, location: str, directory: str | None, evid: int) -> None:
    """Moves a stranger's directory aside, for an event; one that is absent, or not below the database's, is left as it is."""
    directory = (directory or "").rstrip("/")
    if directory.startswith(location.rstrip("/") + "/") and storage.exists(directory):
        storage.rename(directory, f"{retired(location, str(evid), directory)}-{secrets.token_hex(4)}")


def retire_database(storage: Storage, location: str, evid: int) -> None:
    """Moves a dropped database's directory aside, beside itself."""
    path = PurePosixPath(location.rstrip("/").split("://", 1)[-1])
    parent = location.rstrip("/")[: -len(path.name) - 1]
    if storage.exists(location):
        storage.rename(location.rstrip("/"), f"{parent}/.repl/retired/{path.name}-{evid}-{secrets.token_hex(4)}")
