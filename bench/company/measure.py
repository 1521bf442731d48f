"""Runs the real dump and load against slices of the company, and measures what they take."""

from __future__ import annotations

import resource
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import TypeVar

from bench.company.formula import Slice
from bench.company.servers import Side
from hive_replication.connect import Connection, connect
from hive_replication.dump.command import repl_dump
from hive_replication.load.command import repl_load
from hive_replication.policy import Policy
from hive_replication.statements import ReplDump, ReplLoad

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Used:
    """What a stage took.

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
class Replicated:
    """A slice that was dumped and loaded.

    Args:
        of: the slice.
        dump: what the dump took.
        load: what the load took; None where there was none.
        size: bytes of the dump.
    """

    of: Slice
    dump: Used
    load: Used | None
    size: int


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


def replicate(source: Side, target: Side | None, of: Slice, root: Path) -> Replicated:
    """Dumps a slice, and loads it where there is a target.

    Raises:
        RuntimeError: the dump or the replica is not what the formula says.
    """
    sides = connected(source, target, of, root)
    dump, made = used(lambda: repl_dump(sides.source, ReplDump(of.name), sides.store), source)
    if (made.partitions, made.files) != (of.objects, of.objects * of.files):
        raise RuntimeError(f"the dump of {of.name} has {made.partitions} partitions and {made.files} files")
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    if target is None:
        return Replicated(of, dump, None, size)
    statement = ReplLoad(made.directory, of.name)
    load, report = used(lambda: repl_load(sides.target, statement, sides.store, sides.copier), source, target)
    names = map(sides.target.metastore.partition_count, [of.name] * of.tables, sides.target.metastore.table_names(of.name))
    counts = (sum(names), target.complete(of.name))
    if report.held or counts != (of.objects, of.objects):
        raise RuntimeError(f"the replica of {of.name} has {counts} partitions and is held by {report.held}")
    return Replicated(of, dump, load, size)


def apart(work: Callable[..., T], *arguments: object) -> T:
    """Does some work in a new process, whose memory is that of this work alone; a directory for it is the last argument."""
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(work, *arguments, Path(folder)).result()
