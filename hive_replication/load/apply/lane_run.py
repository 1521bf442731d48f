"""A running lane: its progress, the files that it waits for, and where it has to stop."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import takewhile
from threading import Lock

from hive_replication.copy.tasks import CopyFailure
from hive_replication.load.apply.commit_pipeline import PendingFiles
from hive_replication.load.apply.commit_places import DataKey
from hive_replication.load.apply.lane_placement import LanePlacement
from hive_replication.load.operations import kinds as op
from hive_replication.load.plan.load_plan import LanePlan, Stop
from hive_replication.load.report import Held

#: An operation, and the partition ("" for the table) whose files are neither at the source nor in cmroot.
MissingFiles = tuple[op.Operation, str]


@dataclass(eq=False)
class LaneRun:
    """A running lane.

    Args:
        lane: its plan.
        placed: the places of its data.
        stop: where it has to stop.

    Attributes:
        missing: operations and partitions whose files cannot be found.
        recorded: whether its record is in the journal.
        done: number of operations, from the first on, that are carried out.
        pending: the files that it waits for.
    """

    lane: LanePlan
    placed: LanePlacement
    stop: Stop | None
    missing: list[MissingFiles] = field(default_factory=list[MissingFiles])
    recorded: bool = False
    done: int = 0
    pending: PendingFiles = field(init=False)
    _carried: set[int] = field(default_factory=set[int])
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        operations = self.lane.operations
        self.pending = PendingFiles(number for (number, _), _ in self.placed.tasks if self.is_due(operations[number]))

    @property
    def due(self) -> list[op.Operation]:
        """The operations before the event at which the lane stops."""
        return list(takewhile(self.is_due, self.lane.operations))

    @property
    def stopped(self) -> bool:
        """Whether it has to stop earlier than planned."""
        return self.stop is not self.lane.stop

    def stop_at(self, evid: int, reason: str, *, refused: bool = False) -> None:
        """Stops the lane at an event, unless it stops earlier already."""
        with self._lock:
            if self.stop is None or evid < self.stop.evid:
                self.stop = Stop(evid, reason, refused)

    @property
    def taken(self) -> list[MissingFiles]:
        """Operations and partitions that add a file whose name another one has."""
        return [(self.lane.operations[number], name) for number, name in self.placed.taken]

    def lacks(self, key: DataKey, failure: CopyFailure) -> None:
        """Stops the lane at a file that could not be copied.

        Raises:
            Unreachable: a storage does not answer.
        """
        if failure.kind == "unreachable":
            raise failure.error
        if failure.kind == "gone":
            self.missing.append((self.lane.operations[key[0]], key[1]))
        self.stop_at(failure.task.evid, failure.reason, refused=failure.kind == "conflict")

    def failed(self, operation: op.Operation, error: Exception) -> None:
        """Stops the lane at an operation that failed."""
        stop = Stop.of(operation.evid, error)
        self.stop_at(stop.evid, stop.reason, refused=stop.refused)

    def is_due(self, operation: op.Operation) -> bool:
        """Whether an operation comes before the event at which the lane stops."""
        stop = self.stop
        return stop is None or operation.evid < stop.evid

    def carried_out(self, numbers: range) -> None:
        """Records operations that are carried out."""
        with self._lock:
            self._carried.update(numbers)
            while self.done in self._carried:
                self.done += 1

    @property
    def added(self) -> set[tuple[str, str]]:
        """Tables and names of the partitions that it has added."""
        with self._lock:
            carried = [self.lane.operations[number] for number in self._carried]
        return {(one.table, name) for one in carried if isinstance(one, op.AddPartitions) for name in one.partitions}

    def held(self) -> Held | None:
        """The held lane, standing before its first event that is not fully applied; None if it is not held."""
        stop, operations = self.stop, self.lane.operations
        if stop is None:
            return None
        first_evid = min([stop.evid, *(evid for operation in operations[self.done :] for evid in operation.evids)])
        passed = [evid for operation in operations for evid in operation.evids if evid < first_evid]
        after = max([self.lane.base, *passed])
        return Held(self.lane.names, after, stop.evid, stop.reason, stop.refused, table=stop.table)


def where_they_are(placed: LanePlacement) -> LanePlacement:
    """The same with files read where renames at the source have moved them since."""
    lane = placed.lane
    if lane.moves:
        now = (lane.file_now(task.file, lane.operations[number].evid, key) for (number, key), task in placed.tasks)
        placed.tasks = [(key, replace(task, file=file)) for (key, task), file in zip(placed.tasks, now, strict=True)]
    return placed
