"""W4: the bytes of large files, by this project with every file proven, and by others without."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import hdfs_native

from bench.peers import Ours
from bench.report import Measurement
from bench.source import SourceDatabase
from bench.workloads import Bytes
from hive_replication.connect import Connection
from resources.embedded import jars, java
from resources.embedded.cluster import Cluster

_THREADS = 8
_PIECE = 4 << 20


@dataclass
class Copies:
    """Copies of one table's files from the source's HDFS to the target's.

    Args:
        servers: both HDFS.
        connection: to both warehouses.
        source: the database that holds the table.
        ours: this project.
        repeat: copies that each makes, in turn.
    """

    servers: Cluster
    connection: Connection
    source: SourceDatabase
    ours: Ours
    repeat: int

    def measure(self, workload: Bytes) -> Measurement:
        """Compares this project's rate with that of the same client without any checks."""
        workload.fill(self.source)
        found: dict[str, list[float]] = {}
        ways = {
            "hive-repl, DUMP and LOAD": self._replicated,
            "hdfs-native, no checks": self._raw,
            "hadoop fs -cp": lambda to: self._hadoop("org.apache.hadoop.fs.FsShell", "-cp", self._from, to),
            "hadoop distcp (local)": lambda to: self._hadoop("org.apache.hadoop.tools.DistCp", self._from, to),
        }
        for number in range(self.repeat):
            for who, way in ways.items() if number % 2 == 0 else reversed(ways.items()):
                found.setdefault(who, []).append(self._timed(way, workload.total, f"{len(found)}{number}"))
        seconds = {who: statistics.median(found[who]) for who in ways}
        rows = {who: {"both, s": each, "MB/s": workload.total / each / 1e6} for who, each in seconds.items()}
        ours, raw, *others = seconds.values()
        means = f"of the raw limit's rate; {min(others) / ours:.2f} times as fast as the faster of fs -cp and DistCp"
        return Measurement("W4", workload.title, rows, raw / ours, 0.8, means=means)

    def _timed(self, way: Callable[[str], None], total: int, name: str) -> float:
        to = f"{self.servers.side('target').hdfs}bench/{self.source.name}_{name}"
        os.sync()  # what was written before is nobody's to wait for
        began = time.monotonic()
        way(to)
        spent = time.monotonic() - began
        storage = self.connection.target.storage
        if way != self._replicated:
            copied = sum(file.size for file in storage.files(to))
            if copied != total:
                raise RuntimeError(f"{to} holds {copied} bytes instead of {total}")
            storage.delete(to, recursive=True)
        return spent

    @property
    def _from(self) -> str:
        metastore, name = self.connection.source.metastore, self.source.name
        (table,) = metastore.tables(name, metastore.table_names(name))
        return str(table.sd.location)

    def _replicated(self, to: str) -> None:
        replica = to.rpartition("/")[2]
        self.ours.replicate(self.source.name, replica)
        self.connection.target.metastore.drop_database(replica, delete_data=True, cascade=True)

    def _raw(self, to: str) -> None:
        source, target = (hdfs_native.Client(self.servers.side(name).hdfs) for name in ("source", "target"))
        files = [file.uri for file in self.connection.source.storage.files(self._from)]

        def copy(uri: str) -> None:
            reader = source.read(_path(uri))
            with target.create(f"{_path(to)}/{uri.rpartition('/')[2]}", hdfs_native.WriteOptions()) as writer:
                while piece := reader.read(_PIECE):
                    writer.write(piece)

        target.mkdirs(_path(to), create_parent=True)
        with ThreadPoolExecutor(_THREADS) as pool:
            list(pool.map(copy, files))

    def _hadoop(self, *command: str) -> None:
        group = jars.fetch_groups(["hadoop", "distcp"])
        path = [self.servers.side("source").conf, *group["hadoop"].jars, *group["distcp"].jars]
        _run([str(java.java()), *java.ADD_OPENS, "-cp", ":".join(map(str, path)), *command])


def _run(command: Sequence[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[-3:])} failed: {done.stderr[-2000:]}")


def _path(uri: str) -> str:
    return "/" + uri.split("/", 3)[3]
