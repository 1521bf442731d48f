"""The objects of a table that both metastores have, a batch at a time: a table of a million partitions is never held whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from hive_replication.drift.findings import Scanned
from hive_replication.load.replica.state import object_id
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.partitions import named
from hive_replication.metastore.types import Table

#: Partitions that are looked at together.
BATCH = 10_000


@dataclass(frozen=True)
class Objects:
    """A partitioned table's partitions, or else the table.

    Args:
        source: the source's metastore.
        target: the target's.
        table: of the source.
        replica: of the target.
    """

    source: Metastore
    target: Metastore
    table: Table
    replica: Table

    def names(self) -> list[str]:
        """Those of the source; "" for the table itself."""
        if not self.table.partitionKeys:
            return [""]
        return self.source.partition_names(self.table.dbName, self.table.tableName)

    def of(self, names: Sequence[str]) -> dict[str, Scanned]:
        """Those of the named ones that both metastores have: a directory without a partition is no drift."""
        if not self.table.partitionKeys:
            return {"": Scanned(self.table.sd.location or "", self.replica.sd.location or "", object_id(self.replica))}
        found = self.source.partitions(self.table.dbName, self.table.tableName, names)
        ours = {name: part.sd.location for name, part in named(self.table, found) if part.sd.location}
        copies = self.target.partitions(self.replica.dbName, self.replica.tableName, list(ours))
        theirs = {name: (part.sd.location or "", object_id(part)) for name, part in named(self.replica, copies)}
        return {name: Scanned(location, *theirs[name]) for name, location in ours.items() if name in theirs}
