"""A source database changed through its metastore and storage, as Hive does it, on servers without a Hive driver."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

from hive_replication.connect import Connection
from hive_replication.metastore.types import Database, FieldSchema, Partition, SerDeInfo, StorageDescriptor, Table, copy_of

TEXT = StorageDescriptor(
    cols=[FieldSchema("a", "int", None)],
    inputFormat="org.apache.hadoop.mapred.TextInputFormat",
    outputFormat="org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat",
    compressed=False,
    numBuckets=-1,
    serdeInfo=SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={}),
    bucketCols=[],
    sortCols=[],
    parameters={},
)


@dataclass
class Origin:
    """Text tables of one column ``a``, partitioned by ``ds`` or not."""

    connection: Connection
    database: str
    _numbers: itertools.count[int] = field(default_factory=itertools.count)

    def create_database(self) -> None:
        self.connection.source.metastore.create_database(Database(name=self.database, parameters={}))

    def create(self, name: str, *days: str) -> None:
        """Creates a table, partitioned if days are given."""
        keys = [FieldSchema("ds", "string", None)] if days else []
        self.connection.source.metastore.create_table(
            Table(
                tableName=name,
                dbName=self.database,
                owner="hive",
                sd=copy_of(TEXT),
                partitionKeys=keys,
                parameters={},
                tableType="MANAGED_TABLE",
            )
        )
        for day in days:
            self.add(name, day)

    def add(self, table: str, *days: str) -> None:
        """Adds partitions with one event."""
        parts = [Partition(values=[day], dbName=self.database, tableName=table, sd=copy_of(TEXT), parameters={}) for day in days]
        self.connection.source.metastore.add_partitions(self.database, table, parts)

    def location(self, table: str, day: str = "") -> str:
        metastore = self.connection.source.metastore
        if day:
            (part,) = metastore.partitions(self.database, table, [f"ds={day}"])
            return str(part.sd.location)
        found = metastore.table(self.database, table)
        assert found is not None
        return str(found.sd.location)

    def insert(self, table: str, rows: str, day: str = "", *, overwrite: bool = False) -> str:
        """Inserts a new file, with its event."""
        storage, location = self.connection.source.storage, self.location(table, day)
        for old in storage.files(location) if overwrite else ():
            storage.delete(old.uri)
        uri = f"{location}/{next(self._numbers):06d}_0"
        storage.write(uri, rows.encode())
        checksum = storage.checksum(uri)
        self.connection.source.metastore.fire_insert_event(
            self.database,
            table,
            values=[day] if day else None,
            files=[uri],
            checksums=[checksum.value if checksum else ""],
            replace=overwrite,
        )
        return uri
