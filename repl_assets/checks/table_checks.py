"""The checks of tables: a new one is a module of its name, a line in ``TABLE_CHECKS`` and a ``CheckName`` of the policy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from hive_replication.errors import BadRequest, ReplicationError
from hive_replication.logs import reason
from hive_replication.policy import Policy
from hive_replication.policy.checks import CheckName
from repl_assets.checks.examiner import Examiner
from repl_assets.checks.findings import Finding, Partitions
from repl_assets.checks.not_held import find_not_held
from repl_assets.checks.replica_equal import find_replica_equal
from repl_assets.checks.row_counts import find_row_counts
from repl_assets.checks.row_diff import find_row_diff
from repl_assets.checks.schema_equal import find_schema_equal
from repl_assets.checks.spark_rows import UnreadFormat


@dataclass(frozen=True, slots=True)
class TableCheck:
    """A kind of check of tables.

    Args:
        name: its name in the policy.
        description: what holds when it passes.
        examine: compares a table, or some of its partitions.
        spark: whether it reads rows with Spark; views have none.
    """

    name: CheckName
    description: str
    examine: Callable[[Examiner, str, Partitions], Finding]
    spark: bool = False

    def find(self, examiner: Examiner, table: str, partitions: Partitions) -> Finding:
        """Compares a table or partitions; if that is impossible the finding says why, so that other checks still run."""
        try:
            return self.examine(examiner, table, partitions)
        except BadRequest as error:
            return Finding(undecided=str(error), never=isinstance(error, UnreadFormat))
        except Exception as error:
            if not self.spark or isinstance(error, ReplicationError):
                raise
            return Finding(undecided=f"Spark cannot read the rows of both sides: {reason(error)}")

    def find_in_table(self, examiner: Examiner, table: str) -> Finding | None:
        """Compares a whole table; None for the rows of a view."""
        return None if self.spark and examiner.is_view(table) else self.find(examiner, table, None)


TABLE_CHECKS = (
    TableCheck("not_held", "All events that the replica has passed are applied to the table: none failed.", find_not_held),
    TableCheck("schema_equal", "Columns, types, formats and parameters are as at the source now.", find_schema_equal),
    TableCheck(
        "replica_equal",
        "Schema, parameters, partitions, and each file by checksum are as at the source now.",
        find_replica_equal,
    ),
    TableCheck("row_counts", "Spark counts as many rows in the replica as at the source.", find_row_counts, spark=True),
    TableCheck("row_diff", "Spark finds the same rows as at the source, by all columns.", find_row_diff, spark=True),
)


def enabled_checks(policy: Policy) -> list[TableCheck]:
    """The checks of tables that the policy enables; none of rows where it replicates no data."""
    return [check for check in TABLE_CHECKS if check.name in policy.checks.run and not (check.spark and policy.metadata_only)]
