"""Calls about the server itself and its databases."""

from __future__ import annotations

from collections.abc import Set
from functools import cached_property

from hive_replication.metastore.connection import Connections
from hive_replication.metastore.dialect import Dialect, Features
from hive_replication.metastore.faults import MetastoreError, NotFound
from hive_replication.metastore.transport import Access
from hive_replication.metastore.types import Database

_TARGET_LAST_ID = "repl.target.last.id"  # Hive 4's metastore writes it itself whenever ``repl.last.id`` changes


class Calls(Connections):
    """The server and its databases; see :class:`hive_replication.metastore.client.Metastore` for the arguments."""

    def __init__(
        self,
        uri: str,
        access: Access = Access(),
        *,
        timeout: float = 600,
        retries: int = 8,
        batch: int = 500,
        connections: int = 64,
    ):
        super().__init__(uri, access, timeout=timeout, retries=retries, connections=connections)
        self._batch = batch
        self._dialect = Dialect()

    @cached_property
    def features(self) -> Features:
        """What the server is; asked once."""
        return self.call("get_version", self._dialect.features)

    def version(self) -> str:
        """The server's version: ``4.2.0``; Hive 2 and 3 do not tell theirs, so ``3`` or ``2``."""
        return self.features.version

    def uuid(self) -> str:
        """What tells this metastore's database from others, or "" where it has none (Hive 2)."""
        return self.features.uuid

    def config_value(self, name: str, default: str) -> str:
        """A setting of the server, by Hive's name (``hive...``, also ``metastore...``); the default where it is not set."""
        try:
            return self.call("get_config_value", lambda client: client.get_config_value(name, default)) or default
        except NotFound:  # Hive 2 has none of the second kind
            return default

    def databases(self, pattern: str = "*") -> list[str]:
        """Names of databases; ``*`` stands for any text and ``|`` joins patterns, as in Hive's SHOW DATABASES."""
        return self.call(f"get_databases {pattern}", lambda client: client.get_databases(pattern))

    def database(self, name: str) -> Database | None:
        """A database, or None if there is none of that name."""
        try:
            return self.call(f"get_database {name}", lambda client: self._dialect.database(client, name))
        except NotFound:
            return None

    def create_database(self, db: Database) -> None:
        """Creates a database; the metastore makes its directory. The caller looks where that is, and so whether it is made.

        Raises:
            AlreadyExists: there is a database of that name.
        """
        self.write(
            f"create_database {db.name}",
            lambda client: client.create_database(db),
            done=lambda: self._has(db.name, db),
            made=lambda: True,
        )

    def alter_database(self, name: str, db: Database, before: Database | None = None) -> None:
        """Replaces a database's description (owner, comment, parameters, and directories where they are given).

        Args:
            name: the database.
            db: its new description.
            before: the one that it replaces: parameters that only this one has have to be gone afterwards.
        """
        removed = ((before and before.parameters) or {}).keys() - (db.parameters or {}).keys() - {_TARGET_LAST_ID}
        self.write(
            f"alter_database {name}",
            lambda client: client.alter_database(name, db),
            done=lambda: self._has(name, db, removed),
        )

    def drop_database(self, name: str, *, delete_data: bool = False, cascade: bool = False) -> bool:
        """Drops a database; False if there was none.

        Args:
            name: the database.
            delete_data: also delete the directories, cmroot permitting.
            cascade: also drop what is in it; otherwise the metastore refuses unless it is empty.
        """
        try:
            self.write(
                f"drop_database {name}",
                lambda client: client.drop_database(name, delete_data, cascade),
                done=lambda: self.database(name) is None,
            )
        except MetastoreError:
            # Hive 3.1.3 answers with a null pointer where there is no such database.
            if self.database(name) is None:
                return False
            raise
        return True

    def _has(self, name: str, wanted: Database, removed: Set[str] = frozenset()) -> bool:
        """Whether there is a database of that name with what is wanted, but none of the parameters that are removed.

        The metastore may add others, and so may somebody else at the same moment, who pauses the database.
        """
        made = self.database(name)
        if made is None or (wanted.ownerName and wanted.ownerName != made.ownerName):
            return False
        if wanted.managedLocationUri and wanted.managedLocationUri != made.managedLocationUri:
            return False
        return (wanted.parameters or {}).items() <= made.parameters.items() and removed.isdisjoint(made.parameters)
