"""Replication as an ordinary account, with the rights that the manual names and no others."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property

import hdfs_native
import pytest

from hive_replication import verify
from hive_replication.connect import Connection, connect
from hive_replication.load.report import LoadReport
from hive_replication.operate import repair
from hive_replication.policy import Policy
from hive_replication.storage import paths
from tests.origin import Origin
from tests.warehouse import Warehouse

ACCOUNT = "repl"


@contextmanager
def acting() -> Generator[None]:
    """All that connects to HDFS or a metastore meanwhile does so as the account."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HADOOP_USER_NAME", ACCOUNT)
        yield


@dataclass
class Account:
    """A source database of the superuser's, and the account that replicates it with no right but those of the manual.

    Args:
        root: connected as the superuser.
        database: its name on both sides.
    """

    root: Connection
    database: str
    origin: Origin = field(init=False)

    def __post_init__(self) -> None:
        self.origin = Origin(self.root, self.database)
        self.origin.create_database()
        self.allow(self.source, self.source_cm_root, "r-x", below=True)
        for directory in (self.home, self.warehouse):
            self.target.mkdirs(directory, create_parent=True)
            self.allow(self.target, directory, "rwx")

    @cached_property
    def source(self) -> hdfs_native.Client:
        return self._client(self.root.source.policy.source.roots[0].uri)

    @cached_property
    def target(self) -> hdfs_native.Client:
        return self._client(self.root.target.policy.target.roots[0].uri)

    def _client(self, uri: str) -> hdfs_native.Client:
        client = hdfs_native.Client(uri.rstrip("/"))
        client.get_file_info("/")  # it connects as the superuser, now
        return client

    @property
    def home(self) -> str:
        """Below it are the dumps, external tables and jars."""
        return f"/accounts/{self.database}"

    @property
    def warehouse(self) -> str:
        return paths.split(self.root.target.metastore.config_value("hive.metastore.warehouse.dir", ""))[2]

    @property
    def source_cm_root(self) -> str:
        return paths.split(self.root.source.cm_root())[2]

    @property
    def policy(self) -> Policy:
        below = f"{self.root.target.policy.target.roots[0].uri.rstrip('/')}{self.home}"
        places = {"dump_root": f"{below}/dumps", "external_root": f"{below}/external", "functions_root": f"{below}/jars"}
        return self.root.source.policy.model_copy(update={"databases": {self.database: self.database}, **places})

    @cached_property
    def connection(self) -> Connection:
        return connect(self.policy)

    def replicate(self) -> LoadReport:
        with acting():
            return Warehouse(self.connection, None, self.database).replicate()  # type: ignore[arg-type]

    def repair(self, table: str) -> tuple[str, ...]:
        with acting():
            return tuple(repair(self.connection, f"{self.database}.{table}").left)

    def unequal(self) -> dict[str, tuple[str, ...]]:
        with acting():
            return {one.table: tuple(one.differences) for one in verify(self.connection, self.database) if one.differences}

    def allow(self, side: hdfs_native.Client, path: str, bits: str, *, below: bool = False) -> None:
        """Grants a right by an ACL; ``below`` also on what is made there later."""
        scopes = ("access", "default") if below else ("access",)
        side.modify_acl_entries(path, [hdfs_native.AclEntry("user", scope, bits, ACCOUNT) for scope in scopes])

    @contextmanager
    def without(self, side: hdfs_native.Client, path: str, mode: int, owner: str = "root") -> Generator[str]:
        """A file or directory with other permissions and no ACL for a while."""
        known = side.get_file_info(path)
        entries = side.get_acl_status(path)
        side.remove_acl(path)
        side.set_owner(path, owner, owner)
        side.set_permission(path, mode)
        try:
            yield path
        finally:
            side.set_owner(path, known.owner, known.group)
            side.set_permission(path, known.permission)
            for entry in entries.entries:
                if entry.name:
                    side.modify_acl_entries(path, [entry])

    def of_source(self, table: str, day: str = "") -> str:
        return paths.split(self.origin.location(table, day))[2]

    def of_target(self, table: str = "") -> str:
        metastore = self.root.target.metastore
        if not table:
            database = metastore.database(self.database)
            assert database is not None
            return paths.split(str(database.locationUri))[2]
        found = metastore.table(self.database, table)
        assert found is not None
        return paths.split(str(found.sd.location))[2]


def held(report: LoadReport) -> dict[str, str]:
    return {name: one.reason for one in report.held for name in one.tables}


def lacking(reason: str, path: str, bits: str) -> bool:
    """Whether a sentence names the account, the path and the right, and how to grant it."""
    return f"the account {ACCOUNT} lacks {bits} on {path} (" in reason and f" -m user:{ACCOUNT}:" in reason
