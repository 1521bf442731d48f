"""What is checked of a table's replica, apart from Dagster's runs: schema, files, rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import dagster as dg

from hive_replication.connect import Connection
from hive_replication.errors import BadRequest, ReplicationError
from hive_replication.policy import CheckName, Policy
from hive_replication.verify import compare_database, schema_differences
from repl_assets.keys import Names
from repl_assets.reporting import markdown_table
from repl_assets.row_counts import count_rows, spark_session
from repl_assets.row_diff import diff_rows

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

#: In a result's metadata: what a repair has to bring, partitions one a line; Hive escapes line ends in them.
REPAIR = "to repair"
WHOLE_TABLE = "the whole table"
_CONTROLS = {number: f"\\x{number:02x}" for number in (*range(32), 127)}  # Hive's separators, which browsers have no signs for
_MOST = 500  # partitions told one by one; more are repaired with their table

Partitions = tuple[str, ...] | None


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer of a check.

    Args:
        metadata: for its page.
        repairs: partitions that differ, "" for the table; empty where all is well.
        differences: sentences; the first are shown at once, Dagster shows tables after a click only.
        undecided: why there is no answer, or "".
        passed: whether all is well; where nothing is to be repaired, if not said otherwise.
    """

    metadata: Mapping[str, Any] = field(default_factory=dict[str, Any])
    repairs: tuple[str, ...] = ()
    differences: tuple[str, ...] = ()
    undecided: str = ""
    passed: bool = True

    def result(self, spec: dg.AssetCheckSpec, partitions: Partitions = None) -> dg.AssetCheckResult:
        """As Dagster takes it; one without an answer warns."""
        return dg.AssetCheckResult(asset_key=spec.asset_key, check_name=spec.name, **self._answer(partitions))

    def evaluation(self, place: Place, partitions: Partitions = None) -> dg.AssetCheckEvaluation:
        """The same as an event, for runs of other jobs."""
        key, answer = place.key, self._answer(partitions)
        return dg.AssetCheckEvaluation(asset_key=key.asset_key, check_name=key.name, partition=place.partition, **answer)

    def _answer(self, partitions: Partitions) -> dict[str, Any]:
        checked = {} if partitions is None else {"partitions checked": len(partitions)}
        return {
            "passed": self.passed and not self.repairs and not self.undecided,
            "severity": dg.AssetCheckSeverity.WARN if self.undecided else dg.AssetCheckSeverity.ERROR,
            "description": self.undecided or "; ".join(self.differences[:3]) or None,
            "metadata": {**checked, **self.metadata, **({REPAIR: _told(self.repairs)} if self.repairs else {})},
        }


def told(metadata: Mapping[str, Any]) -> Partitions:
    """Partitions that a failed result names for repair, none for the whole table; None where it names nothing."""
    if REPAIR not in metadata:
        return None
    text = str(metadata[REPAIR].value)
    return () if text == WHOLE_TABLE else tuple(text.splitlines())


def _told(repairs: tuple[str, ...]) -> str:
    return WHOLE_TABLE if "" in repairs or len(repairs) > _MOST else "\n".join(repairs)


@dataclass(frozen=True)
class Examiner:
    """Both sides of a database, and Spark once it is needed.

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
        """The session of the process."""
        return spark_session(self.policy)

    def is_view(self, table: str) -> bool:
        """Whether the replica is a view."""
        found = self.connection.target.metastore.table(self.policy.target_of(self.database), table)
        return found is not None and found.tableType == "VIRTUAL_VIEW"

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
            "kept as external table": found.translated,
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

    def _at_source(self, table: str, partitions: Iterable[str]) -> tuple[str, ...]:
        """What is to be repaired: a partition that the source does not have goes with its table."""
        differing = [name for name in partitions if name]
        if not differing:
            return tuple(partitions)
        there = set(self.connection.source.metastore.partition_names(self.database, table))
        return tuple(dict.fromkeys(name if name in there else "" for name in differing))


@dataclass(frozen=True, slots=True)
class TableCheck:
    """A kind of check.

    Args:
        name: as the policy names it.
        description: what holds when it passes.
        examine: answers it for a table, or for some of its partitions.
        spark: whether it reads rows, which views have none of.
    """

    name: CheckName
    description: str
    examine: Callable[[Examiner, str, Partitions], Finding]
    spark: bool = False

    def answer(self, examiner: Examiner, table: str, partitions: Partitions) -> Finding:
        """Examines; what cannot be answered is no failure of the others."""
        try:
            return self.examine(examiner, table, partitions)
        except BadRequest as error:
            return Finding(undecided=str(error))
        except Exception as error:
            if not self.spark or isinstance(error, ReplicationError):
                raise
            reason = next(iter(str(error).strip().splitlines()), type(error).__name__)
            return Finding(undecided=f"Spark cannot read the rows of both sides: {reason}")

    def answered(self, examiner: Examiner, table: str) -> Finding | None:
        """The answer about all of a table; None for rows of a view."""
        return None if self.spark and examiner.is_view(table) else self.answer(examiner, table, None)


@dataclass(frozen=True, slots=True)
class Place:
    """Where Dagster keeps the answers of a check about a table.

    Args:
        key: of the check.
        partition: of a database in overflow the table, which is a partition of the asset of all tables; else None.
    """

    key: dg.AssetCheckKey
    partition: str | None = None

    @classmethod
    def of(cls, names: Names, database: str, table: str, check: TableCheck) -> Place:
        """Of a table, by its name at the source."""
        asset, partition = names.shown(database, table)
        return cls(dg.AssetCheckKey(asset, check.name), partition)


TABLE_CHECKS = (
    TableCheck("schema_equal", "Columns, types, formats and parameters are as at the source now.", Examiner.schema_equal),
    TableCheck(
        "replica_equal",
        "Schema, parameters, partitions, and each file by checksum are as at the source now.",
        Examiner.replica_equal,
    ),
    TableCheck("row_counts", "Spark counts as many rows in the replica as at the source.", Examiner.row_counts, spark=True),
    TableCheck("row_diff", "Spark finds the same rows as at the source, by all columns.", Examiner.row_diff, spark=True),
)


def checks_of(policy: Policy) -> list[TableCheck]:
    """The checks of tables that the policy runs."""
    return [check for check in TABLE_CHECKS if check.name in policy.checks.run]
