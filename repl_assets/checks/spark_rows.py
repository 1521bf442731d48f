"""Reading a table's rows with Spark on either side, by their files' format and not through a metastore; counting them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import unquote

from hive_replication.dump.source import Source
from hive_replication.errors import BadRequest
from hive_replication.load.replica.target import Target
from hive_replication.metastore.partitions import by_name
from hive_replication.metastore.table_kinds import is_transactional
from repl_assets.catalog.catalog import file_format

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_READERS = {"parquet": "parquet", "orc": "orc", "text": "text"}  # what Spark reads without further packages


@dataclass(frozen=True, slots=True)
class Files:
    """The files of one format of a table on one side.

    Args:
        reader: Spark's name of the format.
        partitions: partition names, "" for a table without, by URIs of files.
    """

    reader: str
    partitions: dict[str, str]

    def partition(self, file_path: str) -> str:
        """The partition of a file as Spark names it: blanks and percent signs as in a URI, one slash after ``file:``."""
        return self.partitions[re.sub("^file:/+", "file:///", unquote(file_path))]


def table_files(side: Source | Target, database: str, table: str, partitions: Collection[str] | None = None) -> list[Files]:
    """Files of a table as they are now, by format.

    Args:
        side: where.
        database: its name on that side.
        table: its name.
        partitions: only of these partitions; those that are not there have none.

    Raises:
        BadRequest: there is no such table, or its files are in a format that Spark does not read by itself.
    """
    found = side.metastore.table(database, table)
    if found is None:
        raise BadRequest(f"{side.metastore.uri} has no table {database}.{table}")
    if is_transactional(found):
        raise BadRequest(f"Spark does not read rows of the transactional table {database}.{table}; the check replica_equal does")
    parts = {"": found} if not found.partitionKeys else by_name(found, side.metastore.partitions(database, table, partitions))
    files: dict[str, dict[str, str]] = {}
    for name, part in parts.items():
        for status in side.storage.files(part.sd.location) if part.sd.location else ():
            files.setdefault(file_format(part.sd.inputFormat or ""), {})[status.uri] = name
    unread = sorted(files.keys() - _READERS.keys())
    if unread:
        raise BadRequest(f"rows of {database}.{table} cannot be read: Spark does not know {', '.join(unread)} by itself")
    return [Files(_READERS[kind], uris) for kind, uris in files.items()]


def read(spark: SparkSession, files: Files) -> DataFrame:
    """The rows of the files; columns of all of them together where their schemas differ."""
    return spark.read.format(files.reader).option("mergeSchema", "true").load(list(files.partitions))


def count_rows(
    spark: SparkSession, side: Source | Target, database: str, table: str, partitions: Collection[str] | None = None
) -> dict[str, int]:
    """Rows of each partition that has files, by its name; "" for a table without partitions. See :func:`table_files`."""
    counts: Counter[str] = Counter()
    for files in table_files(side, database, table, partitions):
        for row in read(spark, files).groupBy("_metadata.file_path").count().collect():
            counts[files.partition(row["file_path"])] += row["count"]
    return dict(counts)
