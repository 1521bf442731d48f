"""Kills one process of replication after the other at every point of its work, and looks at what is left of the replica."""

from __future__ import annotations

import json
import secrets
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from threading import Lock

from hive_replication.connect import Connection
from hive_replication.load.state import replica_state
from hive_replication.policy import Policy
from tests.crash.driver import Job, Outcome, run
from tests.crash.seams import Point, points_of
from tests.crash.states import differences, half_visible, read_state
from tests.crash.story import Chapter, Story

_ATTEMPTS = 4  # after the last strike


@dataclass
class Tally:
    """What was done, and what went wrong; safe to use from many threads."""

    kills: int = 0
    survived: int = 0
    lost: int = 0
    doubled: int = 0
    half_visible: int = 0
    problems: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self._lock = Lock()

    def add(
        self, where: str, *, kills: int, lost: Sequence[str] = (), doubled: Sequence[str] = (), half: Sequence[str] = ()
    ) -> None:
        """Adds the strikes of one job and what was found after them."""
        with self._lock:
            self.kills += kills
            self.survived += 0 if lost or doubled or half else kills
            self.lost += bool(lost)
            self.doubled += len(doubled)
            self.half_visible += len(half)
            for kind, found in (("lost", lost), ("doubled", doubled), ("half-visible", half)):
                self.problems += [f"{where}: {kind}: {one}" for one in found]

    def __str__(self) -> str:
        return (
            f"kills {self.kills} survived {self.survived} lost {self.lost} "
            f"doubled {self.doubled} half-visible {self.half_visible}"
        )


@dataclass
class Campaign:
    """Replicas of stories, made under fire.

    Args:
        connection: to source and target.
        folder: for what the processes write down.
        told: gets a line for each replica that is done.
    """

    connection: Connection
    folder: Path
    told: Callable[[str], None] = lambda _: None
    tally: Tally = field(default_factory=Tally)
    copied: int = 0

    def points(self, story: Story) -> list[list[Point]]:
        """The points of each chapter of a story, from a run in which nothing strikes.

        Raises:
            AssertionError: the replica is wrong even so.
        """
        replica = _Replica(self, story, f"{story.database}_plain")
        counts = [replica.load(chapter, []) for chapter in story.chapters]
        assert not self.tally.problems, self.tally.problems
        replica.drop()
        return [points_of(found) for found in counts]

    def strike(self, story: Story, plans: Sequence[Mapping[int, Sequence[Point]]], parallel: int) -> None:
        """Makes a replica for each plan: for each chapter the points at which its processes are struck, one after another."""
        with ThreadPoolExecutor(parallel, thread_name_prefix="replica") as pool:
            list(pool.map(lambda plan: self._make(story, plan), plans))

    def _make(self, story: Story, plan: Mapping[int, Sequence[Point]]) -> None:
        replica, before = _Replica(self, story, f"{story.database}_{secrets.token_hex(4)}"), len(self.tally.problems)
        for number, chapter in enumerate(story.chapters):
            replica.load(chapter, list(plan.get(number, ())))
        self.told(f"{self.tally}")
        if len(self.tally.problems) == before:
            replica.drop()


@dataclass
class _Replica:
    """A replica under its own name, made by processes that are struck."""

    campaign: Campaign
    story: Story
    name: str

    def __post_init__(self) -> None:
        policy = self.campaign.connection.target.policy
        own = {"external_root": f"{policy.external_root}/{self.name}", "databases": {self.story.database: self.name}}
        self.policy: Policy = policy.model_copy(update=own)
        self.log = self.campaign.folder / f"{self.name}.copies"

    def load(self, chapter: Chapter, points: list[Point]) -> dict[str, int]:
        """Loads a dump until it is done, struck at each point in turn; answers the moments of the last process."""
        job = Job("load", self.policy, self.story.database, self.name, chapter.dump.directory)
        where = f"{self.name} {chapter.dump.header.from_evid}-{chapter.dump.last_evid} struck at {' and '.join(map(str, points))}"
        strikes, half, outcome = 0, list[str](), Outcome(killed=False, fired=False, problem="never ran")
        for point in (*points, *[None] * _ATTEMPTS):
            outcome = run(job, point, self.log)
            strikes += outcome.fired
            if outcome.killed:
                half += half_visible([{}, *chapter.states], self._state()) if self._exists() else []
            elif not outcome.problem:
                break
        lost = [outcome.problem] if outcome.problem or outcome.killed else self._faults(chapter)
        self.campaign.tally.add(where, kills=strikes, lost=lost, doubled=self._doubled(), half=half)
        return outcome.counts or {}

    def drop(self) -> None:
        """Removes it with all its data."""
        target = self.campaign.connection.target
        database = target.metastore.database(self.name)
        if database is not None:
            target.metastore.drop_database(self.name, delete_data=False, cascade=True)
            target.storage.delete(database.locationUri, recursive=True)
        if self.policy.external_root:
            target.storage.delete(self.policy.external_root, recursive=True)

    def _exists(self) -> bool:
        return self.campaign.connection.target.metastore.database(self.name) is not None

    def _state(self) -> dict[str, object]:
        target = self.campaign.connection.target
        return read_state(target.metastore, target.storage, self.name)  # type: ignore[return-value]

    def _faults(self, chapter: Chapter) -> list[str]:
        state = replica_state(self.campaign.connection.target.metastore.database(self.name))
        found = differences(chapter.states[-1], self._state())
        if (state.applied, state.at, state.held) != (chapter.dump.last_evid, {}, {}):
            found.append(
                f"it stands at {state.applied}, {dict(state.at)}, {dict(state.held)} instead of {chapter.dump.last_evid}"
            )
        return found

    def _doubled(self) -> list[str]:
        """Files that came to a place twice for the same event; each is told of once."""
        lines = self.log.read_text().splitlines() if self.log.exists() else []
        self.log.write_text("".join(f"{line}\n" for line in dict.fromkeys(lines)))
        self.campaign.copied += len(lines)
        return [f"{json.loads(line)} was copied {times} times" for line, times in Counter(lines).items() if times > 1]


def single(points: Sequence[Sequence[Point]]) -> list[dict[int, list[Point]]]:
    """Plans in which each process is struck once: the first of each chapter in one replica, the second in the next."""
    longest = max(map(len, points))
    return [{number: [found[n]] for number, found in enumerate(points) if n < len(found)} for n in range(longest)]


def double(points: Sequence[Sequence[Point]], random: Random, number: int) -> Iterator[dict[int, list[Point]]]:
    """Plans with two random points in each chapter, one for the first attempt and one for the next."""
    for _ in range(number):
        yield {chapter: random.choices(found, k=2) for chapter, found in enumerate(points)}
