"""Running sums of a load, so that neither operations nor copy results are kept in memory."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from heapq import nlargest
from itertools import chain
from threading import Lock

from hive_replication.copy.tasks import CopyResult
from hive_replication.load.apply.touched_tables import TouchedTables
from hive_replication.load.copied_files import Copies
from hive_replication.load.operations import kinds as op
from hive_replication.load.operations.conflict_resolutions import resolved
from hive_replication.load.report import Collapsed, SlowOperation, UnexpectedObject

_SLOWEST = 5  # of each kind, as Hive tells of each type of events (hive.repl.stats.events.count)


@dataclass
class Tally:
    """Sums of one load. Its lanes add to them from several threads.

    ``access`` has what could not be preserved of owners, groups, modes and ACLs: why, by object or "" for all. ``changing`` says
    whether objects may have been changed, also where none is added up yet.
    """

    changing: bool = False
    applied: Counter[str] = field(default_factory=Counter[str])
    copies: Copies = field(default_factory=Copies)
    touched: TouchedTables = field(default_factory=TouchedTables)
    unexpected: list[UnexpectedObject] = field(default_factory=list[UnexpectedObject])
    changed: dict[UnexpectedObject, None] = field(default_factory=dict[UnexpectedObject, None])
    access: dict[str, str] = field(default_factory=dict[str, str])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    slow: dict[str, list[SlowOperation]] = field(default_factory=dict[str, list[SlowOperation]])
    collapsed: Collapsed = field(default_factory=Collapsed)
    privileges: Mapping[str, int] = field(default_factory=dict[str, int])
    _lock: Lock = field(default_factory=Lock)

    def carried_out(self, database: str, operations: Sequence[op.Operation], seconds: float) -> None:
        """Adds operations of one table, carried out together in a target database, in their order; and the wall seconds."""
        last = operations[-1]
        timed = SlowOperation(last.kind, last.table, last.evid, len(operations), round(seconds, 3))
        with self._lock:
            self.slow[last.kind] = nlargest(_SLOWEST, (*self.slow.get(last.kind, ()), timed), key=lambda one: one.seconds)
            self.applied.update(operation.kind for operation in operations)
            self.touched.add(operations)
            self.unexpected.extend(resolved(operations, database))

    def slowest(self) -> tuple[SlowOperation, ...]:
        """The slowest operations of each kind, the slowest of all first."""
        return tuple(sorted(chain.from_iterable(self.slow.values()), key=lambda one: one.seconds, reverse=True))

    def copied(self, results: Iterable[CopyResult]) -> None:
        """Adds copied files."""
        for result in results:
            self.copies.add(result)

    def found_changed(self, replicas: Iterable[UnexpectedObject]) -> None:
        """Adds replicas that were changed on the target."""
        with self._lock:
            self.changed |= dict.fromkeys(replicas)

    def saved(self, collapsed: Collapsed) -> None:
        """Adds what collapsing saved."""
        known = self.collapsed
        size = -1 if -1 in (known.bytes, collapsed.bytes) else known.bytes + collapsed.bytes
        operations, files = known.operations + collapsed.operations, known.files + collapsed.files
        self.collapsed = Collapsed(known.events + collapsed.events, operations, files, size)

    def add_time(self, phase: str, began: float) -> None:
        """Adds the time since ``began`` (monotonic clock) to a phase."""
        self.seconds[phase] = round(self.seconds.get(phase, 0) + time.monotonic() - began, 3)
