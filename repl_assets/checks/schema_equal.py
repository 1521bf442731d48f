"""The check ``schema_equal``: columns, types, formats and parameters of a table are as at the source."""

from __future__ import annotations

from hive_replication.verify import schema_differences
from repl_assets.checks.examiner import Examiner
from repl_assets.checks.findings import Finding, Partitions
from repl_assets.recording.metadata import markdown_table


def find_schema_equal(examiner: Examiner, table: str, partitions: Partitions) -> Finding:
    """Columns, types, formats and parameters."""
    found = list(schema_differences(examiner.connection.source, examiner.connection.target, examiner.database, table, partitions))
    rows = [(partition or "the table", text) for partition, text in found]
    metadata = {"differences": markdown_table(("object", "difference"), rows, len(rows))} if rows else {}
    return Finding(metadata, tuple(dict.fromkeys(partition for partition, _ in found)), tuple(text for _, text in found))
