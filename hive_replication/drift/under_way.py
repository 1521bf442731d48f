"""A scan of one table under way."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

from hive_replication.drift.baselines import Baseline
from hive_replication.drift.findings import UNREAD, Scanned, TableDrift, Unread
from hive_replication.drift.spared import Spared
from hive_replication.metastore.types import Table
from hive_replication.storage import Storage
from hive_replication.units import count
from hive_replication.verify.listing_digest import Observation, is_being_written

_FRESH = 300.0  # seconds for which a table that is being written to is not looked at again


@dataclass
class BatchScan:
    """A table, or partitions of it, that are looked at together.

    Args:
        objects: by partition name, "" for the table itself.
        digests: of the listings at the source.
        observed: the listings of those that differ from what was known.
        equal: new baselines.
        writing: those that a job seems to write to.
        unread: why others cannot be read.
        listings: directories listed.
    """

    objects: Mapping[str, Scanned]
    digests: dict[str, str] = field(default_factory=dict[str, str])
    observed: dict[str, Observation] = field(default_factory=dict[str, Observation])
    equal: dict[str, Baseline] = field(default_factory=dict[str, Baseline])
    writing: set[str] = field(default_factory=set[str])
    unread: dict[str, Unread] = field(default_factory=dict[str, Unread])
    listings: int = 0

    def leave(self, name: str, why: Unread) -> None:
        """Leaves out an object that cannot be read."""
        self.unread[name] = why
        self.observed.pop(name, None)
        self.digests.pop(name, None)


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
        unreadable: objects that cannot be read.
    """

    table: Table
    replica: Table
    spared: Spared
    known: dict[str, Baseline]
    found: TableDrift
    kept: dict[str, Baseline] = field(default_factory=dict[str, Baseline])
    unreadable: dict[str, Unread] = field(default_factory=dict[str, Unread])
    changed: bool = False
    _written: float = -inf

    def is_being_written(self, storage: Storage) -> bool:
        """Whether a job writes into the partitioned table; that none does is asked anew for each batch."""
        if time.monotonic() >= self._written + _FRESH:
            if not is_being_written(storage, self.table.sd.location or "", time.time()):
                return False
            self._written = time.monotonic()
        return True

    def unread(self) -> str:
        """Which objects cannot be read, and why the first one cannot; "" where all can."""
        if not self.unreadable:
            return ""
        name, others = min(self.unreadable), len(self.unreadable) - 1
        text = f"{name}: {self.unreadable[name].why}" if name else self.unreadable[name].why
        more = f", and {count(others, 'other partition')}" if others else ""
        return f"{UNREAD}{text}{more}"
