"""A scan of one table under way."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from math import inf

from hive_replication.drift.baselines import Baseline
from hive_replication.drift.findings import TableDrift
from hive_replication.drift.spared import Spared
from hive_replication.metastore.types import Table
from hive_replication.storage import Storage
from hive_replication.verify.listing_digest import is_being_written

_FRESH = 300.0  # seconds for which a table that is being written to is not looked at again


@dataclass
class TableScan:
    """What a scan of a table knows between two batches.

    Args:
        table: of the source.
        replica: of the target.
        spared: what snapshots spare.
        known: baselines of what was not looked at yet.
        kept: baselines of what was.
        changed: whether those differ from what they were.
        found: what was found.
    """

    table: Table
    replica: Table
    spared: Spared
    known: dict[str, Baseline]
    found: TableDrift
    kept: dict[str, Baseline] = field(default_factory=dict[str, Baseline])
    changed: bool = False
    _written: float = -inf

    def is_being_written(self, storage: Storage) -> bool:
        """Whether a job writes into the partitioned table; that none does is asked anew for each batch."""
        if time.monotonic() >= self._written + _FRESH:
            if not is_being_written(storage, self.table.sd.location or "", time.time()):
                return False
            self._written = time.monotonic()
        return True
