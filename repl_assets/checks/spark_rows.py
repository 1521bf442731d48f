"""Reading a table's rows with Spark on either side, by their files' format and not through a metastore; counting them.

Of a transactional table they are what a reader sees who starts now, added up in executors by the function that ``verify`` uses.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from hive_replication.dump.listing import Lister
from hive_replication.dump.source import Source
from hive_replication.errors import BadRequest
from hive_replication.load.replica.target import Target
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import Partition, Table
from hive_replication.verify.acid import Reading, Seen
from repl_assets.catalog.catalog import file_format

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_READERS = {"parquet": "parquet", "orc": "orc", "text": "text"}  # what Spark reads without further packages


class UnreadFormat(BadRequest):
    """Rows in a format that is not read."""


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one format of a table on one side.

    Args:
        reader: Spark's name of the format.
        partitions: by URIs of files the names of the partitions that have them, "" for a table without. Several may share a
            directory, or one may lie within another's.
    """

    reader: str
    partitions: dict[str, tuple[str, ...]]

    def partitions_of(self, file_path: str) -> tuple[str, ...]:
        """The partitions of a file as Spark names it: blanks and percent signs as in a URI, one slash after ``file:``."""
        return self.partitions[re.sub("^file:/+", "file:///", unquote(file_path))]


def table_of(side: Source | Target, database: str, table: str) -> Table:
    """A table of a side.

    Raises:
        BadRequest: there is none.
    """
    found = side.metastore.table(database, table)
    if found is None:
        raise BadRequest(f"{side.metastore.uri} has no table {database}.{table}")
    return found


def table_files(side: Source | Target, database: str, table: str, partitions: Collection[str] | None = None) -> list[Files]:
    """Files of a table as they are now, by format.

    Args:
        side: where.
        database: its name on that side.
        table: its name.
        partitions: only of these partitions; those that are not there have none.

    Raises:
        BadRequest: there is no such table.
        UnreadFormat: its files are in a format that Spark does not read by itself.
    """
    parts = _parts(side, database, table_of(side, database, table), partitions)
    files: dict[str, dict[str, tuple[str, ...]]] = {}
    placed = {name: part for name, part in parts.items() if part.sd.location}
    listed = side.storage.many.map(side.storage.files, [str(part.sd.location) for part in placed.values()])
    for (name, part), found in zip(placed.items(), listed, strict=True):
        for status in found:
            of_format = files.setdefault(file_format(part.sd.inputFormat or ""), {})
            of_format[status.uri] = (*of_format.get(status.uri, ()), name)
    unread = sorted(files.keys() - _READERS.keys())
    if unread:
        raise UnreadFormat(f"rows of {database}.{table} cannot be read: Spark does not know {', '.join(unread)} by itself")
    return [Files(_READERS[kind], uris) for kind, uris in files.items()]


def read(spark: SparkSession, files: Files) -> DataFrame:
    """The rows of the files; columns of all of them together where their schemas differ."""
    return spark.read.format(files.reader).option("mergeSchema", "true").load(list(files.partitions))


def count_rows(
    spark: SparkSession, side: Source | Target, database: str, table: str, partitions: Collection[str] | None = None
) -> dict[str, int]:
    """Rows of each partition that has files, by its name; "" for a table without partitions. See :func:`table_files`."""
    found = table_of(side, database, table)
    if is_transactional(found):
        return {name: rows for name, (rows, _) in add_rows(spark, side, database, found, partitions).items()}
    counts: Counter[str] = Counter()
    for files in table_files(side, database, table, partitions):
        for row in read(spark, files).groupBy("_metadata.file_path").count().collect():
            for partition in files.partitions_of(row["file_path"]):
                counts[partition] += row["count"]
    return dict(counts)


def add_rows(
    spark: SparkSession, side: Source | Target, database: str, table: Table, partitions: Collection[str] | None = None
) -> dict[str, tuple[int, int]]:
    """Number of the rows of a transactional table and sum of their hashes, row ids included, by partitions that have some.

    Args:
        spark: the session.
        side: where.
        database: its name on that side.
        table: of that side.
        partitions: only of these.

    Raises:
        UnreadFormat: they are in a format that is not read.
    """
    seen = Seen.now(side.metastore, side.storage, Lister(side.storage), database, table)
    parts = _parts(side, database, table, partitions)
    readings = [(name, seen.reading(parts[name], files)) for name, files in zip(parts, seen.many(parts.values()), strict=True)]
    known = [(name, reading) for name, reading in readings if reading]
    if len(known) < len(readings):
        raise UnreadFormat(f"rows of {database}.{table.tableName} cannot be read: only ORC, Parquet and text can")
    found = spark.sparkContext.parallelize(known).mapValues(Reading.rows).collect()
    return {name: (rows.number, rows.digest) for name, rows in found if rows.number}


def _parts(
    side: Source | Target, database: str, table: Table, partitions: Collection[str] | None
) -> Mapping[str, Table | Partition]:
    """A table's partitions by their names, or itself."""
    return (
        by_name(table, side.metastore.partitions(database, table.tableName, partitions)) if table.partitionKeys else {"": table}
    )
