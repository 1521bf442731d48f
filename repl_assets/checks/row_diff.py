"""The check ``row_diff``: rows of a table are compared with its replica's by a hash of all columns, with Spark; no key is needed.

Each partition's rows are added up first: their number and the sum of their hashes. Only where these differ are rows compared one
by one. A sample is chosen by hash, so that both sides choose the same rows.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Mapping, Set
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import reduce
from typing import TYPE_CHECKING, Any, cast

from hive_replication.dump.source import Source
from hive_replication.errors import BadRequest
from hive_replication.load.replica.target import Target
from hive_replication.metastore.table_kinds import is_transactional
from repl_assets.checks.examiner import Examiner
from repl_assets.checks.findings import Finding, Partitions
from repl_assets.checks.spark_rows import Files, add_rows, read, table_files, table_of
from repl_assets.recording.metadata import markdown_table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_SHOWN = 20  # differing rows
_LONGEST = 200  # characters of a shown row
_BUCKETS = 1_000_000
_CONTROLS = {number: f"\\x{number:02x}" for number in (*range(32), 127)}  # Hive's separators, which browsers do not show


@dataclass(frozen=True, slots=True)
class DifferentRow:
    """A row that one side has more often than the other.

    Args:
        partition: where, "" for a table without partitions.
        row: its columns as text.
        source, target: how often each side has it.
    """

    partition: str
    row: str
    source: int
    target: int


@dataclass(frozen=True, slots=True)
class RowDiff:
    """How the rows of a table and of its replica compare.

    Args:
        source, target: numbers of rows that were compared.
        partitions: partitions whose rows differ.
        only_source, only_target: numbers of rows in the first of them that the other side lacks.
        rows: some of these rows; none of transactional tables, whose rows are only added up.
        sample: share of the rows that was compared.
    """

    source: int
    target: int
    partitions: tuple[str, ...] = ()
    only_source: int = 0
    only_target: int = 0
    rows: tuple[DifferentRow, ...] = ()
    sample: float = 1.0


def find_row_diff(examiner: Examiner, table: str, partitions: Partitions) -> Finding:
    """The rows themselves, by a hash of all columns, all or a sample of them."""
    source, target = examiner.connection.source, examiner.connection.target
    found = diff_rows(examiner.spark, source, target, examiner.database, table, partitions, examiner.policy.checks.sample)
    metadata: dict[str, Any] = {
        "rows compared at source": found.source,
        "rows compared at target": found.target,
        "sample (%)": round(100 * found.sample, 4),
    }
    text = f"{found.only_source:,} rows are on the source only, {found.only_target:,} on the target only"
    if found.partitions and not found.rows:
        text = f"the rows of {', '.join(name or 'the table' for name in found.partitions[:_SHOWN])} differ"
    elif found.partitions:
        rows = [(row.partition, row.source, row.target, row.row.translate(_CONTROLS)) for row in found.rows]
        metadata |= {
            "partitions that differ": len(found.partitions),
            "rows at source only": found.only_source,
            "rows at target only": found.only_target,
            "rows that differ": markdown_table(("partition", "times at source", "times at target", "row"), rows, len(rows)),
        }
    return Finding(metadata, examiner.at_source(table, found.partitions), (text,) if found.partitions else ())


def diff_rows(
    spark: SparkSession,
    source: Source,
    target: Target,
    database: str,
    table: str,
    partitions: Collection[str] | None = None,
    sample: float = 1.0,
) -> RowDiff:
    """Compares the rows that the files of both sides hold now.

    Args:
        spark: the session.
        source: the source side.
        target: the target side.
        database: source name.
        table: its name.
        partitions: only these.
        sample: share of the rows to compare, above 0, at most 1; of a transactional table all are compared.

    Raises:
        BadRequest: see :func:`repl_assets.checks.spark_rows.table_files`, or one side's table alone is transactional.
    """
    sides = (source, database), (target.within_filters(database), target.policy.target_of(database))
    tables = [table_of(side, name, table) for side, name in sides]
    match sum(map(is_transactional, tables)):
        case 1:
            raise BadRequest(f"{table} is transactional on one side only")
        case 2:
            return _differing(
                *(add_rows(spark, side, name, of, partitions) for (side, name), of in zip(sides, tables, strict=True))
            )
        case _:
            pass
    files = [table_files(side, name, table, partitions) for side, name in sides]
    ours, theirs = (_side(spark, side, sample) for side in files)
    found = replace(_differing(ours.sums, theirs.sums), sample=sample)
    differing = found.partitions
    if not differing:
        return found
    first = set(differing[:_SHOWN])
    return _with_rows(
        found, *(_counted(spark, each, side, first, sample) for each, side in zip(files, (ours, theirs), strict=True))
    )


def _differing(ours: Mapping[str, tuple[int, int]], theirs: Mapping[str, tuple[int, int]]) -> RowDiff:
    """Which partitions differ, by numbers of rows and sums of hashes."""
    differing = sorted(name for name in {*ours, *theirs} if ours.get(name) != theirs.get(name))
    return RowDiff(*(sum(rows for rows, _ in side.values()) for side in (ours, theirs)), partitions=tuple(differing))


@dataclass(frozen=True, slots=True)
class _Side:
    """Partitions by their files as Spark names them; numbers of rows and sums of hashes by partition."""

    paths: dict[str, tuple[str, ...]] = field(default_factory=dict[str, tuple[str, ...]])
    sums: dict[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


def _side(spark: SparkSession, formats: Iterable[Files], sample: float) -> _Side:
    from pyspark.sql import functions

    side = _Side()
    total = functions.sum(functions.col("hash").cast("decimal(20,0)"))
    for files in formats:
        found = _rows(spark, files, sample).groupBy("file_path").agg(functions.count("*"), total).collect()
        for path, rows, hashes in cast("list[tuple[str, int, Decimal]]", found):
            side.paths[path] = files.partitions_of(path)
            for partition in side.paths[path]:
                before = side.sums.get(partition, (0, 0))
                side.sums[partition] = before[0] + rows, before[1] + int(hashes)
    return side


def _rows(spark: SparkSession, files: Files, sample: float) -> DataFrame:
    """``file_path``, ``row`` (JSON of all columns) and its ``hash``."""
    from pyspark.sql import functions

    found = read(spark, files)
    columns = (functions.col(f"`{name.replace('`', '``')}`") for name in sorted(found.columns))
    rows = found.select("_metadata.file_path", functions.to_json(functions.struct(*columns)).alias("row"))
    hashed = rows.withColumn("hash", functions.xxhash64("row"))
    chosen = functions.pmod(functions.col("hash"), functions.lit(_BUCKETS)) < round(sample * _BUCKETS)
    return hashed if sample >= 1 else hashed.where(chosen)


def _counted(spark: SparkSession, formats: Iterable[Files], side: _Side, partitions: Set[str], sample: float) -> DataFrame:
    """How often each row is in these partitions: ``partition``, ``row``, ``count``."""
    from pyspark.sql import DataFrame, functions

    known = [(path, one) for path, names in side.paths.items() for one in names if one in partitions]
    names = functions.broadcast(_frame(spark, known, "file_path string, partition string"))
    some = (Files(each.reader, {uri: of for uri, of in each.partitions.items() if partitions & {*of}}) for each in formats)
    frames = [
        _rows(spark, files, sample).join(names, "file_path").select("partition", "row") for files in some if files.partitions
    ]
    rows = reduce(DataFrame.unionByName, frames) if frames else _frame(spark, [], "partition string, row string")
    return rows.groupBy("partition", "row").count()


def _frame(spark: SparkSession, rows: list[tuple[str, str]], schema: str) -> DataFrame:
    return spark.createDataFrame(rows, schema)  # pyright: ignore[reportUnknownMemberType] (PySpark's type lacks those of pandas)


def _with_rows(found: RowDiff, ours: DataFrame, theirs: DataFrame) -> RowDiff:
    left, right = ours.withColumnRenamed("count", "source"), theirs.withColumnRenamed("count", "target")
    different = left.join(right, ["partition", "row"], "full_outer").fillna(0).where("source <> target").persist()
    totals = different.selectExpr("sum(greatest(source - target, 0))", "sum(greatest(target - source, 0))").collect()[0]
    shown = different.orderBy("partition", "row").limit(_SHOWN).collect()
    different.unpersist()
    rows = (DifferentRow(one["partition"], _text(json.loads(one["row"])), one["source"], one["target"]) for one in shown)
    return replace(found, only_source=totals[0] or 0, only_target=totals[1] or 0, rows=tuple(rows))


def _text(row: Mapping[str, Any]) -> str:
    text = ", ".join(f"{column}: {value}" for column, value in row.items())
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
