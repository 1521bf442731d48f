"""Kills processes of replication at every point of their work, and examines what is left of the replica."""

from __future__ import annotations

import json
import secrets
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from random import Random
from typing import Literal, TypeVar

from hive_replication.connect import Connection
from hive_replication.errors import BadRequest
from hive_replication.load.replica.state import replica_state, with_state
from hive_replication.load.undo.undo import release
from hive_replication.metastore.faults import NotFound
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import copy_of
from hive_replication.policy import Policy
from tests.crash.driver import Job, Outcome, run
from tests.crash.seams import Point, points_of
from tests.crash.states import Known, State, differences, half_visible, read_state, rebuilt
from tests.crash.story import Chapter, Story
from tests.crash.tally import Tally

T = TypeVar("T")
R = TypeVar("R")

ATTEMPTS = 4  # after the last strike
_LOOKS = 4
#: A step of making a replica: gets the points at which it is struck, and returns the moments of its last process.
Step = Callable[[Sequence[Point]], dict[str, int]]
#: For each step the points at which its processes are struck, one after another.
Plan = Mapping[int, Sequence[Point]]


@dataclass
class Campaign:
    """Makes replicas of stories while their processes are killed.

    Args:
        connection: to source and target.
        folder: for what the processes write down.
        progress: gets a line for each replica that is done.
        makes: the kind of its replicas.
    """

    connection: Connection
    folder: Path
    progress: Callable[[str], None] = lambda _: None
    tally: Tally = field(default_factory=Tally)
    makes: type[Replica] = field(default_factory=lambda: Replica)

    def points(self, story: Story) -> list[list[Point]]:
        """The points of each step of a replica of a story, from a run in which nothing strikes."""
        replica = self.makes(self, story, f"{story.database}_plain")
        counts = [step(()) for step in replica.steps()]
        if not replica.wrong:
            replica.drop()
        return [points_of(found) for found in counts]

    def strike(self, story: Story, plans: Sequence[Plan], parallel: int) -> None:
        """Makes a replica for each plan."""
        _together(parallel, partial(self._make, story), plans)

    def _make(self, story: Story, plan: Plan) -> None:
        replica = self.makes(self, story, f"{story.database}_{secrets.token_hex(4)}")
        replica.parts = any(len(points) > 1 for points in plan.values())
        with self.tally.going_on(f"{replica.name} struck at {plan}"):
            for number, step in enumerate(replica.steps()):
                step(plan.get(number, ()))
            if not replica.wrong:
                replica.drop()
        self.progress(f"{self.tally}")

    def strike_repairs(self, story: Story, random: Random, limit: int | None, parallel: int) -> None:
        """Kills the undo of a replica's last chapter, and where it is damaged its repair and its recovery, again and again."""
        does: dict[str, Callable[[Replica, Sequence[Point]], dict[str, int]]] = {
            "undo": Replica.undo,
            "repair": lambda replica, points: replica.mend("repair", points),
            "recover": lambda replica, points: replica.mend("recover", points),
        }
        replicas = [self._whole(story) for _ in range(parallel)]
        for what in story.repairs:  # one kind after another: an undo brings back what was damaged before a repair
            do = does[what]
            points = points_of(do(replicas[0], ()))
            random.shuffle(points)
            shares = [points[:limit][number::parallel] for number in range(parallel)]
            replicas = _together(parallel, partial(self._strike_one, what, do), list(zip(replicas, shares, strict=True)))
        self.progress(f"{self.tally}")
        for replica in replicas:
            if not replica.wrong:
                replica.drop()

    def _strike_one(
        self,
        what: str,
        do: Callable[[Replica, Sequence[Point]], dict[str, int]],
        share: tuple[Replica, Sequence[Point]],
    ) -> Replica:
        """Kills the repairs of a replica at some points; returns it, or another one where it is wrong."""
        replica, points = share
        for point in points:
            if replica.wrong:
                replica = self._whole(replica.story)  # what is wrong in one is not to be found again in the next
            with self.tally.going_on(f"{what} of {replica.name}"):
                do(replica, [point])
        return replica

    def _whole(self, story: Story) -> Replica:
        """A replica of all chapters that nothing strikes."""
        replica = Replica(self, story, f"{story.database}_{secrets.token_hex(4)}")
        for chapter in story.chapters:
            replica.load(chapter, ())
        return replica

    def strike_dumps(self, story: Story, random: Random, limit: int | None, parallel: int) -> None:
        """Kills dumps of the database and of its last window: what they leave is refused, the next one is complete."""
        last = story.chapters[-1]
        header, policy = last.dump.header, self.connection.target.policy.model_copy(update=dict(last.policy))
        for window in (None, (header.from_evid, header.to_evid)):
            job = Job("dump", policy, story.database, story.database, window=window, before=last.before)
            plain = run(job, None, self.folder / "dumps")
            points = points_of(plain.counts or {})
            random.shuffle(points)
            _together(parallel, partial(self._strike_dump, job, self._records(plain.directory)), points[:limit])
        self.progress(f"{self.tally}")

    def _strike_dump(self, job: Job, wanted: list[str], point: Point) -> None:
        """Kills a dump at a point, below a dump root of its own, and makes it again."""
        root = f"{job.policy.dump_root}/{secrets.token_hex(4)}"
        job = replace(job, policy=job.policy.model_copy(update={"dump_root": root}))
        struck, after = run(job, point, self.folder / "dumps"), run(job, None, self.folder / "dumps")
        there = {status.uri for status in self.connection.target.storage.ls(f"{root}/{job.source}")}
        left = [self._records(directory) for directory in there - {after.directory}]
        whole, found = [[], wanted], [] if after.problem else self._records(after.directory)
        if found and found != wanted:  # a metastore forgets aborted writes without locks once nothing older is open
            plain = replace(job, policy=job.policy.model_copy(update={"dump_root": f"{root}/again"}))
            wanted = self._records(run(plain, None, self.folder / "dumps").directory)
        other = "; ".join(sorted({*wanted} ^ {*found})) or "the same records in another order"
        lost = [after.problem or other] if found != wanted else []
        lost += [struck.problem] if struck.broken else []
        half = [f"a dump that lacks records: {records}" for records in left if records not in (*whole, wanted)]
        self.tally.add(f"{job.window} struck at {point}", kills=struck.fired, lost=lost, doubled=[], half=half)
        if not (lost or half):
            self.connection.target.storage.delete(root, recursive=True)

    def _records(self, directory: str, *, beside: bool = False) -> list[str]:
        """All records of a dump, with those beside it; none where it is refused as incomplete, or lies beside another one."""
        try:
            reader = self.connection.store.open(directory)
        except BadRequest:
            return []
        if reader.header.scope.table and not beside:
            return []
        joined = [self._records(one, beside=True) for one in reader.header.joined.values()]
        tables = list(reader.tables())
        parts = [part for table in tables if table.table.partitionKeys for part in reader.partitions(table.name)]
        events = reader.events() if reader.header.kind != "bootstrap" else ()
        return list(map(repr, (*tables, *parts, *events, *joined)))


@dataclass
class Replica:
    """A replica under its own name, made by processes that are struck.

    Attributes:
        wrong: whether anything was found to be; then it is kept to be looked at.
        parts: whether its windows are loaded event by event.
    """

    campaign: Campaign
    story: Story
    name: str

    def __post_init__(self) -> None:
        policy = self.campaign.connection.target.policy
        own = {"external_root": f"{policy.external_root}/{self.name}", "databases": {self.story.database: self.name}}
        self.policy: Policy = policy.model_copy(update=own)
        self.log = self.campaign.folder / f"{self.name}.copies"
        self._known: Known = {}
        self.wrong = self.parts = False

    def steps(self) -> Sequence[Step]:
        """What is done for it, one after another: its loads."""
        return [partial(self.load, chapter) for chapter in self.story.chapters]

    def load(self, chapter: Chapter, points: Sequence[Point]) -> dict[str, int]:
        """Loads a dump until it is done, struck at each point in turn; returns the moments of the last process."""
        header = chapter.dump.header
        past = [{}, *chapter.states] if header.kind == "bootstrap" else chapter.states
        policy = self.policy.model_copy(update=dict(chapter.policy))
        job = Job("load", policy, self.story.database, self.name, chapter.dump.directory, parts=self.parts)
        return self._do(job, f"{header.from_evid}-{header.to_evid}", points, past, chapter.dump.last_evid)

    def mend(self, kind: Literal["repair", "recover"], points: Sequence[Point]) -> dict[str, int]:
        """Damages files of the story's table, and has them found and repaired, struck at each point in turn."""
        storage, metastore = self.campaign.connection.target.storage, self.campaign.connection.target.metastore
        table = self.story.damaged
        found = metastore.table(self.name, table)
        assert found is not None
        parts = metastore.partitions(self.name, table) if found.partitionKeys else [found]
        first, *others = [status for part in parts for status in storage.files(part.sd.location)]
        storage.delete(first.uri)
        for status in others[:1]:
            storage.write(status.uri, b"broken\n")
        if kind == "recover":
            database = copy_of(metastore.database(self.name))
            assert database is not None
            state = replace(replica_state(database), applied_hash="another history")
            database.parameters = with_state(database.parameters, state)
            metastore.alter_database(self.name, database)
        end, new = self.story.chapters[-1].states[-1], is_transactional(found)
        past = [self._state(), *(rebuilt(end, table) if new else ()), end]
        self.log.unlink(missing_ok=True)  # a file that is gone again is copied again
        job = Job(kind, self.policy, self.story.database, self.name, table=table)
        # Each repair or recovery makes a transactional table anew (docs/acid.md), also the one after one that was killed.
        return self._do(job, kind, points, past, None, most=1 + len(points) if new else 1)

    def undo(self, points: Sequence[Point]) -> dict[str, int]:
        """Undoes the last chapter, struck at each point in turn, and loads it again."""
        *_, before, last = self.story.chapters
        evid, target = before.dump.last_evid, self.campaign.connection.target
        job = Job("undo", self.policy, self.story.database, self.name, window=(evid, evid))
        counts = self._do(job, f"undo to {evid}", points, last.states, None, wanted=last.states[0])
        release(target, self.name)
        self.log.unlink(missing_ok=True)  # what was taken back is copied again
        self.load(last, ())
        return counts

    def drop(self) -> None:
        """Deletes the replica with all its data."""
        target = self.campaign.connection.target
        database = target.metastore.database(self.name)
        if database is not None:
            target.metastore.drop_database(self.name, delete_data=False, cascade=True)
            target.storage.delete(database.locationUri, recursive=True)
        if self.policy.external_root:
            target.storage.delete(self.policy.external_root, recursive=True)

    def _do(
        self,
        job: Job,
        what: str,
        points: Sequence[Point],
        past: Sequence[State],
        evid: int | None,
        wanted: State | None = None,
        most: int = 1,
    ) -> dict[str, int]:
        strikes, half, broken, outcome = 0, list[str](), list[str](), Outcome(killed=False, fired=False, problem="never ran")
        for point in (*points, *[None] * ATTEMPTS):
            outcome = run(job, point, self.log)
            strikes += outcome.fired
            broken += [outcome.problem] if outcome.broken else []
            if outcome.killed:
                half += self.half(past)
                self._left_so(point, past)
            elif not outcome.problem:
                break
        lost = (
            [outcome.problem] if outcome.problem or outcome.killed else self._faults(past[-1] if wanted is None else wanted, evid)
        )
        lost = [*dict.fromkeys((*broken, *lost))]
        where = f"{self.name} {what} struck at {' and '.join(map(str, points)) or 'no point'}"
        doubled = self._doubled(most, evid, 1 + len(points))
        self.wrong |= bool(lost or doubled or half)
        self.campaign.tally.add(where, kills=strikes, lost=lost, doubled=doubled, half=half)
        return outcome.counts or {}

    def _left_so(self, point: Point | None, past: Sequence[State]) -> None:
        """Called with what a killed process left."""

    def half(self, past: Sequence[State]) -> list[str]:
        """What stays half visible; the servers may still carry out the last calls of the dead process."""
        found = ["the replica cannot be read"]
        for _ in range(_LOOKS):
            with suppress(NotFound):
                found = half_visible(past, self._state(renaming=True))
                if not found:
                    break
            time.sleep(0.5)
        return found

    def _state(self, *, renaming: bool = False) -> State:
        target = self.campaign.connection.target
        return read_state(target.metastore, target.storage, self.name, self._known, renaming=renaming)

    def _faults(self, wanted: State, evid: int | None) -> list[str]:
        state = replica_state(self.campaign.connection.target.metastore.database(self.name))
        found = differences(wanted, self._state())
        # A table that a window dumps whole stands at what the log ended with then, which may be after the window.
        behind = {table: at for table, at in state.at.items() if evid is not None and at < evid}
        if evid is not None and (state.applied, behind, state.held) != (evid, {}, {}):
            found.append(f"it stands at {state.applied}, {state.at}, {state.held} instead of {evid}")
        return found

    def _doubled(self, most: int, end: int | None, anew: int) -> list[str]:
        """Files that came to a place more often than that for the same event; each is reported once.

        Args:
            most: how often they may.
            end: last event of a window; None where it is none.
            anew: how often those of a transactional table may that the window makes anew from a later dump: that is a repair,
                of which the next one may copy again what a killed one has copied (docs/acid.md).
        """
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.write_text("".join(f"{line}\n" for line in dict.fromkeys(lines)))
        counts = Counter(lines).items()
        return [f"{line} was copied {times} times" for line, times in counts if times > (anew if _is_later(line, end) else most)]


def _is_later(line: str, end: int | None) -> bool:
    """Whether a copied file is one of a transactional table from a dump that is later than a window."""
    _, file, evid = json.loads(line)
    return end is not None and evid > end and any(f"/{kind}_" in file for kind in ("base", "delta", "delete_delta"))


def _together(parallel: int, do: Callable[[T], R], things: Sequence[T]) -> list[R]:
    with ThreadPoolExecutor(parallel, thread_name_prefix="strike") as pool:
        return list(pool.map(do, things))


def single(points: Sequence[Sequence[Point]]) -> list[Plan]:
    """Plans in which each process is struck once: the first of each step in one replica, the second in the next."""
    longest = max(map(len, points))
    return [{number: [found[n]] for number, found in enumerate(points) if n < len(found)} for n in range(longest)]


def double(points: Sequence[Sequence[Point]], random: Random, number: int) -> Iterator[Plan]:
    """Plans with two random points in each step, one for the first attempt and one for the next."""
    for _ in range(number):
        yield {chapter: random.choices(found, k=2) for chapter, found in enumerate(points)}
