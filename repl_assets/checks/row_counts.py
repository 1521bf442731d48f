"""The check ``row_counts``: Spark counts as many rows in a replica as at the source."""

from __future__ import annotations

from typing import Any

from repl_assets.checks.examiner import Examiner
from repl_assets.checks.findings import Finding, Partitions
from repl_assets.checks.spark_rows import count_rows
from repl_assets.recording.metadata import markdown_table


def find_row_counts(examiner: Examiner, table: str, partitions: Partitions) -> Finding:
    """Rows of each partition, counted by Spark."""
    target, replica = examiner.policy.target_of(examiner.database), examiner.connection.target.within_filters(examiner.database)
    ours = count_rows(examiner.spark, examiner.connection.source, examiner.database, table, partitions)
    theirs = count_rows(examiner.spark, replica, target, table, partitions)
    differing = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
    metadata: dict[str, Any] = {"rows at source": sum(ours.values()), "rows at target": sum(theirs.values())}
    texts = (f"{name or 'the table'} has {theirs.get(name, 0):,} rows, {ours.get(name, 0):,} at the source" for name in differing)
    if differing:
        rows = ((name or "the table", ours.get(name, 0), theirs.get(name, 0)) for name in differing)
        metadata["differences"] = markdown_table(("partition", "rows at source", "rows at target"), rows, len(differing))
    return Finding(metadata, examiner.at_source(table, differing), tuple(texts))
