"""Both sides of a database, as the checks that compare tables take them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from hive_replication.connect import Connection
from hive_replication.metastore.table_kinds import is_view
from hive_replication.policy import Policy

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class Examiner:
    """Both sides of a database; Spark starts when rows are compared first.

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
        """The session that copies use, too; it starts now if it has not."""
        from resources.spark import Spark

        return Spark.of(self.policy).session()

    def is_view(self, table: str) -> bool:
        """Whether the replica is a view."""
        found = self.connection.target.metastore.table(self.policy.target_of(self.database), table)
        return found is not None and is_view(found)

    def at_source(self, table: str, partitions: Iterable[str]) -> tuple[str, ...]:
        """What to repair: the whole table instead of a partition that the source does not have."""
        differing = [name for name in partitions if name]
        if not differing:
            return tuple(partitions)
        there = set(self.connection.source.metastore.partition_names(self.database, table))
        return tuple(dict.fromkeys(name if name in there else "" for name in differing))
