"""The differences between Hive 2.3, 3.1 and 4.x metastores; nothing else in this package knows of versions.

Which calls a server has is found by asking: the newest form first, and the older one once the server does not know that.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from hive_metastore.ThriftHiveMetastore import Client
from hive_metastore.ttypes import (
    AlterTableRequest,
    ClientCapabilities,
    ClientCapability,
    CreateTableRequest,
    EnvironmentContext,
    GetDatabaseRequest,
    GetPartitionsByNamesRequest,
    GetTableRequest,
    GetTablesRequest,
    NoSuchObjectException,
)
from thrift.Thrift import TApplicationException

from hive_replication.metastore.types import Database, Partition, Table

T = TypeVar("T")

# What Hive 4's MetastoreDefaultTransformer asks of a caller before it shows, or creates, a table as it really is.
PROCESSOR = "hive-replication"
CAPABILITIES = [
    "HIVEFULLACIDREAD",
    "HIVEFULLACIDWRITE",
    "HIVEMANAGEDINSERTREAD",
    "HIVEMANAGEDINSERTWRITE",
    "HIVEMANAGESTATS",
    "HIVECACHEINVALIDATE",
    "CONNECTORREAD",
    "CONNECTORWRITE",
    "EXTREAD",
    "EXTWRITE",
    "HIVEBUCKET2",
]
# Without this, Hive 4 shows a database in its warehouse at another directory than it has, and an ALTER would write that back.
RAW = "MANAGE_RAW_METADATA"

# Statistics come from the source with the object; counting files of the target again would only replace them.
KEEP_STATISTICS = EnvironmentContext(properties={"DO_NOT_UPDATE_STATS": "true"})


@dataclass(frozen=True, slots=True)
class Features:
    """What a metastore is.

    Args:
        version: as exactly as it is known: ``4.2.0``; earlier ones answer "3.0" whatever they are, so ``3`` or ``2``, and ``1``
            for all that are older than 2.2.
        uuid: identifies the metastore's database (Hive 3 and later), else "".
    """

    version: str
    uuid: str

    @property
    def major(self) -> int:
        """Major version of Hive."""
        return int(self.version.split(".")[0])

    def later_than(self, other: Features) -> bool:
        """Whether the version is a later one than another's, as far as both are known; the third number does not count."""
        both = zip(_numbers(self.version), _numbers(other.version), strict=False)
        return next((one > its for one, its in both if one != its), False)


def _numbers(version: str) -> list[int]:
    return list(map(int, re.findall(r"[0-9]+", version)[:2]))


class Dialect:
    """Calls whose form depends on the server's version."""

    def __init__(self) -> None:
        self._unknown: set[str] = set()

    def features(self, client: Client) -> Features:
        """Asks the server what it is."""
        reported = client.getVersion()
        # Hive 2.3 has no UUID and Hive 3.1 has; both report "3.0".
        uuid = self._first(("get_metastore_db_uuid", client.get_metastore_db_uuid), ("", lambda: ""))
        if not reported.startswith("3.0"):
            return Features(reported, uuid)
        return Features("3" if uuid else self._before_3(client), uuid)

    def _before_3(self, client: Client) -> str:
        try:
            client.get_table_req(GetTableRequest(dbName="default", tblName="_"))
        except TApplicationException as error:
            if error.type == TApplicationException.UNKNOWN_METHOD:
                return "1"
            raise
        except NoSuchObjectException:
            pass
        return "2"

    def known(self, name: str, call: Callable[[], T], otherwise: T) -> T:
        """What a call answers that earlier versions do not have; ``otherwise`` where the server does not."""
        return self._first((name, call), ("", lambda: otherwise))

    def database(self, client: Client, name: str) -> Database:
        """A database with the directories that it has; raises what the server raises."""
        # Hive 4.2 does not find any database where the catalog is left out.
        request = GetDatabaseRequest(
            name=name, catalogName="hive", processorCapabilities=[*CAPABILITIES, RAW], processorIdentifier=PROCESSOR
        )
        return self._first(
            ("get_database_req", lambda: client.get_database_req(request)),
            ("get_database", lambda: client.get_database(name)),
        )

    def table(self, client: Client, db: str, name: str) -> Table:
        """A table; raises what the server raises."""
        request = GetTableRequest(
            dbName=db,
            tblName=name,
            capabilities=ClientCapabilities(values=[ClientCapability.INSERT_ONLY_TABLES]),
            processorCapabilities=CAPABILITIES,
            processorIdentifier=PROCESSOR,
        )
        return self._first(
            ("get_table_req", lambda: client.get_table_req(request).table),
            ("get_table", lambda: client.get_table(db, name)),
        )

    def tables(self, client: Client, db: str, names: list[str]) -> list[Table]:
        """Those of the named tables that exist."""
        request = GetTablesRequest(
            dbName=db,
            tblNames=names,
            capabilities=ClientCapabilities(values=[ClientCapability.INSERT_ONLY_TABLES]),
            processorCapabilities=CAPABILITIES,
            processorIdentifier=PROCESSOR,
        )
        return self._first(
            ("get_table_objects_by_name_req", lambda: client.get_table_objects_by_name_req(request).tables),
            ("get_table_objects_by_name", lambda: client.get_table_objects_by_name(db, names)),
        )

    def create_table(self, client: Client, table: Table) -> None:
        """Creates a table."""
        request = CreateTableRequest(table=table, processorCapabilities=CAPABILITIES, processorIdentifier=PROCESSOR)
        self._first(
            ("create_table_req", lambda: client.create_table_req(request)),
            ("create_table", lambda: client.create_table(table)),
        )

    def alter_table(self, client: Client, db: str, name: str, table: Table) -> None:
        """Replaces a table's description."""
        request = AlterTableRequest(
            dbName=db,
            tableName=name,
            table=table,
            environmentContext=KEEP_STATISTICS,
            processorCapabilities=CAPABILITIES,
            processorIdentifier=PROCESSOR,
        )
        self._first(
            ("alter_table_req", lambda: client.alter_table_req(request)),
            (
                "alter_table_with_environment_context",
                lambda: client.alter_table_with_environment_context(db, name, table, KEEP_STATISTICS),
            ),
        )

    def materialized_views(self, client: Client, db: str) -> list[str]:
        """Names of a database's materialized views; none where the server does not know of any (Hive 2)."""
        none: list[str] = []
        return self.known("get_tables_by_type", lambda: client.get_tables_by_type(db, "*", "MATERIALIZED_VIEW"), none)

    def partitions(self, client: Client, db: str, table: str, names: list[str]) -> list[Partition]:
        """Those of the named partitions that exist."""
        request = GetPartitionsByNamesRequest(
            db_name=db, tbl_name=table, names=names, processorCapabilities=CAPABILITIES, processorIdentifier=PROCESSOR
        )
        return self._first(
            ("get_partitions_by_names_req", lambda: client.get_partitions_by_names_req(request).partitions),
            ("get_partitions_by_names", lambda: client.get_partitions_by_names(db, table, names)),
        )

    def _first(self, *forms: tuple[str, Callable[[], T]]) -> T:
        for name, call in forms[:-1]:
            if name in self._unknown:
                continue
            try:
                return call()
            except TApplicationException as error:
                if error.type != TApplicationException.UNKNOWN_METHOD:
                    raise
                self._unknown.add(name)
        return forms[-1][1]()
