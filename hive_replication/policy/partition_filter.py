"""Partition filters: which partitions of a table are replicated (pure).

A filter is a condition of Hive's ``get_partitions_by_filter``, and decides as Hive 4's does, but for the default partition: it is
as NULL in queries, so that nothing but ``=`` with its name holds for it. Numbers compare as numbers, all else as texts, which for
dates is the same as by date. Whether the columns are of these types, :meth:`PartitionFilter.why_unfit` tells of each table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache

from hive_replication.policy.partition_conditions import Condition


@dataclass(frozen=True, slots=True)
class PartitionFilter:
    """A filter as it stands in the policy, and what it says."""

    text: str
    condition: Condition = field(compare=False, repr=False)

    @classmethod
    @lru_cache(maxsize=512)
    def parse(cls, text: str) -> PartitionFilter:
        """Reads one.

        Raises:
            ValueError: it is no filter of Hive's metastore.
        """
        from hive_replication.policy.partition_filter_text import condition_of  # its parser takes a while to import

        return cls(text, condition_of(text))

    def includes(self, values: Mapping[str, str]) -> bool:
        """Whether a partition belongs to it.

        Args:
            values: by partition column.
        """
        return self.condition.includes(values)

    def why_unfit(self, types: Mapping[str, str]) -> str:
        """Why it does not fit a table whose partition columns have these types, as part of a sentence, or ""."""
        return self.condition.why_unfit(types)
