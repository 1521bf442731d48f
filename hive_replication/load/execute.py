"""Carrying out a segment of a plan: places, then all copies, then the flips, lanes in parallel; a failing lane is held alone.

Lanes that begin with transactions end these while files are being copied (:mod:`~hive_replication.load.following`).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import takewhile
from threading import Lock

from hive_replication.copy.tasks import Copier, CopyFailure, CopyResult, CopyTask
from hive_replication.errors import Refused, ReplicationError, Unreachable
from hive_replication.load import operations as op
from hive_replication.load.before import lane_record
from hive_replication.load.flip import Flipper
from hive_replication.load.following import Arrivals, follow, follows
from hive_replication.load.groups import groups
from hive_replication.load.journal import Journal, JournalWriter
from hive_replication.load.journal_record import LaneRecord
from hive_replication.load.place import Key, Placed, Placer
from hive_replication.load.plan import LanePlan, Obstacle
from hive_replication.load.report import Held, Stranger
from hive_replication.load.target import Target
from hive_replication.progress import Progress

_LANES = 16


@dataclass
class Work:
    """What a load has done so far."""

    applied: Counter[str] = field(default_factory=Counter[str])
    copies: list[CopyResult] = field(default_factory=list[CopyResult])
    changed: list[Stranger] = field(default_factory=list[Stranger])
    operations: list[op.Operation] = field(default_factory=list[op.Operation])
    seconds: dict[str, float] = field(default_factory=dict[str, float])
    collapsed: list[LanePlan] = field(default_factory=list[LanePlan])

    def spend(self, phase: str, began: float) -> None:
        """Adds the time since ``began`` (monotonic) to a phase."""
        self.seconds[phase] = round(self.seconds.get(phase, 0) + time.monotonic() - began, 3)


#: An operation, and the partition ("" for the table) whose files are neither at the source nor in cmroot.
Gone = tuple[op.Operation, str]
#: Plans a lane anew without what a later event supersedes; None where nothing does.
Replan = Callable[[LanePlan, list[Gone]], LanePlan | None]


@dataclass(eq=False)
class _Run:
    """A lane under way; ``obstacle`` is where it has to stop, ``done`` how many of its first operations are carried out."""

    lane: LanePlan
    placed: Placed
    obstacle: Obstacle | None
    gone: list[Gone] = field(default_factory=list[Gone])
    done: int = 0
    arrivals: Arrivals = field(init=False)
    _carried: set[int] = field(default_factory=set[int])
    _lock: Lock = field(default_factory=Lock)

    def __post_init__(self) -> None:
        self.arrivals = Arrivals(number for (number, _), _ in self.placed.tasks)

    @property
    def due(self) -> list[op.Operation]:
        """The operations up to the obstacle."""
        return list(takewhile(self.goes_to, self.lane.operations))

    def stop(self, evid: int, reason: str, *, refused: bool = False) -> None:
        """Stops the lane at an event, or earlier where it stops already."""
        with self._lock:
            if self.obstacle is None or evid < self.obstacle.evid:
                self.obstacle = Obstacle(evid, reason, refused)

    def goes_to(self, operation: op.Operation) -> bool:
        """Whether an operation comes before the obstacle."""
        obstacle = self.obstacle
        return obstacle is None or operation.evid < obstacle.evid

    def carried(self, numbers: range) -> None:
        """Some operations are carried out."""
        with self._lock:
            self._carried.update(numbers)
            while self.done in self._carried:
                self.done += 1


class Executor:
    """Carries out plans in one target database.

    Args:
        target: the target side.
        database: its database.
        location: the database's directory.
        source: identity of the source.
        copier: copies files.
        check: raises where the load has lost its lock; called before each flip.
        progress: who is told.
        work: where what is done is added up.
        journal: gets what each lane is about to change; None where there is nothing to go back to.
    """

    def __init__(
        self,
        target: Target,
        database: str,
        location: str,
        source: str,
        copier: Copier,
        check: Callable[[], None],
        progress: Progress,
        work: Work,
        journal: JournalWriter | None = None,
    ) -> None:
        self._target = target
        self._database = database
        self._journal, self._writer = Journal(target.storage, location), journal
        self._placer = Placer(target, database, location, self._journal.kept)
        self._flipper = Flipper(target, database, source)
        self._copier, self._check, self._progress, self.work = copier, check, progress, work

    def run(self, lanes: Iterable[LanePlan], replan: Replan) -> list[Held]:
        """Carries out lanes; answers those that are held now.

        Args:
            lanes: their plans.
            replan: asked where files are gone.

        Raises:
            Unreachable: a metastore or storage does not answer: the window fails as a whole.
        """
        with ThreadPoolExecutor(_LANES, thread_name_prefix="lane") as pool:
            runs = list(pool.map(self._place, lanes))
            began = time.monotonic()
            ahead = [run for run in runs if follows(run.due)]
            self._record(pool, ahead)
            with self._following(pool, ahead):
                self._copy(runs)
            runs = [self._without_gone(self._single(run), replan) for run in runs]
            self.work.spend("copy", began)
            began = time.monotonic()
            self._record(pool, (run for run in runs if run not in ahead))
            list(pool.map(self._flip, runs))
            self.work.spend("apply", began)
        self.work.collapsed.extend(run.lane for run in runs if run.lane.single)
        return [_held(run, run.obstacle) for run in runs if run.obstacle is not None]

    def _place(self, lane: LanePlan) -> _Run:
        try:
            placed = self._placer.place(lane)
            self.work.changed.extend(placed.changed)
            return _Run(lane, placed, lane.obstacle)
        except Unreachable:
            raise
        except (ReplicationError, OSError) as error:  # OSError: a directory that may not be written, or went away
            first = lane.operations[0].evid
            return _Run(lane, Placed(lane), Obstacle(first, str(error), isinstance(error, Refused)))

    def _single(self, run: _Run) -> _Run:
        """A collapsed lane that fails is brought up to the failing event one event at a time."""
        if not run.lane.single or run.obstacle is run.lane.obstacle:
            return run
        run = self._place(replace(run.lane, operations=run.lane.single, single=()))
        self._copy([run])
        return run

    def _without_gone(self, run: _Run, replan: Replan) -> _Run:
        """The lane without the events whose files are gone, as long as later events supersede them."""
        while run.gone:
            again = replan(run.lane, run.gone)
            if again is None:
                break
            run = self._place(again)
            self._copy([run])
        return run

    def _copy(self, runs: list[_Run]) -> None:
        waiting: dict[str, tuple[_Run, Key]] = {}
        tasks: list[CopyTask] = []
        for run in runs:
            for key, task in run.placed.tasks:
                if run.goes_to(run.lane.operations[key[0]]):
                    waiting[task.target] = run, key
                    tasks.append(task)
            self.work.copies.extend(run.placed.present)
        answers = self._copier.copy(tasks)
        for answer in self._progress.count(answers, "files copied", len(tasks), lambda answer: getattr(answer, "size", 0)):
            run, key = waiting[answer.task.target]
            if isinstance(answer, CopyResult):
                self.work.copies.append(answer)
                run.arrivals.arrived(key[0])
            else:
                _fail(run, key, answer)

    @contextmanager
    def _following(self, pool: ThreadPoolExecutor, runs: list[_Run]) -> Generator[None]:
        """While files are copied, ends transactions of lanes as theirs arrive."""
        begun = [pool.submit(self._follow, run) for run in runs]
        try:
            yield
        finally:
            for run in runs:
                run.arrivals.end()
        for one in begun:
            one.result()

    def _follow(self, run: _Run) -> None:
        def carry_out(number: int) -> bool:
            return run.goes_to(run.lane.operations[number]) and self._alone(run, number)

        follow(run.due, run.arrivals, carry_out)

    def _record(self, pool: ThreadPoolExecutor, runs: Iterable[_Run]) -> None:
        """Writes down what lanes are about to change."""
        if self._writer is not None:
            self._writer.lanes(record for record in pool.map(self._before, runs) if record is not None)

    def _before(self, run: _Run) -> LaneRecord | None:
        """What a lane is about to change, for the journal; None where that is nothing."""
        try:
            return lane_record(self._target, self._database, run.placed, run.due) if run.due else None
        except Unreachable:
            raise
        except (ReplicationError, OSError) as error:
            run.stop(run.due[0].evid, str(error), refused=isinstance(error, Refused))
            return None

    def _flip(self, run: _Run) -> None:
        """Carries out a lane group by group; of a group that fails, one by one, so that only what comes after is held."""
        for numbers in groups(run.due, run.done):
            if len(numbers) > 1 and self._together(run, numbers):
                continue
            for number in numbers:
                if not self._alone(run, number):
                    return

    def _together(self, run: _Run, numbers: range) -> bool:
        try:
            self._check()
            self._flipper.flip_together(run.placed, numbers)
        except Unreachable:
            raise
        except (ReplicationError, OSError):
            return False
        self._count(run, numbers)
        return True

    def _alone(self, run: _Run, number: int) -> bool:
        try:
            self._check()
            self._flipper.flip(run.placed, number)
        except Unreachable:
            raise
        except (ReplicationError, OSError) as error:
            run.stop(run.lane.operations[number].evid, str(error), refused=isinstance(error, Refused))
            return False
        self._count(run, range(number, number + 1))
        return True

    def _count(self, run: _Run, numbers: range) -> None:
        operations = run.lane.operations[numbers.start : numbers.stop]
        run.carried(numbers)
        self.work.applied.update(operation.kind for operation in operations)
        self.work.operations.extend(operations)


def _fail(run: _Run, key: Key, failure: CopyFailure) -> None:
    if failure.kind == "unreachable":
        raise Unreachable(failure.reason)
    if failure.kind == "gone":
        run.gone.append((run.lane.operations[key[0]], key[1]))
    run.stop(failure.task.evid, failure.reason, refused=failure.kind == "conflict")


def _held(run: _Run, obstacle: Obstacle) -> Held:
    """Held before the first event of which anything is left to do."""
    operations = run.lane.operations
    first = min([obstacle.evid, *(evid for operation in operations[run.done :] for evid in operation.evids)])
    passed = [evid for operation in operations for evid in operation.evids if evid < first]
    return Held(run.lane.names, max([run.lane.base, *passed]), obstacle.evid, obstacle.reason, obstacle.refused)
