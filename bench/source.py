"""What the workloads write into a source warehouse: through its metastore and storage, as engines do, many at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from hive_metastore.ttypes import CmRecycleRequest

from hive_replication.connect import Connection
from hive_replication.metastore.types import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table, copy_of

_THREADS = 128
_TEXT = (
    "org.apache.hadoop.mapred.TextInputFormat",
    "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
)
_ORC_PACKAGE = "org.apache.hadoop.hive.ql.io.orc"
_ORC = f"{_ORC_PACKAGE}.OrcInputFormat", f"{_ORC_PACKAGE}.OrcOutputFormat", f"{_ORC_PACKAGE}.OrcSerde"


@dataclass
class SourceDatabase:
    """One source database.

    Args:
        connection: to the source.
        name: of the database.
    """

    connection: Connection
    name: str

    def create(self, warehouse: str) -> None:
        """Creates the database, marked as a source, so that Hive keeps what is deleted."""
        location = f"{warehouse.rstrip('/')}/{self.name}.db"
        marked = {"repl.source.for": "bench"}
        self._metastore.create_database(Database(name=self.name, locationUri=location, parameters=marked, ownerName="hive"))

    def table(
        self, name: str, *, partitioned: bool = True, orc: bool = False, parameters: Mapping[str, str] | None = None
    ) -> Table:
        """Creates a managed table with one column, of text or ORC files, by default partitioned by ``p``."""
        reads, writes, serde = _ORC if orc else _TEXT
        database = self._metastore.database(self.name)
        assert database is not None
        sd = StorageDescriptor(
            cols=[FieldSchema("a", "string", "")],
            location=f"{database.locationUri}/{name}",
            inputFormat=reads,
            outputFormat=writes,
            numBuckets=-1,
            serdeInfo=SerDeInfo(serializationLib=serde, parameters={}),
            parameters={},
        )
        keys = [FieldSchema("p", "string", "")] if partitioned else []
        made = Table(tableName=name, dbName=self.name, owner="hive", sd=sd, partitionKeys=keys, parameters=dict(parameters or {}))
        made.tableType = "MANAGED_TABLE"
        self._metastore.create_table(made)
        return made

    def files(self, uris: Iterable[str], size: int) -> None:
        """Writes files of random bytes."""
        data = os.urandom(size)  # the same in all: what they hold does not matter to anybody
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(lambda uri: self._storage.write(uri, data), uris))

    def partitions(self, table: Table, values: Sequence[str]) -> None:
        """Adds partitions in one call; their files are there already."""
        self._metastore.add_partitions(self.name, table.tableName, [self._partition(table, value) for value in values])

    def insert(self, table: Table, value: str, name: str, *, replace: bool = False) -> None:
        """Moves a file from its hidden name into a partition; what it replaces goes to cmroot, as in Hive."""
        place = self.place(table, value)
        uri = f"{place}/{name}"
        for old in self._storage.files(place) if replace else ():
            request = CmRecycleRequest(dataPath=old.uri, purge=True)
            self._metastore.call(f"cm_recycle {old.uri}", lambda client, request=request: client.cm_recycle(request))
        self._storage.rename(f"{place}/.{name}", uri)
        checksum = self._storage.checksum(uri)
        assert checksum is not None
        self._metastore.fire_insert_event(
            self.name, table.tableName, values=[value], files=[uri], checksums=[checksum.value], replace=replace
        )

    def place(self, table: Table, value: str) -> str:
        """Where a partition lies."""
        return f"{table.sd.location}/p={value}"

    def alter(self, table: Table, value: str, number: int) -> None:
        """Changes a parameter of a partition."""
        part = self._partition(table, value)
        part.parameters = {"number": str(number)}
        self._metastore.alter_partitions(self.name, table.tableName, [part])

    def drop(self, table: Table, value: str) -> None:
        """Drops a partition with its data, which goes to cmroot."""
        self._metastore.drop_partitions(self.name, table.tableName, [f"p={value}"], delete_data=True)

    def _partition(self, table: Table, value: str) -> Partition:
        sd = copy_of(table.sd)
        sd.location = self.place(table, value)
        return Partition(values=[value], dbName=self.name, tableName=table.tableName, sd=sd, parameters={})

    @property
    def _metastore(self):
        return self.connection.source.metastore

    @property
    def _storage(self):
        return self.connection.source.storage
