"""Runs the real dump against slices of the company, each in a process of its own, and measures what that takes."""

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

from bench.company.formula import Slice
from bench.company.servers import Side
from hive_replication.connect import connect
from hive_replication.dump.command import repl_dump
from hive_replication.policy import Policy
from hive_replication.statements import ReplDump


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

    def calls_of(self, server: str) -> int:
        """Calls of one server: metastore, NameNode or WebHDFS."""
        return sum(number for name, number in self.calls.items() if name.startswith(f"{server} "))


@dataclass(frozen=True, slots=True)
class Dumped:
    """A dump of a slice.

    Args:
        used: what it took.
        partitions: that are in the dump.
        files: that are in the dump.
        size: bytes of the dump.
        directory: URI of the dump.
    """

    used: Used
    partitions: int
    files: int
    size: int
    directory: str


def used(work: Callable[[], object], *sides: Side) -> Used:
    """Does some work, and measures it in this process and at the servers that it asks."""
    for side in sides:
        side.counts()
    servers, cpu, began = sum(side.cpu() for side in sides), time.process_time(), time.monotonic()
    work()
    seconds, cpu = time.monotonic() - began, time.process_time() - cpu
    calls: Counter[str] = Counter()
    for side in sides:
        calls.update(side.counts())
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return Used(seconds, cpu, sum(side.cpu() for side in sides) - servers, memory, dict(calls))


def dump(source: Side, of: Slice, root: Path) -> Dumped:
    """Dumps a slice by the real dump into a directory of this machine."""
    policy = Policy(source=source.warehouse, target=source.warehouse, dump_root=root.as_uri(), databases={of.name: of.name})
    sides = connect(policy)
    made = [None]

    def work() -> None:
        made[0] = repl_dump(sides.source, ReplDump(of.name), sides.store)

    taken, result = used(work, source), made[0]
    assert result is not None
    size = sum(path.stat().st_size for path in root.rglob("*") if path.is_file())
    return Dumped(taken, result.partitions, result.files, size, result.directory)


def dump_apart(source: Side, of: Slice) -> Dumped:
    """The same in a new process, whose memory is that of this dump alone."""
    with tempfile.TemporaryDirectory() as folder, ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return pool.submit(dump, source, of, Path(folder)).result()
