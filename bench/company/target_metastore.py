"""A metastore that can be written: the target's, which keeps of each partition what differs from the first of its table."""

from __future__ import annotations

import fnmatch
import threading
import time
import zlib
from collections.abc import Iterable
from copy import deepcopy
from dataclasses import dataclass, field

from hive_metastore import ttypes
from thrift.protocol.TBinaryProtocol import TBinaryProtocolAccelerated
from thrift.transport.TTransport import TMemoryBuffer

from bench.company.formula import WAREHOUSE
from bench.company.metastore import Answers, no_such
from bench.company.tree import Tree
from hive_replication.metastore.names import partition_name, table_directory
from hive_replication.metastore.types import Database, Partition, Table


@dataclass
class _Kept:
    """A table and its partitions, by their names: packed with the first one as the dictionary of zlib."""

    table: Table
    partitions: dict[str, bytes] = field(default_factory=dict[str, bytes])
    first: bytes = b""

    def pack(self, partition: Partition) -> bytes:
        """The few bytes by which a partition differs from the first one."""
        buffer = TMemoryBuffer()
        partition.write(TBinaryProtocolAccelerated(buffer))
        data = buffer.getvalue()
        self.first = self.first or data
        packing = zlib.compressobj(level=1, zdict=self.first)
        return packing.compress(data) + packing.flush()

    def unpacked(self, packed: bytes) -> Partition:
        """A partition as it was given."""
        data, partition = zlib.decompressobj(zdict=self.first).decompress(packed), Partition()
        partition.read(TBinaryProtocolAccelerated(TMemoryBuffer(data)))
        return partition

    def name_of(self, values: Iterable[str]) -> str:
        """Name of a partition of some values."""
        return partition_name([key.name for key in self.table.partitionKeys], list(values))


class TargetMetastore(Answers):
    """Answers the calls.

    Args:
        store: URI of its HDFS, e.g. ``hdfs://127.0.0.1:8020``.
        tree: of that HDFS: the metastore makes the directories of what it creates.
    """

    def __init__(self, store: str, tree: Tree) -> None:
        self._store, self._tree = store, tree
        self._databases: dict[str, Database] = {}
        self._tables: dict[str, dict[str, _Kept]] = {}
        self._locks: dict[int, ttypes.ShowLocksResponseElement] = {}
        self._lock = threading.RLock()

    def get_metastore_db_uuid(self) -> str:
        """What tells it from others."""
        return "00000000-0000-0000-0000-00000c000002"

    def get_config_value(self, name: str, defaultValue: str) -> str:  # noqa: N803
        """A setting."""
        return {"hive.metastore.warehouse.dir": f"{self._store}{WAREHOUSE}"}.get(name, defaultValue)

    def get_database(self, name: str) -> Database:
        """A database."""
        if name not in self._databases:
            raise no_such(f"database {name}")
        return self._databases[name]

    def create_database(self, database: Database) -> None:
        """Creates a database and its directory."""
        with self._lock:
            if database.name in self._databases:
                raise ttypes.AlreadyExistsException(f"database {database.name} exists")
            database.locationUri = database.locationUri or f"{self._store}{WAREHOUSE}/{database.name}.db"
            database.parameters = database.parameters or {}
            self._databases[database.name] = database
            self._tables[database.name] = {}
            self._make(database.locationUri)

    def alter_database(self, dbname: str, db: Database) -> None:
        """Replaces a database's description."""
        self.get_database(dbname)
        self._databases[dbname] = db

    def get_tables(self, db_name: str, pattern: str) -> list[str]:
        """Names of tables."""
        found = self._tables.get(db_name, {})
        return [name for name in found if any(fnmatch.fnmatchcase(name, one) for one in pattern.split("|"))]

    def get_table_req(self, req: ttypes.GetTableRequest) -> ttypes.GetTableResult:
        """A table."""
        return ttypes.GetTableResult(table=self._kept(req.dbName, req.tblName).table)

    def get_table_objects_by_name_req(self, req: ttypes.GetTablesRequest) -> ttypes.GetTablesResult:
        """Those of some tables that exist."""
        found = self._tables.get(req.dbName, {})
        return ttypes.GetTablesResult(tables=[found[name].table for name in req.tblNames if name in found])

    def create_table(self, tbl: Table) -> None:
        """Creates a table and its directory."""
        database = self.get_database(tbl.dbName)
        with self._lock:
            if tbl.tableName in self._tables[tbl.dbName]:
                raise ttypes.AlreadyExistsException(f"table {tbl.tableName} exists")
            tbl.sd.location = tbl.sd.location or f"{database.locationUri}/{table_directory(tbl.tableName)}"
            tbl.parameters = tbl.parameters or {}
            self._tables[tbl.dbName][tbl.tableName] = _Kept(tbl)
            self._make(tbl.sd.location)

    def alter_table_with_environment_context(
        self,
        dbname: str,
        tbl_name: str,
        new_tbl: Table,
        environment_context: ttypes.EnvironmentContext,  # noqa: ARG002
    ) -> None:
        """Replaces a table's description; it keeps its name."""
        self._kept(dbname, tbl_name).table = new_tbl

    def get_partition_names(self, db_name: str, tbl_name: str, max_parts: int) -> list[str]:
        """Names of a table's partitions."""
        names = sorted(self._kept(db_name, tbl_name).partitions)
        return names if max_parts < 0 else names[:max_parts]

    def get_partitions_by_names(self, db_name: str, tbl_name: str, names: list[str]) -> list[Partition]:
        """Those of some partitions that exist."""
        kept = self._kept(db_name, tbl_name)
        return [kept.unpacked(kept.partitions[name]) for name in names if name in kept.partitions]

    def get_num_partitions_by_filter(self, db_name: str, tbl_name: str, filter: str) -> int:  # noqa: A002, ARG002
        """How many partitions a table has."""
        return len(self._kept(db_name, tbl_name).partitions)

    def add_partitions_req(self, request: ttypes.AddPartitionsRequest) -> ttypes.AddPartitionsResult:
        """Adds partitions and makes their directories: all or none."""
        kept = self._kept(request.dbName, request.tblName)
        with self._lock:
            named = {kept.name_of(one.values): one for one in request.parts}
            if there := named.keys() & kept.partitions.keys():
                raise ttypes.AlreadyExistsException(f"partition {min(there)} exists")
            for name, one in named.items():
                one.sd.location = one.sd.location or f"{kept.table.sd.location}/{name}"
                self._make(one.sd.location)
                kept.partitions[name] = kept.pack(one)
        return ttypes.AddPartitionsResult(partitions=None)

    def alter_partitions_with_environment_context(
        self,
        db_name: str,
        tbl_name: str,
        new_parts: list[Partition],
        environment_context: ttypes.EnvironmentContext,  # noqa: ARG002
    ) -> None:
        """Replaces the descriptions of partitions."""
        kept = self._kept(db_name, tbl_name)
        with self._lock:
            named = {kept.name_of(one.values): one for one in new_parts}
            if missing := named.keys() - kept.partitions.keys():
                raise ttypes.InvalidOperationException(f"partition {min(missing)} does not exist")
            kept.partitions |= {name: kept.pack(one) for name, one in named.items()}

    def get_current_notificationEventId(self) -> ttypes.CurrentNotificationEventId:  # noqa: N802
        """It keeps no log."""
        return ttypes.CurrentNotificationEventId(eventId=0)

    def get_next_notification(self, rqst: ttypes.NotificationEventRequest) -> ttypes.NotificationEventResponse:  # noqa: ARG002
        """It keeps no log."""
        return ttypes.NotificationEventResponse(events=[])

    def lock(self, rqst: ttypes.LockRequest) -> ttypes.LockResponse:
        """Locks what nobody else has locked, else lets wait."""
        component, now = rqst.component[0], round(time.time() * 1000)
        with self._lock:
            number = max(self._locks, default=0) + 1
            free = all(one.tablename != component.tablename for one in self._locks.values())
            state = ttypes.LockState.ACQUIRED if free else ttypes.LockState.WAITING
            self._locks[number] = ttypes.ShowLocksResponseElement(
                lockid=number,
                dbname=component.dbname,
                tablename=component.tablename,
                state=state,
                type=component.type,
                txnid=0,
                lastheartbeat=now,
                acquiredat=now,
                user=rqst.user,
                hostname=rqst.hostname,
                agentInfo=rqst.agentInfo,
            )
        return ttypes.LockResponse(lockid=number, state=state)

    def show_locks(self, rqst: ttypes.ShowLocksRequest) -> ttypes.ShowLocksResponse:
        """Who has locked a name."""
        with self._lock:
            return ttypes.ShowLocksResponse(
                locks=[deepcopy(one) for one in self._locks.values() if one.tablename == rqst.tablename]
            )

    def unlock(self, rqst: ttypes.UnlockRequest) -> None:
        """Gives a lock back."""
        with self._lock:
            self._locks.pop(rqst.lockid, None)

    def heartbeat(self, ids: ttypes.HeartbeatRequest) -> None:
        """Notes that the holder of a lock lives."""
        with self._lock:
            if ids.lockid not in self._locks:
                raise ttypes.NoSuchLockException(f"no lock {ids.lockid}")
            self._locks[ids.lockid].lastheartbeat = round(time.time() * 1000)

    def _kept(self, database: str, table: str) -> _Kept:
        found = self._tables.get(database, {}).get(table)
        if found is None:
            raise no_such(f"{database}.{table}")
        return found

    def _make(self, location: str) -> None:
        if location.startswith(f"{self._store}/"):
            self._tree.mkdirs(location.removeprefix(self._store).rstrip("/"))
