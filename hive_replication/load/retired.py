"""Where data goes that nothing points at any more: ``.repl/retired`` in its database's directory."""

from __future__ import annotations

import secrets

from hive_replication.storage import Storage, paths


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
    if storage.exists(location):
        storage.rename(location, f"{former_lives(location)}/{paths.name(location)}-{evid}-{secrets.token_hex(4)}")


def former_lives(location: str) -> str:
    """Where dropped databases' directories go: beside the database's own directory."""
    return f"{paths.parent(location).rstrip('/')}/.repl/retired"
