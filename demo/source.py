"""The demo's source database, changed the way Hive changes one: files first, then the metastore, then an event with checksums."""

from __future__ import annotations

import itertools
import time
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import PurePosixPath

from hive_metastore.ttypes import CmRecycleRequest

from demo.spark import Spark
from demo.tables import DATABASE, Columns, Design
from hive_replication.dump.source import Source
from hive_replication.metastore.names import partition_name, partition_values
from hive_replication.metastore.types import (
    Database,
    FieldSchema,
    Partition,
    PrincipalType,
    SerDeInfo,
    StorageDescriptor,
    Table,
    copy_of,
)

_QL = "org.apache.hadoop.hive.ql.io"
_FORMATS = {
    "parquet": (
        f"{_QL}.parquet.MapredParquetInputFormat",
        f"{_QL}.parquet.MapredParquetOutputFormat",
        f"{_QL}.parquet.serde.ParquetHiveSerDe",
    ),
    "orc": (f"{_QL}.orc.OrcInputFormat", f"{_QL}.orc.OrcOutputFormat", f"{_QL}.orc.OrcSerde"),
    "text": (
        "org.apache.hadoop.mapred.TextInputFormat",
        f"{_QL}.HiveIgnoreKeyTextOutputFormat",
        "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe",
    ),
}


@dataclass
class SourceDatabase:
    """The source's ``sales``.

    Args:
        source: its metastore and storage.
        spark: a session on the same metastore; it writes the files.
        root: URI of the side's HDFS.
    """

    source: Source
    spark: Spark
    root: str
    _staged: itertools.count[int] = field(default_factory=itertools.count, init=False)

    def create_database(self) -> None:
        """CREATE DATABASE."""
        database = Database(
            name=DATABASE,
            description="Orders and all that follows",
            parameters={},
            ownerName="sales-team",
            ownerType=PrincipalType.USER,
        )
        self.source.metastore.create_database(database)

    def set_property(self, key: str, value: str) -> None:
        """ALTER DATABASE SET DBPROPERTIES."""
        database = self.source.database(DATABASE)
        database.parameters = {**(database.parameters or {}), key: value}
        self.source.metastore.alter_database(DATABASE, database)

    def names(self) -> list[str]:
        """SHOW TABLES."""
        return self.source.metastore.table_names(DATABASE)

    def create(self, design: Design, rows: str = "") -> None:
        """CREATE TABLE, and INSERT INTO where rows are given."""
        self.source.metastore.create_table(_table(design, f"{self.root}landing/{design.name}" if design.external else None))
        if rows:
            self.insert(design, rows)

    def create_view(self, name: str, columns: Columns, text: str) -> None:
        """CREATE VIEW."""
        view = _table(Design(name, columns, format="text"), None)
        view.tableType, view.viewOriginalText, view.viewExpandedText = "VIRTUAL_VIEW", text, text
        view.sd.location = None
        self.source.metastore.create_table(view)

    def create_by_spark(self, name: str, rows: str) -> None:
        """Spark's CREATE TABLE USING parquet AS SELECT: its own kind of table, which keeps its schema and path in properties."""
        self.spark.session.sql(f"CREATE TABLE {DATABASE}.{name} USING parquet AS {rows}")

    def insert(self, design: Design, rows: str, *, overwrite: bool = False) -> None:
        """INSERT INTO or INSERT OVERWRITE, with dynamic partitions where the table has any.

        New partitions come with one ADD_PARTITION event, others and tables without partitions with an INSERT event each.
        """
        metastore = self.source.metastore
        table = self._table(design.name)
        present = {partition.sd.location: partition for partition in self._partitions(design.name)} if design.keys else {}
        created: list[Partition] = []
        for name, staged in self._stage(design, rows).items():
            location = f"{table.sd.location}/{name}" if name else str(table.sd.location)
            if name and location not in present:
                self._move(staged, location)
                created.append(_partition(table, name, location))
                continue
            if overwrite:
                self._recycle(location)
            self._fire_insert(table, name, self._move(staged, location), overwrite=overwrite)
        if created:
            metastore.add_partitions(DATABASE, design.name, created)

    def drop(self, name: str) -> None:
        """DROP TABLE, if it exists. The metastore moves its files to cmroot."""
        self.source.metastore.drop_table(DATABASE, name, delete_data=True)

    def drop_partition(self, table: str, name: str) -> None:
        """ALTER TABLE DROP PARTITION."""
        self.source.metastore.drop_partitions(DATABASE, table, [name], delete_data=True)

    def truncate(self, name: str) -> None:
        """TRUNCATE TABLE. The metastore moves its files to cmroot."""
        self.source.metastore.call(f"truncate_table {name}", lambda client: client.truncate_table(DATABASE, name, None))

    def rename(self, name: str, new: str) -> None:
        """ALTER TABLE RENAME TO. The metastore moves the directory, and copies the files to cmroot before."""
        table = copy_of(self._table(name))
        table.tableName = new
        self.source.metastore.alter_table(DATABASE, name, table)

    def add_column(self, name: str, column: str, kind: str) -> None:
        """ALTER TABLE ADD COLUMNS."""
        table = copy_of(self._table(name))
        table.sd.cols.append(FieldSchema(name=column, type=kind))
        self.source.metastore.alter_table(DATABASE, name, table)

    def columns(self, name: str) -> Columns:
        """Columns of a table as they are now."""
        return tuple((column.name, column.type) for column in self._table(name).sd.cols)

    def partition_names(self, name: str) -> list[str]:
        """SHOW PARTITIONS."""
        return sorted(self.source.metastore.partition_names(DATABASE, name))

    def _table(self, name: str) -> Table:
        table = self.source.metastore.table(DATABASE, name)
        if table is None:
            raise LookupError(f"the demo's table {name} is gone")
        return table

    def _partitions(self, name: str) -> list[Partition]:
        return list(self.source.metastore.partitions(DATABASE, name))

    def _stage(self, design: Design, rows: str) -> dict[str, list[str]]:
        """Lets Spark write files; URIs by partition name, which Spark spells as Hive does."""
        folder = f"{self.root}tmp/demo-{time.time_ns()}-{next(self._staged)}"
        self.spark.write(design, rows, folder)
        staged: defaultdict[str, list[str]] = defaultdict(list)
        for status in self.source.storage.files(folder):
            below = PurePosixPath(status.uri[len(folder) + 1 :])
            staged[str(below.parent) if design.keys else ""].append(status.uri)
        return staged

    def _move(self, staged: list[str], location: str) -> list[str]:
        moved = [f"{location}/{PurePosixPath(uri).name}" for uri in staged]
        for uri, new in zip(staged, moved, strict=True):
            self.source.storage.rename(uri, new)
        return moved

    def _recycle(self, location: str) -> None:
        """As Hive's INSERT OVERWRITE: the metastore moves what lies there to cmroot where its database is replicated."""
        request = CmRecycleRequest(location, purge=False)
        self.source.metastore.call(f"cm_recycle {location}", lambda client: client.cm_recycle(request))
        for status in self.source.storage.files(location):
            self.source.storage.delete(status.uri)

    def _fire_insert(self, table: Table, partition: str, files: list[str], *, overwrite: bool) -> None:
        found = [self.source.storage.checksum(file) for file in files]
        self.source.metastore.fire_insert_event(
            DATABASE,
            table.tableName,
            values=partition_values(partition) if partition else None,
            files=files,
            checksums=[checksum.value if checksum else "" for checksum in found],
            replace=overwrite,
        )


def _table(design: Design, location: str | None) -> Table:
    input_format, output_format, serde = _FORMATS[design.format]
    descriptor = StorageDescriptor(
        cols=_fields(design.columns),
        location=location,
        inputFormat=input_format,
        outputFormat=output_format,
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo(serializationLib=serde, parameters={"serialization.format": "1"}),
        bucketCols=[],
        sortCols=[],
        parameters={},
        storedAsSubDirectories=False,
    )
    return Table(
        tableName=design.name,
        dbName=DATABASE,
        owner="sales-team",
        createTime=int(time.time()),
        sd=descriptor,
        partitionKeys=_fields(design.keys),
        parameters={"EXTERNAL": "TRUE"} if design.external else {},
        tableType="EXTERNAL_TABLE" if design.external else "MANAGED_TABLE",
    )


def _partition(table: Table, name: str, location: str) -> Partition:
    descriptor = copy_of(table.sd)
    descriptor.location = location
    values = list(partition_values(name))
    expected = partition_name([key.name for key in table.partitionKeys], values)
    if name != expected:
        raise ValueError(f"Spark wrote the partition {expected!r} as {name!r}")
    return Partition(
        values=values, dbName=DATABASE, tableName=table.tableName, createTime=int(time.time()), sd=descriptor, parameters={}
    )


def _fields(columns: Columns) -> list[FieldSchema]:
    return [FieldSchema(name=name, type=kind) for name, kind in columns]
