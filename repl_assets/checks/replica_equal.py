"""The check ``replica_equal``: files, partitions and schema of a table are as at the source: see ``verify/compare.py``."""

from __future__ import annotations

from typing import Any

from hive_replication.verify import compare_database
from repl_assets.checks.examiner import Examiner
from repl_assets.checks.findings import Finding, Partitions
from repl_assets.recording.metadata import markdown_table


def find_replica_equal(examiner: Examiner, table: str, partitions: Partitions) -> Finding:
    """Schema, parameters, partitions, each file by checksum."""
    source, target = examiner.connection.source, examiner.connection.target
    (found,) = compare_database(source, target, examiner.database, table=table, partitions=partitions)
    if found.differences and not found.repairs:  # it could not be compared
        return Finding(undecided="; ".join(found.differences))
    metadata: dict[str, Any] = {
        "partitions at source": found.partitions_source,
        "partitions at target": found.partitions_target,
        "files at source": found.files_source,
        "files at target": found.files_target,
        "files proven equal": found.files_proven,
        **({"compared by rows (compacted)": found.by_rows} if found.by_rows else {}),
        **({"kept as an external table by the target's metastore": True} if found.translated else {}),
    }
    if found.differences:
        rows = ([text] for text in found.differences)
        metadata["differences"] = markdown_table(("difference",), rows, len(found.differences))
    return Finding(metadata, found.repairs, found.differences)
