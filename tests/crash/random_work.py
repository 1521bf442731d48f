"""Random work on a source by several writers at once, replicated by processes that are killed.

One example: a fresh database, writers, and a loader that dumps and loads windows, repeats and overlaps them, repairs tables, and
is killed at random points of all that. Then the writers stop, the rest is replicated, and source and target must be equal. The
seed is printed; the order in which the writers come to their turns is the machine's.
"""

from __future__ import annotations

import argparse
import secrets
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from random import Random

from hive_replication.connect import Connection
from hive_replication.load.replica.state import ReplicaState, replica_state
from resources.embedded.hive import HiveDriver
from tests.crash.__main__ import servers
from tests.crash.driver import Job, Outcome, run
from tests.crash.seams import Point
from tests.crash.states import differences, read_state
from tests.crash.writers import Town, Writer

_LEVEL = 10  # windows after the writers' end until all is level
#: Moments seen so far in each kind of process: where the next may be struck.
_SEEN: dict[str, set[str]] = {}


@dataclass
class Example:
    """One database and its replica.

    Args:
        connection: to source and target.
        hive: on the source.
        seed: of everything that is chosen.
        log: gets a line for each operation and each process.
    """

    connection: Connection
    hive: HiveDriver
    seed: str
    log: Callable[[str], None]
    done: Counter[str] = field(default_factory=Counter[str])
    _dumps: list[str] = field(default_factory=list[str])
    _broken: list[str] = field(default_factory=list[str])

    def __post_init__(self) -> None:
        self._random = Random(self.seed)
        self.database = f"random{secrets.token_hex(4)}"
        policy = self.connection.target.policy
        self._policy = policy.model_copy(update={"external_root": f"{policy.external_root}/{self.database}"})
        self._copies = Path(tempfile.gettempdir(), f"{self.database}.copies")

    def run(self, seconds: float, writers: int) -> list[str]:
        """Works for some seconds; returns what is wrong at the end."""
        self.hive.execute(f"CREATE DATABASE {self.database}", f"ALTER DATABASE {self.database} SET OWNER USER hive")
        town = Town(self.connection, self.hive, self.database, self.log)
        threads = [Writer(town, f"{self.seed}-{n}", pause=0.3) for n in range(writers)]
        for thread in threads:
            thread.start()
        until = time.monotonic() + seconds
        wrong: list[str] = []
        while time.monotonic() < until and not wrong and all(thread.is_alive() for thread in threads):
            wrong = self._step() or self._broken
        for thread in threads:
            thread.finish()
        self.done["operations"] = town.operations
        wrong = wrong or self._level() or self._broken
        self._copies.unlink(missing_ok=True)
        if not wrong:
            self._drop()
        return wrong

    def _step(self) -> list[str]:
        state = self._state()
        if state.applied is None:
            return self._bootstrap()
        choice = self._random.random()
        if choice < 0.15:
            table = self._random.choice([*self.connection.source.metastore.table_names(self.database), "t0"])
            self._process(Job("repair", self._policy, self.database, self.database, table=table), strikes=1)
        elif choice < 0.3 and self._dumps:
            self._process(self._load(self._random.choice(self._dumps[-4:])), strikes=1)
        else:
            self._window(state, overlap=choice < 0.5)
        return []

    def _bootstrap(self) -> list[str]:
        outcome = self._process(Job("dump", self._policy, self.database, self.database), strikes=1)
        return [outcome.problem] if not self._try(outcome) else []

    def _window(self, state: ReplicaState, *, overlap: bool, strikes: int = 2) -> bool:
        """Dumps and loads the events since the replica's state, or since an earlier state."""
        begin, end = state.last_id or 0, self.connection.source.metastore.current_event_id()
        if overlap and self._dumps:
            begin = min(begin, int(self._random.choice(self._dumps).split(" ")[0]))
        window = (begin, end)
        outcome = self._process(Job("dump", self._policy, self.database, self.database, window=window), strikes=min(strikes, 1))
        return self._try(outcome, begin, strikes)

    def _try(self, dumped: Outcome, begin: int = 0, strikes: int = 2) -> bool:
        """Loads a dump, sometimes twice; returns whether there was one."""
        if not dumped.directory:
            return False
        if begin:
            self._dumps.append(f"{begin} {dumped.directory}")
        for _ in range(self._random.choice([1, 1, 2])):
            self._process(self._load(f"{begin} {dumped.directory}"), strikes=strikes)
        return True

    def _load(self, dump: str) -> Job:
        return Job(
            "load", self._policy, self.database, self.database, directory=dump.split(" ")[1], parts=self._random.random() < 0.5
        )

    def _process(self, job: Job, strikes: int) -> Outcome:
        """Runs a job until it ends by itself, struck up to so many times before."""
        seen = _SEEN.setdefault(job.kind, set())
        while True:
            point = (
                Point(self._random.choice(sorted(seen)), self._random.choice([1, 1, 1, 2, 4])) if seen and strikes > 0 else None
            )
            strikes -= 1
            outcome = run(job, point, self._copies)
            self.done["processes"] += 1
            self.done["strikes"] += outcome.fired
            self.log(
                f"{job.kind} {job.directory or job.table or job.window}: {outcome.problem or outcome.directory or outcome.killed}"
            )
            if outcome.broken:
                self._broken.append(f"{job.kind} struck at {point}: {outcome.problem}")
            if not outcome.killed:
                seen.update(outcome.counts or {})
                self.done["held or refused"] += bool(outcome.problem)
                return outcome

    def _level(self) -> list[str]:
        """Replicates what is left, undisturbed, and compares."""
        problem, end = "no replica", self.connection.source.metastore.current_event_id()
        for _ in range(_LEVEL):
            state = self._state()
            if state.applied is None:
                problem = "; ".join(self._bootstrap())
            elif state.last_id == state.applied and not state.held and state.applied >= end:
                return self._differences()
            elif not self._window(state, overlap=False, strikes=0):
                problem = "the window could not be dumped"
        return [problem, f"the replica does not come to the end: {self._state()}", *self._differences()]

    def _differences(self) -> list[str]:
        source, target = self.connection.source, self.connection.target
        wanted = read_state(source.metastore, source.storage, self.database)
        return differences(wanted, read_state(target.metastore, target.storage, self.database))

    def _state(self) -> ReplicaState:
        return replica_state(self.connection.target.metastore.database(self.database))

    def _drop(self) -> None:
        for metastore, storage in (
            (self.connection.target.metastore, self.connection.target.storage),
            (self.connection.source.metastore, self.connection.source.storage),
        ):
            database = metastore.database(self.database)
            if database is not None:
                database.parameters = {}
                metastore.alter_database(self.database, database)
                metastore.drop_database(self.database, delete_data=False, cascade=True)
                storage.delete(database.locationUri, recursive=True)


def work(
    connection: Connection, hive: HiveDriver, seed: int, seconds: float, example: float, log: Path
) -> tuple[Counter[str], list[str]]:
    """Runs examples until the time is over; returns what was done, and what is wrong in the first example that failed."""
    done, until = Counter[str](), time.monotonic() + seconds
    with log.open("a") as file:
        while time.monotonic() < until or not done:
            one = Example(connection, hive, f"{seed}-{done['examples']}", lambda line: print(line, file=file, flush=True))
            wrong = one.run(example, writers=2 + done["examples"] % 2)
            done.update({"examples": 1, **one.done})
            print(f"seed {one.seed} {one.database}: {dict(one.done)}{'' if wrong else ': equal'}", flush=True)
            if wrong:
                return done, [f"seed {one.seed}, database {one.database}, log {log}", *wrong]
    return done, []


def main() -> int:
    """Runs examples and prints the results."""
    parser = argparse.ArgumentParser(prog="python -m tests.crash.workload", description=__doc__)
    parser.add_argument("--minutes", type=float, default=20)
    parser.add_argument("--example", type=float, default=60, help="seconds of work on one database")
    parser.add_argument("--seed", type=int, default=secrets.randbelow(10**6))
    parser.add_argument("--log", type=Path, default=Path(tempfile.gettempdir(), f"workload-{secrets.token_hex(4)}.log"))
    args = parser.parse_args()
    print(f"seed {args.seed}, log {args.log}", flush=True)
    with servers() as (connection, _, hive):
        done, wrong = work(connection, hive, args.seed, args.minutes * 60, args.example, args.log)
    for line in wrong:
        print(line)
    print(f"{dict(done)} {'NOT EQUAL' if wrong else 'source and target equal'}")
    return 1 if wrong else 0
