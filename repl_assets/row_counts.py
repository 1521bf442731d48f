"""Counting the rows of a table on both sides with Spark, which reads the files by their format, not through a metastore."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hive_replication.dump.source import Source
from hive_replication.errors import BadRequest
from hive_replication.load.target import Target
from hive_replication.policy import Policy
from repl_assets.catalog import file_format

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_READERS = {"parquet": "parquet", "orc": "orc", "text": "text"}  # what Spark reads without further packages


def spark_session(policy: Policy) -> SparkSession:
    """The session that copies use, too; it starts now if it has not."""
    from resources.spark_copier import SparkCopier

    spark = SparkCopier.from_settings(policy.spark)
    spark.spark_context()
    return spark.pyspark.spark_session


def count_rows(spark: SparkSession, side: Source | Target, database: str, table: str) -> int:
    """Rows of a table as its files hold them now.

    Raises:
        BadRequest: there is no such table, or its files are in a format that Spark does not read by itself.
    """
    found = side.metastore.table(database, table)
    if found is None:
        raise BadRequest(f"{side.metastore.uri} has no table {database}.{table}")
    partitions = side.metastore.partitions(database, table) if found.partitionKeys else [found]
    places: dict[str, list[str]] = {}
    for part in partitions:
        if part.sd.location and side.storage.files(part.sd.location):
            places.setdefault(file_format(part.sd.inputFormat or ""), []).append(part.sd.location)
    unread = sorted(places.keys() - _READERS.keys())
    if unread:
        raise BadRequest(f"rows of {database}.{table} cannot be counted: Spark does not read {', '.join(unread)} by itself")
    reader = spark.read.option("recursiveFileLookup", "true")
    return sum(reader.format(_READERS[kind]).load(paths).count() for kind, paths in places.items())
