"""Comparing a replica with its source for checks: schema, files, rows, and objects that only the target has."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

from hive_replication.connect import Connection
from hive_replication.load.replica.state import replica_state
from hive_replication.policy import Policy
from hive_replication.verify import compare_database, schema_differences, strays
from repl_assets.checks.findings import Finding, Partitions
from repl_assets.checks.held_tables import held_finding
from repl_assets.checks.row_counts import count_rows, spark_session
from repl_assets.checks.row_diff import diff_rows
from repl_assets.recording.metadata import markdown_table

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_CONTROLS = {number: f"\\x{number:02x}" for number in (*range(32), 127)}  # Hive's separators, which browsers do not show


@dataclass(frozen=True)
class Examiner:
    """Compares both sides of a database; Spark starts when rows are compared first.

    Args:
        connection: both sides.
        policy: the policy.
        database: source name.
    """

    connection: Connection
    policy: Policy
    database: str

    @cached_property
    def spark(self) -> SparkSession:
        """The Spark session of this process."""
        return spark_session(self.policy)

    def is_view(self, table: str) -> bool:
        """Whether the replica is a view."""
        found = self.connection.target.metastore.table(self.policy.target_of(self.database), table)
        return found is not None and found.tableType == "VIRTUAL_VIEW"

    def not_held(self, table: str, partitions: Partitions) -> Finding:  # noqa: ARG002 (a table is held as a whole)
        """Whether an event of the table failed, and why."""
        database = self.connection.target.metastore.database(self.policy.target_of(self.database))
        return held_finding(replica_state(database), table)

    def schema_equal(self, table: str, partitions: Partitions) -> Finding:
        """Columns, types, formats and parameters."""
        found = list(schema_differences(self.connection.source, self.connection.target, self.database, table, partitions))
        rows = [(partition or "the table", text) for partition, text in found]
        metadata = {"differences": markdown_table(("object", "difference"), rows, len(rows))} if rows else {}
        return Finding(metadata, tuple(dict.fromkeys(partition for partition, _ in found)), tuple(text for _, text in found))

    def replica_equal(self, table: str, partitions: Partitions) -> Finding:
        """Schema, parameters, partitions, each file by checksum."""
        source, target = self.connection.source, self.connection.target
        (found,) = compare_database(source, target, self.database, table=table, partitions=partitions)
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

    def row_counts(self, table: str, partitions: Partitions) -> Finding:
        """Rows of each partition, counted by Spark."""
        target = self.policy.target_of(self.database)
        ours = count_rows(self.spark, self.connection.source, self.database, table, partitions)
        theirs = count_rows(self.spark, self.connection.target, target, table, partitions)
        differing = sorted(name for name in ours.keys() | theirs.keys() if ours.get(name) != theirs.get(name))
        metadata: dict[str, Any] = {"rows at source": sum(ours.values()), "rows at target": sum(theirs.values())}
        texts = (
            f"{name or 'the table'} has {theirs.get(name, 0):,} rows, {ours.get(name, 0):,} at the source" for name in differing
        )
        if differing:
            rows = ((name or "the table", ours.get(name, 0), theirs.get(name, 0)) for name in differing)
            metadata["differences"] = markdown_table(("partition", "rows at source", "rows at target"), rows, len(differing))
        return Finding(metadata, self._at_source(table, differing), tuple(texts))

    def row_diff(self, table: str, partitions: Partitions) -> Finding:
        """The rows themselves, by a hash of all columns, all or a sample of them."""
        source, target = self.connection.source, self.connection.target
        sample = self.policy.checks.sample
        found = diff_rows(self.spark, source, target, self.database, table, partitions, sample)
        metadata: dict[str, Any] = {
            "rows compared at source": found.source,
            "rows compared at target": found.target,
            "sample (%)": round(100 * sample, 4),
        }
        if found.partitions:
            rows = [(row.partition, row.source, row.target, row.row.translate(_CONTROLS)) for row in found.rows]
            metadata |= {
                "partitions that differ": len(found.partitions),
                "rows at source only": found.only_source,
                "rows at target only": found.only_target,
                "rows that differ": markdown_table(("partition", "times at source", "times at target", "row"), rows, len(rows)),
            }
        text = f"{found.only_source:,} rows are on the source only, {found.only_target:,} on the target only"
        return Finding(metadata, self._at_source(table, found.partitions), (text,) if found.partitions else ())

    def no_strays(self) -> Finding:
        """Tables, partitions and directories that the source does not have. No repair removes them."""
        found = list(strays(self.connection.source, self.connection.target, self.database))
        rows = ((stray.kind, stray.name, stray.location) for stray in found)
        table = {"found": markdown_table(("kind", "name", "location"), rows, len(found))} if found else {}
        return Finding({"strays": len(found), **table}, passed=not found)

    def _at_source(self, table: str, partitions: Iterable[str]) -> tuple[str, ...]:
        """What to repair: the whole table instead of a partition that the source does not have."""
        differing = [name for name in partitions if name]
        if not differing:
            return tuple(partitions)
        there = set(self.connection.source.metastore.partition_names(self.database, table))
        return tuple(dict.fromkeys(name if name in there else "" for name in differing))
