"""Runs the real dump and load against slices of the company, and measures what they take beside what the servers allow."""

from __future__ import annotations

import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from bench.company import limits
from bench.company.formula import Slice
from bench.company.servers import Side
from hive_replication.connect import Connection, connect
from hive_replication.dump.command import repl_dump
from hive_replication.dump.format.record_types import DumpResult
from hive_replication.load.command import repl_load
from hive_replication.policy import Policy
from hive_replication.statements import ReplDump, ReplLoad

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Used:
    """What some work took.

    Args:
        seconds: by the clock.
        cpu: seconds of processor time of the process that replicates.
        servers: seconds of processor time of the simulated servers.
        memory: the most bytes that the process had in memory until then.
        calls: of the servers, by server and name.
    """

    seconds: float
    cpu: float
    servers: float
    memory: int
    calls: Mapping[str, int]

    def calls_of(self, *servers: str) -> int:
        """Calls of some servers: metastore, NameNode, DataNode, WebHDFS."""
        return sum(number for name, number in self.calls.items() if name.partition(" ")[0] in servers)


@dataclass(frozen=True, slots=True)
class Stage:
    """A dump or a load.

    Args:
        name: ``DUMP`` or ``LOAD`` of a bootstrap, ``DUMP, window`` or ``LOAD, window``.
        tables: that it was about.
        units: partitions, or events that add one each.
        files: of all these.
        used: what it took.
        limit: what the same calls of the servers alone take; None where that was not measured.
        size: bytes of the dump; 0 of a load.
    """

    name: str
    tables: int
    units: int
    files: int
    used: Used
    limit: Used | None = None
    size: int = 0

    @property
    def ratio(self) -> float | None:
        """Times that it takes as long as its limit, by the clock."""
        return self.used.seconds / self.limit.seconds if self.limit else None


def used(work: Callable[[], T], *sides: Side) -> tuple[Used, T]:
    """Does some work, and measures it in this process and at the servers that it asks."""
    for side in sides:
        side.counts()
    servers, cpu, began = sum(side.cpu() for side in sides), time.process_time(), time.monotonic()
    result = work()
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    calls: Counter[str] = Counter()
    for side in sides:
        calls.update(side.counts())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Used(seconds, cpu, sum(side.cpu() for side in sides) - servers, memory, dict(calls)), result


def connected(source: Side, target: Side | None, of: Slice, root: Path) -> Connection:
    """Both sides by a policy with no settings of its own, and dumps in a directory of this machine."""
    reads, writes = source.warehouse, (target or source).warehouse
    return connect(Policy(source=reads, target=writes, dump_root=root.as_uri(), databases={of.name: of.name}))


def replicate(source: Side, target: Side | None, of: Slice, events: int, root: Path) -> list[Stage]:
    """Dumps a slice, and loads it where there is a target; then the same with partitions that are added.

    Args:
        source: the company.
        target: an empty side; None where the slice is only dumped.
        of: the slice.
        events: partitions that are added afterwards, as many to each table.
        root: where dumps go.

    Raises:
        RuntimeError: a dump or the replica is not what the formula says.
    """
    run = _Run(connected(source, target, of, root), source, target, of, root)
    dump, made = run.dump("DUMP", None, of.objects)
    stages = [dump, *run.load("LOAD", made, of.objects)]
    if events:
        source.grow(of.name, events)
        window, more = run.dump("DUMP, window", made.last_evid, events)
        stages += [window, *run.load("LOAD, window", more, events)]
    return stages


def beside_limits(source: Side, target: Side, of: Slice, root: Path) -> list[Stage]:
    """Dumps and loads a slice, and afterwards makes the same calls of the servers alone, in the same process."""
    dump, load = replicate(source, target, of, 0, root)
    sides = connected(source, target, of, root)
    read = _sum(used(partial(one, sides, of), source)[0] for one in (limits.read_metastore, limits.list_files))
    write = _sum(used(partial(one, sides, of), source, target)[0] for one in (limits.copy_files, limits.add_partitions))
    return [replace(dump, limit=read), replace(load, limit=write)]


def apart(work: Callable[..., T], *arguments: object) -> T:
    """Does some work in a new process, whose memory is that of this work alone; a directory for it is the last argument."""
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work, *arguments, Path(folder)).result()


@dataclass(frozen=True)
class _Run:
    sides: Connection
    source: Side
    target: Side | None
    of: Slice
    root: Path

    def dump(self, name: str, after: int | None, units: int) -> tuple[Stage, DumpResult]:
        before = self._size()
        statement = ReplDump(self.of.name, None, after)
        taken, made = used(lambda: repl_dump(self.sides.source, statement, self.sides.store), self.source)
        if (found := made.partitions + made.events) != units:
            raise RuntimeError(f"{name} of {self.of.name} has {found} partitions or events instead of {units}")
        return Stage(name, self.of.tables, units, units * self.of.files, taken, size=self._size() - before), made

    def load(self, name: str, made: DumpResult, units: int) -> list[Stage]:
        if self.target is None:
            return []
        sides, statement, of = self.sides, ReplLoad(made.directory, self.of.name), self.of
        before = self._partitions()
        work = partial(repl_load, sides.target, statement, sides.store, sides.copier)
        taken, report = used(work, self.source, self.target)
        partitions = self._partitions()
        if report.held or partitions != before + units or (of.files and self.target.complete(of.name) != partitions):
            raise RuntimeError(f"{name} of {of.name}: {partitions} partitions, and held is {report.held}")
        return [Stage(name, of.tables, units, units * of.files, taken)]

    def _partitions(self) -> int:
        """Partitions of the replica."""
        metastore = self.sides.target.metastore
        return sum(metastore.partition_count(self.of.name, table) for table in metastore.table_names(self.of.name))

    def _size(self) -> int:
        """Bytes of all dumps."""
        return sum(path.stat().st_size for path in self.root.rglob("*") if path.is_file())


def _sum(parts: Iterable[Used]) -> Used:
    found = list(parts)
    calls: Counter[str] = Counter()
    for one in found:
        calls.update(one.calls)
    seconds, cpu, servers = (sum(getattr(one, name) for one in found) for name in ("seconds", "cpu", "servers"))
    return Used(seconds, cpu, servers, max(one.memory for one in found), dict(calls))
