"""Carries out a segment of a plan: copies the files of all lanes together, and carries out each as soon as it has its files.

A lane is in the journal before its first change. A lane that fails is held; the others continue. Lanes that begin with
transactions commit these while their other files are being copied (:mod:`~hive_replication.load.apply.commit_pipeline`), and
those that only add partitions add them likewise (:mod:`~hive_replication.load.apply.addition_pipeline`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, partial
from threading import Event, Semaphore

from hive_replication.copy.tasks import Copier, CopyResult, CopyTask
from hive_replication.copy.while_held import Patient
from hive_replication.errors import LockLost, Unreachable
from hive_replication.load.apply.addition_pipeline import add_as_copied, adds_ahead, goes_ahead, without_added
from hive_replication.load.apply.change_tables import TableChanges
from hive_replication.load.apply.commit_pipeline import commit_as_copied
from hive_replication.load.apply.commit_places import DataKey
from hive_replication.load.apply.database import TargetDatabase
from hive_replication.load.apply.directory_access import DirectoryAccess
from hive_replication.load.apply.lane_placement import LanePlacement
from hive_replication.load.apply.lane_recorder import lane_records
from hive_replication.load.apply.lane_run import LaneRun, MissingFiles, where_they_are
from hive_replication.load.apply.placement import Placer
from hive_replication.load.apply.running_sums import Tally
from hive_replication.load.journal.journal_writer import JournalWriter
from hive_replication.load.plan.call_groups import at_once, groups
from hive_replication.load.plan.load_plan import LanePlan, Stop
from hive_replication.load.replica.target_boundary import TargetBoundary
from hive_replication.load.replica.target_view import KnownObjects
from hive_replication.load.report import Held
from hive_replication.logs import about
from hive_replication.parallel import Call, settle
from hive_replication.progress import Progress
from hive_replication.storage import TooLarge

_LOG = logging.getLogger(__name__)

#: Plans a lane again without the files that a later event supersedes, and with new places of those that a later one moves; None
#: if there is none. It is asked of files that cannot be found, and of those whose names others have on the target.
Replan = Callable[[LanePlan, list[MissingFiles]], LanePlan | None]


@dataclass(frozen=True)
class SegmentResult:
    """The result of the lanes of a segment.

    Args:
        held: the lanes that are held.
        collapsed: the plans that were carried out collapsed.
    """

    held: list[Held]
    collapsed: list[LanePlan]


class Executor:
    """Carries out plans in one target database.

    Args:
        replica: the target database.
        source: identity of the source.
        copier: copies files.
        progress: shows the copied files.
        tally: sums of the load.
        known: the target's objects before the lanes.
        journal: records what each lane is about to change; None if an undo could not go back to before it.
    """

    def __init__(
        self,
        replica: TargetDatabase,
        source: str,
        copier: Copier,
        progress: Progress,
        tally: Tally,
        known: KnownObjects,
        journal: JournalWriter | None = None,
    ) -> None:
        target = replica.target
        self._replica, self._known, self._journal = replica, known, journal
        kept = cache(replica.journal.kept)
        self._placer = Placer(target, replica.name, replica.location, kept, known, replica.taken)
        self._access = DirectoryAccess(target, replica.name, replica.location, tally.access)
        boundary = TargetBoundary(target, replica.name, replica.location)
        self._slots, self._failed = Semaphore(target.policy.parallelism.changes), Event()
        self._check = Patient(replica.check, self._failed.is_set)
        self._changes = TableChanges(target, replica.name, source, boundary, self._check)
        self._copier, self._progress, self._tally, self._threads = copier, progress, tally, target.threads

    def run(self, lanes: Iterable[LanePlan], replan: Replan) -> SegmentResult:
        """Carries out lanes.

        Args:
            lanes: their plans.
            replan: called if files of a lane cannot be found, or cannot be added.

        Raises:
            Unreachable: a metastore or storage does not answer; raised once no lane is running.
            LockLost: another load may run; likewise.
        """
        runs = [self._without_taken(run, replan) for run in self._threads.map(self._place, lanes)]
        began = time.monotonic()
        started: dict[LaneRun, Call[bool]] = {}
        try:
            with self._stop_all_on_failure(runs):
                self._copy(runs, started)
                done = {run for run, call in started.items() if call.result()}
                runs = [run if run in done else self._without_missing(self._single(run, replan), replan) for run in runs]
                self._tally.add_time("copy", began)
                began = time.monotonic()
                list(self._threads.unordered(self._finish, (run for run in runs if run not in done)))
        finally:
            settle(started.values())
        self._tally.add_time("apply", began)
        held = [held for run in runs if (held := run.held()) is not None]
        self._replica.taken.carried_out((one for run in runs for one in run.lane.operations), held=bool(held))
        return SegmentResult(held, [run.lane for run in runs if run.lane.uncollapsed])

    @contextmanager
    def _stop_all_on_failure(self, runs: list[LaneRun]) -> Generator[None]:
        """If the segment fails, no lane carries out another operation."""
        try:
            yield
        except BaseException:
            self._failed.set()
            raise
        finally:
            for run in runs:
                run.pending.close()

    def _place(self, lane: LanePlan) -> LaneRun:
        try:
            with self._slots:
                placed = where_they_are(self._placer.place(lane))
                self._access.prepare(placed)
            self._tally.found_changed(placed.changed)
            return LaneRun(lane, placed, lane.stop)
        except (Unreachable, LockLost):
            raise
        except Exception as error:  # noqa: BLE001 (it is told as the reason of the lane)
            return LaneRun(lane, LanePlacement(lane), Stop.of(lane.operations[0].evid, error))

    def _without_taken(self, run: LaneRun, replan: Replan) -> LaneRun:
        """The lane, of which nothing is carried out yet, without INSERTs that cannot be added and that later events supersede.

        The target has a file of the same name which the source had no more: what took it away is told by a later event alone.
        """
        while taken := run.taken:
            lane = run.lane.single if run.lane.uncollapsed else replan(run.lane, taken)
            if lane is None or lane.operations is run.lane.operations:
                break  # it fails there, and is held
            run = self._place(lane)
        return run

    def _single(self, run: LaneRun, replan: Replan) -> LaneRun:
        """Carries out a collapsed lane that failed one event at a time, up to the event that fails."""
        if not run.lane.uncollapsed or not run.stopped:
            return run
        self._log(run, "the collapsed lane failed and is carried out one event at a time")
        return self._restart(run.lane.single, replan)

    def _without_missing(self, run: LaneRun, replan: Replan) -> LaneRun:
        """The lane without the files that cannot be found, as long as later events supersede or move them."""
        added = set[tuple[str, str]]()

        def again(lane: LanePlan, missing: list[MissingFiles]) -> LanePlan | None:
            planned = replan(lane, missing)
            return planned and without_added(planned, added)

        while run.missing:
            added |= run.added
            if (lane := again(run.lane, run.missing)) is None:
                break
            self._log(run, "planned again as later events supersede or move its files")
            run = self._restart(lane, again)
        return run

    def _log(self, run: LaneRun, what: str) -> None:
        if (stop := run.stop) is not None:
            extra = about(self._replica.name, ", ".join(run.lane.names), stop.evid)
            _LOG.info("%s: %s", what, stop.reason, extra=extra)

    def _restart(self, lane: LanePlan, replan: Replan) -> LaneRun:
        run = self._without_taken(self._place(lane), replan)
        for _ in self._copied([run]):
            pass
        run.pending.close()
        return run

    def _copy(self, runs: list[LaneRun], started: dict[LaneRun, Call[bool]]) -> None:
        """Copies the files of lanes, and starts each lane whose files are complete; adds it to ``started``."""
        ready = (run for run in runs if not run.stopped and (run.pending.complete or goes_ahead(run)))
        started.update((run, self._threads.begin(self._carry_out, run)) for run in ready)
        for run in self._copied(runs):
            if self._failed.is_set():
                break  # the exception is raised where the lane is waited for
            if run not in started and not run.stopped and run.pending.complete:
                started[run] = self._threads.begin(self._carry_out, run)
        for run in runs:
            run.pending.close()

    def _copied(self, runs: list[LaneRun]) -> Generator[LaneRun]:
        """Copies the files of lanes; yields the lane of each copied file."""
        waiting: dict[CopyTask, list[tuple[LaneRun, DataKey]]] = {}  # a file of two objects is copied for each
        tasks: list[CopyTask] = []
        for run in runs:
            for key, task in run.placed.tasks:
                if run.is_due(run.lane.operations[key[0]]):
                    waiting.setdefault(task, []).append((run, key))
                    tasks.append(task)
            self._tally.copied(run.placed.present)
        answers = self._copier.copy(tasks)
        for answer in self._progress.count(answers, "files copied", len(tasks), lambda answer: getattr(answer, "size", 0)):
            run, key = waiting[answer.task].pop()
            if isinstance(answer, CopyResult):
                self._tally.copied([answer])
                run.pending.copied(key[0])
                yield run
            else:
                self._tally.copies.fail(answer)
                run.lacks(key, answer)

    def _carry_out(self, run: LaneRun) -> bool:
        """Carries out a lane; returns False if files are missing or one of its transactions failed."""
        try:
            self._record(run)

            def carry_out(number: int) -> bool:
                return run.is_due(run.lane.operations[number]) and self._carry_out_one(run, number)

            commit_as_copied(self._threads, run.due, run.pending, carry_out)
            if adds_ahead(run):
                add_as_copied(self._threads, groups(run.due), run.pending, partial(self._carry_out_group, run))
            if run.stopped or not run.pending.complete:
                return False
            self._carry_out_rest(run)
        except BaseException:
            self._failed.set()
            raise
        return True

    def _finish(self, run: LaneRun) -> None:
        """Carries out the rest of a lane, up to where it has to stop."""
        self._record(run)
        self._carry_out_rest(run)

    def _record(self, run: LaneRun) -> None:
        """Writes the lane's record to the journal, before its first change; without a journal the load fails as a whole."""
        due = run.due
        if self._journal is None or run.recorded or not due or self._failed.is_set():
            return
        records = lane_records(self._replica.target.storage, self._known, run.placed, due)
        while not run.recorded:
            try:
                record = next(records, None)
            except (Unreachable, LockLost):
                raise
            except Exception as error:  # noqa: BLE001 (likewise)
                run.failed(due[0], error)
                return
            try:
                if record:
                    self._journal.lane(record)
            except TooLarge as error:
                run.failed(due[0], error)
                return
            run.recorded = record is None

    def _carry_out_rest(self, run: LaneRun) -> None:
        """Carries out a lane group by group, and a group that fails one operation at a time, so that only the rest is held."""
        for together in at_once(run.due, groups(run.due, run.done)):
            if not all(list(self._threads.map(partial(self._carry_out_group, run), together))):
                return

    def _carry_out_group(self, run: LaneRun, numbers: range) -> bool:
        """Carries out a group, as far as it can be; returns whether that is all of it."""
        return (len(numbers) > 1 and self._carry_out_together(run, numbers)) or all(self._carry_out_one(run, n) for n in numbers)

    def _carry_out_together(self, run: LaneRun, numbers: range) -> bool:
        def failed(error: Exception) -> None:
            first = run.lane.operations[numbers.start]
            extra = about(self._replica.name, first.table, first.evid)
            _LOG.info("%d operations failed together and are carried out one at a time: %s", len(numbers), error, extra=extra)

        return self._carried_out(run, numbers, partial(self._changes.carry_out_together, run.placed, numbers), failed)

    def _carry_out_one(self, run: LaneRun, number: int) -> bool:
        change, failed = partial(self._changes.carry_out, run.placed, number), partial(run.failed, run.lane.operations[number])
        return self._carried_out(run, range(number, number + 1), change, failed)

    def _carried_out(self, run: LaneRun, numbers: range, change: Callable[[], None], failed: Callable[[Exception], None]) -> bool:
        """Makes a change while the lock is held and nothing has stopped the load; returns whether it was made."""
        try:
            with self._slots:
                if self._failed.is_set():
                    return False
                self._check()
                began = time.monotonic()
                change()
        except (Unreachable, LockLost):
            raise
        except Exception as error:  # noqa: BLE001 (likewise)
            failed(error)
            return False
        self._count(run, numbers, began)
        return True

    def _count(self, run: LaneRun, numbers: range, began: float) -> None:
        seconds = time.monotonic() - began
        run.carried_out(numbers)
        self._tally.carried_out(self._replica.name, run.lane.operations[numbers.start : numbers.stop], seconds)
