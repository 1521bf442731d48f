"""What the company's warehouse holds, computed from numbers."""

from __future__ import annotations

import hashlib
import re
import struct
from dataclasses import dataclass
from functools import lru_cache

import google_crc32c

from hive_replication.metastore.types import (
    Database,
    FieldSchema,
    Partition,
    PrincipalType,
    SerDeInfo,
    StorageDescriptor,
    Table,
)

#: The whole company.
TABLES, PARTITIONS, FILES = 10_000, 10_000, 3
#: Partitions that a table can have.
MOST = 1_000_000
#: When everything was written: seconds since the epoch, 2026-01-01.
WRITTEN = 1_767_225_600
#: The key by which all tables are partitioned.
KEY = "part"
WAREHOUSE = "/warehouse"
BLOCK = 128 << 20  # bytes
_CHUNK = 512  # bytes that one CRC is of
_NAME = re.compile(r"company(?:_(\d+)x(\d+)x(\d+))?")
_PARQUET = "org.apache.hadoop.hive.ql.io.parquet."
_COLUMNS = (("id", "bigint"), ("amount", "double"), ("customer", "string"), ("country", "string"), ("at", "timestamp"))


@dataclass(frozen=True, slots=True)
class Slice:
    """A database: as many tables, each with as many partitions, each with as many files.

    ``company`` is the whole; ``company_3x50x2`` has 3 tables of 50 partitions with 2 files.
    """

    name: str
    tables: int
    partitions: int
    files: int

    @classmethod
    def of(cls, name: str) -> Slice | None:
        """The database of a name; None where it is none of the company."""
        found = _NAME.fullmatch(name)
        if not found:
            return None
        numbers = [int(one) for one in found.groups() if one] or [TABLES, PARTITIONS, FILES]
        return cls(name, *numbers)

    @property
    def objects(self) -> int:
        """Partitions in all."""
        return self.tables * self.partitions

    def table_number(self, name: str) -> int | None:
        """The number of a table; None where there is none of the name."""
        return _number(name, "t", self.tables)

    def partition_number(self, name: str) -> int | None:
        """The number of a partition, by its name such as ``part=000007``."""
        return _number(name, f"{KEY}=", self.partitions)

    def file_number(self, name: str) -> int | None:
        """The number of a file in its partition's directory."""
        return _number(name, "file-", self.files)


def table_name(number: int) -> str:
    """Name of a table."""
    return f"t{number:06}"


def partition_value(number: int) -> str:
    """Value of a partition's key."""
    return f"{number:06}"


def file_name(number: int) -> str:
    """Name of a file."""
    return f"file-{number:06}"


def _number(name: str, before: str, below: int) -> int | None:
    digits = name.removeprefix(before)
    if len(digits) != 6 or not name.startswith(before) or not digits.isdecimal():
        return None
    return number if (number := int(digits)) < below else None


@lru_cache(1 << 16)
def content(table: int, partition: int, file: int) -> bytes:
    """Bytes of a file: 200 to 1,223 of them, other ones for each file."""
    size = 200 + (table * 7919 + partition * 104_729 + file * 1_299_709) % 1024
    line = f"{table}/{partition}/{file};".encode()
    return (line * (size // len(line) + 1))[:size]


@lru_cache(1 << 16)
def checksum(table: int, partition: int, file: int) -> str:
    """The checksum that the company's HDFS answers for a file, as hex."""
    return checksum_of(content(table, partition, file))


def checksum_of(data: bytes) -> str:
    """The checksum of a file of one block in the form of Hadoop's ``MD5-of-0MD5-of-512CRC32C``, as hex."""
    sums = b"".join(struct.pack(">I", google_crc32c.value(data[at : at + _CHUNK])) for at in range(0, len(data), _CHUNK))
    block = hashlib.md5(sums, usedforsecurity=False).digest() if data else b""
    return (struct.pack(">IQ", _CHUNK, 0) + hashlib.md5(block.ljust(32, b"\0"), usedforsecurity=False).digest()).hex()


def database(of: Slice, store: str) -> Database:
    """A database as the metastore describes it; marked already as the source of a replication.

    Args:
        of: which one.
        store: URI of the HDFS, e.g. ``hdfs://127.0.0.1:8020``.
    """
    return Database(
        name=of.name,
        description="",
        locationUri=f"{store}{WAREHOUSE}/{of.name}.db",
        parameters={"repl.source.for": "default"},
        ownerName="etl",
        ownerType=PrincipalType.USER,
        catalogName="hive",
    )


def table(of: Slice, number: int, store: str) -> Table:
    """A table as the metastore describes it."""
    name = table_name(number)
    return Table(
        tableName=name,
        dbName=of.name,
        owner="etl",
        createTime=WRITTEN,
        lastAccessTime=0,
        retention=0,
        sd=_described(f"{store}{WAREHOUSE}/{of.name}.db/{name}"),
        partitionKeys=[FieldSchema(KEY, "string", None)],
        parameters={"transient_lastDdlTime": str(WRITTEN)},
        tableType="MANAGED_TABLE",
        catName="hive",
        ownerType=PrincipalType.USER,
    )


def partition(of: Slice, table_number: int, number: int, store: str) -> Partition:
    """A partition as the metastore describes it."""
    name, value = table_name(table_number), partition_value(number)
    total = sum(len(content(table_number, number, file)) for file in range(of.files))
    return Partition(
        values=[value],
        dbName=of.name,
        tableName=name,
        createTime=WRITTEN,
        lastAccessTime=0,
        sd=_described(f"{store}{WAREHOUSE}/{of.name}.db/{name}/{KEY}={value}"),
        parameters={
            "numFiles": str(of.files),
            "numRows": str(total // 8),
            "rawDataSize": str(total),
            "totalSize": str(total),
            "transient_lastDdlTime": str(WRITTEN),
        },
        catName="hive",
    )


def _described(location: str) -> StorageDescriptor:
    return StorageDescriptor(
        cols=[FieldSchema(name, kind, None) for name, kind in _COLUMNS],
        location=location,
        inputFormat=f"{_PARQUET}MapredParquetInputFormat",
        outputFormat=f"{_PARQUET}MapredParquetOutputFormat",
        compressed=False,
        numBuckets=-1,
        serdeInfo=SerDeInfo(None, f"{_PARQUET}serde.ParquetHiveSerDe", {"serialization.format": "1"}),
        bucketCols=[],
        sortCols=[],
        parameters={},
        storedAsSubDirectories=False,
    )
