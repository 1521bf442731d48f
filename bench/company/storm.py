"""``python -m bench.company.storm``: a storm of events at a simulated source, replicated by Dagster while it tells the lag."""

from __future__ import annotations

import argparse
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import dagster as dg
import psutil

from bench.company.formula import Slice
from bench.company.measure import connected
from bench.company.runs import a_slice
from bench.company.servers import Side, side
from bench.company.source_metastore import NEWEST
from bench.report import machine
from hive_replication.connect import Connection
from hive_replication.load.replica.state import replica_state
from repl_assets.catalog.keys import Names
from tests.dagster_dev import dagster_dev, wait_for

_EACH = 5.0  # seconds between two looks
_LINE = 60.0  # and between two lines
_ROW = "{:>7} {:>12} {:>12} {:>12} {:>20} {:>10} {:>11}"


@dataclass
class Storm:
    """Events that come at a rate, a partition each.

    Args:
        source: where.
        of: to which database.
        events: how many, the same number to each of its tables.
        rate: a second.
    """

    source: Side
    of: Slice
    events: int
    rate: int
    _came: list[tuple[float, int]] = field(default_factory=lambda: [(0.0, 0)])

    def blow(self) -> float:
        """Lets them come; returns how many seconds that took."""
        began = time.time()
        while self._came[-1][1] < self.events:
            due = min(self.events, int((time.time() - began) * self.rate)) // self.of.tables * self.of.tables
            self.source.grow(self.of.name, due)
            self._came.append((time.time(), due))
            time.sleep(0.5)
        return self._came[-1][0] - began

    def came(self, until: float) -> int:
        """How many had come at a time, seconds since the epoch."""
        return next(number for at, number in reversed(self._came) if at <= until)

    def since(self, evid: int) -> float:
        """When an event had come."""
        return next(at for at, number in self._came if number >= evid - NEWEST)


@dataclass(frozen=True, slots=True)
class Told:
    """A lag as Dagster has it on the database's page.

    Args:
        time: when it was told, seconds since the epoch.
        applied: the replica's event id.
        newest: the source's.
        waiting: events.
        behind: seconds.
        least: whether it says that there may be more.
    """

    time: float
    applied: int
    newest: int
    waiting: int
    behind: float
    least: bool

    @classmethod
    def of(cls, record: dg.EventLogRecord) -> Told | None:
        """That of an observation; None of one without figures."""
        observed = record.event_log_entry.asset_observation
        found = {name: value.value for name, value in observed.metadata.items()} if observed else {}
        if "events waiting" not in found:
            return None
        numbers = (found[name] for name in ("applied event id", "source event id", "events waiting", "behind (s)"))
        return cls(record.timestamp, *numbers, "so far" in found)  # type: ignore[arg-type]

    def wrong(self, storm: Storm, oldest: float) -> str:
        """What is not true of it, or "".

        Args:
            storm: what there was to tell.
            oldest: seconds that its figures may have been old by then.
        """
        waiting = self.newest - self.applied
        if self.waiting > waiting or (self.waiting < waiting and not self.least):
            return f"{self.waiting:,} events are said to wait instead of {waiting:,}"
        if not storm.came(self.time - oldest) <= self.newest - NEWEST <= storm.came(self.time):
            return f"event {self.newest} is said to be the newest; then came {NEWEST + storm.came(self.time)}"
        behind = self.time - storm.since(self.applied + 1) if waiting else 0.0
        if not -2 <= behind - self.behind <= oldest:
            return f"{self.behind:.0f} s are told instead of {behind:.0f}"
        return ""


def run(of: Slice, events: int, rate: int, oldest: float) -> None:
    """Replicates a database, then the storm.

    Raises:
        RuntimeError: what was told was not so, or the replica is not what the formula says.
    """
    with side("source") as source, side("target", of.files) as target, tempfile.TemporaryDirectory() as folder:
        sides = connected(source, target, of, Path(folder) / "dumps")
        policy = sides.source.policy
        with dagster_dev(policy, Path(folder)) as dagster, dg.DagsterInstance.from_config(str(dagster.home)) as instance:
            wait_for("the replica is made", lambda: _applied(sides, of) == NEWEST, seconds=3600)
            storm = Storm(source, of, events, rate)
            with ThreadPoolExecutor(1) as threads:
                watch = _Watch(
                    sides, storm, instance, Names.of(policy).database(of.name, "load"), {source.pid, target.pid}, oldest
                )
                watch.until_caught_up(threads.submit(storm.blow))
        metastore = sides.target.metastore
        partitions = sum(metastore.partition_count(of.name, name) for name in metastore.table_names(of.name))
        if partitions != of.objects + events or (of.files and target.complete(of.name) != partitions):
            raise RuntimeError(f"the replica has {partitions} partitions instead of {of.objects + events}")


@dataclass
class _Watch:
    sides: Connection
    storm: Storm
    instance: dg.DagsterInstance
    asset: dg.AssetKey
    servers: set[int]
    oldest: float
    memory: int = 0
    peak: int = 0

    def until_caught_up(self, blowing: Future[float]) -> None:
        """Looks at the replica and at what is told of it, and prints both, until it has all events and Dagster says so.

        Raises:
            RuntimeError: what was told was not so.
        """
        began, shown, last, wrong = time.time(), 0.0, None, list[str]()
        print(_ROW.format("minute", "events came", "applied", "waiting", "told", "behind, s", "memory, MB"))
        while not (blowing.done() and last and last.applied == NEWEST + self.storm.events and not last.waiting):
            time.sleep(_EACH)
            now = time.time()
            came, applied = self.storm.came(now), _applied(self.sides, self.storm.of) - NEWEST
            self.peak, self.memory = max(self.peak, came - applied), max(self.memory, *self._memory())
            told = list(self._told(after=last.time if last else began))
            wrong += filter(None, (one.wrong(self.storm, self.oldest) for one in told))
            last = told[-1] if told else last
            if now - shown >= _LINE:
                shown = now
                figures = (f"{one:,}" for one in (came, applied, came - applied))
                said = (f"{'at least ' if last.least else ''}{last.waiting:,}", f"{last.behind:,.0f}") if last else ("", "")
                print(_ROW.format(f"{(now - began) / 60:.0f}", *figures, *said, f"{self.memory / 2**20:.0f}"), flush=True)
        took = time.time() - began
        print(
            f"{self.storm.events:,} events in {blowing.result() / 60:.1f} minutes, caught up with, and told so,"
            f" {took / 60:.1f} minutes after the first: {self.storm.events / took:,.0f} a second; up to {self.peak:,} waited;"
            f" the largest process had {self.memory / 2**20:.0f} MB"
        )
        print(f"On {machine()}")
        if wrong:
            raise RuntimeError(f"{len(wrong)} lags were not true: {'; '.join(wrong[:5])}")

    def _told(self, after: float) -> Iterator[Told]:
        records = self.instance.fetch_observations(dg.AssetRecordsFilter(self.asset, after_timestamp=after), limit=100).records
        yield from (told for record in reversed(records) if (told := Told.of(record)) and told.time > after)

    def _memory(self) -> Iterator[int]:
        """Bytes of each process, the simulated servers left out."""
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                if process.pid not in self.servers:
                    yield process.memory_info().rss


def _applied(sides: Connection, of: Slice) -> int:
    return replica_state(sides.target.metastore.database(of.name)).applied or 0


def main() -> None:
    """Reads the arguments, runs and reports."""
    parser = argparse.ArgumentParser(prog="python -m bench.company.storm", description=__doc__)
    parser.add_argument("--slice", type=a_slice, default="company_10x1000x0", help="the database before the storm")
    parser.add_argument("--events", type=int, default=600_000, help="a partition each; rounded down to the same for each table")
    parser.add_argument("--rate", type=int, default=1_000, help="a second")
    parser.add_argument("--oldest", type=float, default=120, help="seconds that a lag may be old when it is told")
    args = parser.parse_args()
    run(args.slice, args.events // args.slice.tables * args.slice.tables, args.rate, args.oldest)


if __name__ == "__main__":
    main()
