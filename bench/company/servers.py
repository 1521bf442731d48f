"""Starts the simulated servers in a process of their own, so that what is measured is the product's alone."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import psutil
import urllib3

from bench.company.formula import FILES, WAREHOUSE
from hive_replication.policy import Root
from hive_replication.policy.warehouse import Warehouse

_ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Side:
    """A simulated side that runs.

    Args:
        metastore: its address.
        hdfs: URI of its HDFS.
        webhdfs: address of its WebHDFS.
        pid: its process.
    """

    metastore: str
    hdfs: str
    webhdfs: str
    pid: int

    @property
    def warehouse(self) -> Warehouse:
        """The side as a policy names it."""
        return Warehouse(metastore=self.metastore, roots=(Root(uri=self.hdfs, webhdfs=self.webhdfs),))

    def counts(self) -> dict[str, int]:
        """Calls since the last time that this was asked, by server and name."""
        return urllib3.request("GET", f"{self.webhdfs}/counts").json()

    def complete(self, database: str) -> int:
        """How many partitions of a database have exactly the files that the formula says; of a target."""
        path = f"{self.webhdfs}/webhdfs/v1{WAREHOUSE}/{database}.db?op=COMPLETE"
        return urllib3.request("GET", path, timeout=600).json()

    def grow(self, database: str, partitions: int) -> None:
        """Adds partitions to a database's tables in turn, with an event each; of a source."""
        urllib3.request("GET", f"{self.webhdfs}/webhdfs/v1/{database}?op=GROW&partitions={partitions}")

    def cpu(self) -> float:
        """Seconds of processor time that the servers have used."""
        times = psutil.Process(self.pid).cpu_times()
        return times.user + times.system


@contextmanager
def side(kind: Literal["source", "target"], files: int = FILES) -> Generator[Side]:
    """Runs one side.

    Args:
        kind: which; the target is empty.
        files: how many a partition of the company has, for a target that is to keep no more than numbers of them.

    Raises:
        RuntimeError: it does not start; why is on standard error.
    """
    command = [sys.executable, "-m", "bench.company.serve", kind, str(files)]
    process = subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    with process:
        assert process.stdin
        assert process.stdout
        try:
            line = process.stdout.readline()
            if not line:
                raise RuntimeError(f"{' '.join(command)} ends at once: see its messages")
            yield Side(**json.loads(line), pid=process.pid)
        finally:
            process.stdin.close()
            process.wait(30)
