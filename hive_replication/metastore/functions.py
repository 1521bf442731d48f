"""Calls about permanent functions, and the names of stored procedures and packages, which are not replicated."""

from __future__ import annotations

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import ListPackageRequest, ListStoredProcedureRequest

from hive_replication.metastore.faults import NotFound
from hive_replication.metastore.server import Calls
from hive_replication.metastore.types import Function


class Functions(Calls):
    """Permanent functions of databases (CREATE FUNCTION); their names are lower case."""

    def functions(self, db: str) -> list[Function]:
        """All functions of a database."""
        answer = self.call("get_all_functions", lambda client: client.get_all_functions())
        found = answer.functions or []  # of all catalogs
        return [one for one in found if one.dbName.lower() == db and (one.catName or "hive").lower() == "hive"]

    def function(self, db: str, name: str) -> Function | None:
        """A function, or None if there is none of that name."""
        try:
            return self.call(f"get_function {db}.{name}", lambda client: client.get_function(db, name))
        except NotFound:
            return None

    def procedures(self, db: str) -> list[str]:
        """Names of a database's stored procedures and packages (HPL/SQL, from Hive 4)."""

        def asked(client: Client) -> list[str]:
            procedures = ListStoredProcedureRequest(catName="hive", dbName=db)
            packages = ListPackageRequest(catName="hive", dbName=db)
            known, none = self._dialect.known, list[str]()
            return [
                *known("get_all_stored_procedures", lambda: client.get_all_stored_procedures(procedures), none),
                *known("get_all_packages", lambda: client.get_all_packages(packages), none),
            ]

        return self.call(f"get_all_stored_procedures {db}", asked)

    def create_function(self, function: Function) -> None:
        """Creates a function; the metastore does not look at its jars.

        Raises:
            AlreadyExists: there is a function of that name.
        """

        def done() -> bool:
            made = self.function(function.dbName, function.functionName)
            return made is not None and (made.className, made.resourceUris) == (function.className, function.resourceUris)

        self.write(
            f"create_function {function.dbName}.{function.functionName}",
            lambda client: client.create_function(function),
            done=done,
            made=lambda: self.function(function.dbName, function.functionName) is not None,
        )

    def drop_function(self, db: str, name: str) -> bool:
        """Drops a function; False if there was none."""
        try:
            self.write(
                f"drop_function {db}.{name}",
                lambda client: client.drop_function(db, name),
                done=lambda: self.function(db, name) is None,
            )
        except NotFound:
            return False
        return True
