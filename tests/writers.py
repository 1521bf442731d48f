"""Writes to transactional tables as Hive's own writers make them, by thrift and HDFS: fast, and each step on its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from hive_metastore import ttypes as t

from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Partition, Table
from hive_replication.storage import Storage
from tests.fixtures.record import Recorder

INSERT_ONLY = {"transactional": "true", "transactional_properties": "insert_only"}


@dataclass
class Writer:
    """One transaction on insert-only text tables of a database."""

    metastore: Metastore
    storage: Storage
    database: str
    transaction: int

    @classmethod
    def begin(cls, metastore: Metastore, storage: Storage, database: str) -> Writer:
        opened = metastore.call("open", lambda client: client.open_txns(t.OpenTxnRequest(1, "test", "localhost")))
        return cls(metastore, storage, database, opened.txn_ids[0])

    def write_id(self, table: str, *, again: bool = False) -> int:
        """Allocates a write id of a table to the transaction, or returns the one it has.

        ``again`` replaces that one, as HiveServer2 does when it compiles a query again that had to wait for another.
        """
        request = t.AllocateTableWriteIdsRequest(self.database, table, [self.transaction])
        request.reallocate = again
        answer = self.metastore.call("allocate", lambda client: client.allocate_table_write_ids(request))
        return answer.txnToWriteIds[0].writeId

    def lock(self, table: str, partition: str = "") -> None:
        """Takes the lock that a writer takes, by which the metastore knows where the transaction wrote when it is aborted."""
        level = t.LockLevel.PARTITION if partition else t.LockLevel.TABLE
        component = t.LockComponent(t.LockType.SHARED_READ, level, self.database, table, partition or None)
        component.operationType, component.isTransactional = t.DataOperationType.INSERT, True
        request = t.LockRequest([component], txnid=self.transaction, user="test", hostname="localhost")
        self.metastore.call("lock", lambda client: client.lock(request))

    def insert(
        self, table: str, text: str | bytes, partition: str = "", statement: int = 0, below: str = "", name: str = "000000_0"
    ) -> str:
        """Writes a file as a statement of the transaction, adds its write event, and returns its path.

        ``below`` names another directory than the transaction's own, ``name`` the file.
        """
        write_id = self.write_id(table)
        thing: Table | Partition | None = self.metastore.table(self.database, table)
        if partition:
            thing = next(self.metastore.partitions(self.database, table, [partition]))
        assert thing is not None
        below = below or f"delta_{write_id:07d}_{write_id:07d}_{statement:04d}"
        path = f"{thing.sd.location}/{below}/{name}"
        self.storage.write(path, text if isinstance(text, bytes) else text.encode())
        checksum = self.storage.checksum(path)
        data = t.InsertEventRequestData(
            replace=False, filesAdded=[path], filesAddedChecksum=[checksum.value if checksum else ""], subDirectoryList=[below]
        )
        values = thing.values if isinstance(thing, Partition) else None
        request = t.WriteNotificationLogRequest(self.transaction, write_id, self.database, table, data, values)
        self.metastore.call("note", lambda client: client.add_write_notification_log(request))
        return path

    def overwrite(self, table: str, *texts: str, partition: str = "") -> None:
        """INSERT OVERWRITE as a statement of the transaction: a base of several files."""
        below = f"base_{self.write_id(table):07d}"
        for number, text in enumerate(texts):
            self.insert(table, text, partition, below=below, name=f"{number:06d}_0")

    def truncate(self, table: str, *partitions: str) -> None:
        """TRUNCATE of a table, or of partitions of it, as a statement of the transaction: the metastore leaves empty bases."""
        names, write_id = list(partitions) or None, self.write_id(table)
        request = t.TruncateTableRequest(
            self.database, table, names, write_id, f"{self.database}.{table}:{write_id}:{2**63 - 1}::"
        )
        self.metastore.call("truncate", lambda client: client.truncate_table_req(request))

    def commit(self) -> None:
        self.metastore.call("commit", lambda client: client.commit_txn(t.CommitTxnRequest(self.transaction)))

    def abort(self) -> None:
        self.metastore.call("abort", lambda client: client.abort_txn(t.AbortTxnRequest(self.transaction)))


def create(
    metastore: Metastore,
    storage: Storage,
    database: str,
    name: str,
    keys: tuple[str, ...] = (),
    parameters: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Makes an insert-only table."""
    image = Recorder(metastore, storage, database)._image(name, keys=keys)
    image.parameters = INSERT_ONLY | dict(parameters)
    metastore.create_table(image)
