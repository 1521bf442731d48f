"""Servers that die in the middle of a copy, and databases of many small files to copy."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import psutil

from hive_replication.copy.tasks import Copier, CopyFailure, CopyResult, CopyTask
from resources.embedded.cluster import Cluster
from tests.origin import Origin

_DAYS = tuple("12345")


@dataclass
class Striking:
    """Copies as a copier does; at one of its answers something is struck, while other files are on their way.

    Args:
        copier: copies them.
        at: which answer, from 1.
        strike: does it.
    """

    copier: Copier
    at: int
    strike: Callable[[], None]
    results: list[CopyResult] = field(default_factory=list[CopyResult])
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        for answer in self.copier.copy(tasks):
            with self._lock:
                self.results += [answer] if isinstance(answer, CopyResult) else []
                struck = len(self.results) == self.at
            if struck:
                self.strike()
            yield answer

    @property
    def proven_twice(self) -> list[str]:
        """Replicas that were copied again after they had been proven."""
        return [target for target, times in Counter(result.task.target for result in self.results).items() if times > 1]

    @property
    def written(self) -> int:
        """How many times the content of a file was sent."""
        return sum(result.attempts for result in self.results)


@dataclass
class Failover:
    """The active NameNode of a side dies, and the other one takes over some seconds later.

    Args:
        cluster: of the side.
        side: e.g. ``target``.
        seconds: from the death to the begin of the takeover.
    """

    cluster: Cluster
    side: str
    seconds: float = 5.0
    _thread: threading.Thread | None = None

    def begin(self) -> None:
        """Kills it; the rest happens in a thread."""
        namenodes = self.cluster.nameservice(self.side)
        active = namenodes.active()
        assert active is not None
        kill(self.cluster, f"{self.side}.{active}")
        other = "namenode" if active == "namenode2" else "namenode2"

        def take_over() -> None:
            time.sleep(self.seconds)
            namenodes.take_over(other)

        self._thread = threading.Thread(target=take_over)
        self._thread.start()

    def end(self) -> None:
        """Waits for the takeover; fails where there was none. Then the dead one is started again, as the standby."""
        assert self._thread is not None, "the NameNode was never struck"
        self._thread.join()
        assert self.cluster.nameservice(self.side).active() is not None
        self.cluster.up([f"{self.side}.hdfs"])


def kill(cluster: Cluster, server: str) -> None:
    """Ends a server at once."""
    (pid,) = [found.pid for found in cluster.status() if found.name == server]
    assert pid is not None
    process = psutil.Process(pid)
    process.kill()
    process.wait()


def add_files(origin: Origin, table: str, count: int) -> int:
    """Adds small files to all partitions of a table, without events; how many there are."""
    places = [origin.location(table, day) for day in _DAYS]
    uris = [f"{places[number % len(places)]}/f{number:05d}" for number in range(count)]
    storage = origin.connection.source.storage
    with ThreadPoolExecutor(16) as threads:
        list(threads.map(storage.write, uris, (f"{number}\n".encode() for number in range(count))))
    return count


def create_with_files(origin: Origin, files: int, tables: int = 4) -> list[str]:
    """Creates partitioned tables with so many small files in all; their names."""
    origin.create_database()
    names = [f"t{number}" for number in range(tables)]
    for name in names:
        origin.create(name, *_DAYS)
        add_files(origin, name, files // tables)
    return names
