"""Runs SQL on a real Hive driver, 3.1.3 or 4.2.0: a Java process that reads statements and answers, kept for many statements."""

from __future__ import annotations

import base64
import contextlib
import os
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from hive_replication.errors import BadRequest, ReplicationError
from resources.embedded import jars, java
from resources.embedded.cluster import Side
from resources.embedded.compiler import compiled
from resources.embedded.hdfs import write_xml
from resources.embedded.patches import patched
from resources.embedded.processes import end_of

_SOURCE = Path(__file__).parent / "java" / "HiveDriver.java"
_CAPABILITIES = "HIVEFULLACIDREAD,HIVEFULLACIDWRITE,HIVEMANAGEDINSERTREAD,HIVEMANAGEDINSERTWRITE,EXTWRITE,EXTREAD"
_BY_VERSION = {
    # DDL, LOAD DATA and REPL run on 3.1.3; queries that need a job do not.
    3: {"hive.support.concurrency": "false"},
    # Everything runs on 4.2.0, ACID included, with MapReduce in the driver's process.
    4: {
        "hive.support.concurrency": "true",
        "hive.txn.manager": "org.apache.hadoop.hive.ql.lockmgr.DbTxnManager",
        "hive.metastore.client.capabilities": _CAPABILITIES,
        # A map join needs the hadoop script; jobs in this process are over sooner than the first look at them by default.
        "hive.auto.convert.join": "false",
        "hive.exec.counters.pull.interval": "50",
        "mapreduce.client.progressmonitor.pollinterval": "50",
        "mapreduce.client.completion.pollinterval": "50",
    },
}


@dataclass(frozen=True, slots=True)
class StatementResult:
    """What Hive answered to one statement.

    Args:
        seconds: wall time in Hive.
        statement: what was asked.
        rows: result rows, columns separated by tabs.
        error: Hive's message, or "".
    """

    seconds: float
    statement: str
    rows: tuple[str, ...]
    error: str


@dataclass
class HiveDriver:
    """A driver for one side; a context manager that ends the Java process. It starts in about ten seconds, on entry.

    Args:
        side: whose metastore it works on; the side's version decides between Hive 3.1.3 and 4.2.0.
        repl_root: URI for Hive's own dumps (``hive.repl.rootdir``); on the side's HDFS by default. Hive 4.2.0 finds the
            dump to load there, so that the drivers of source and target need the same.
        properties: added to its configuration, over the defaults.
        compacts: whether it also compacts transactional tables when the metastore asks, as a HiveServer2 of Hive 4 does.
        quick: whether it starts quicker, and is slower in long work: not where times are compared.
    """

    side: Side
    repl_root: str = ""
    properties: Mapping[str, str] = field(default_factory=dict[str, str])
    compacts: bool = False
    quick: bool = False

    def __post_init__(self) -> None:
        if self.side.version.number not in ("3.1.3", "4.2.0"):
            raise BadRequest(f"{self.side.name} has no Hive driver: there is one of Hive 3.1.3 and one of 4.2.0")
        self.repl_root = self.repl_root or f"{self.side.hdfs}{self.side.name}/repl"
        self._process: subprocess.Popen[str] | None = None
        self._folder: Path | None = None

    def __enter__(self) -> Self:
        self._folder = Path(tempfile.mkdtemp(prefix="hive-driver-"))
        self._configure(self._folder)
        with (self._folder / "driver.log").open("wb") as log:
            self._process = subprocess.Popen(
                self._command(),
                cwd=self._folder,
                env={**os.environ, "HIVE_DRIVER_CP": _class_path(self.side.hive, self._folder)},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                encoding="ascii",
            )
        try:
            self._read()
        except ReplicationError:
            self.close()
            raise
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        """Ends the Java process."""
        process, self._process = self._process, None
        if process:
            try:
                process.communicate(timeout=30)  # closes its stdin, at which it ends
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
        if self._folder:
            shutil.rmtree(self._folder, ignore_errors=True)

    @property
    def log(self) -> Path:
        """What the Java process prints; gone after the end."""
        return self._started()[1] / "driver.log"

    def run(self, statements: Sequence[str]) -> list[StatementResult]:
        """Runs statements one after another; an error does not keep the next ones from running.

        Args:
            statements: SQL without ``;``. ``set key=value`` changes the configuration of the statements after it.

        Raises:
            ReplicationError: the Java process ended.
        """
        return [self._run(statement.strip()) for statement in statements]

    def execute(self, *statements: str) -> list[StatementResult]:
        """Like :meth:`run`, for statements that must not fail.

        Raises:
            ReplicationError: Hive answered with an error.
        """
        results: list[StatementResult] = []
        for statement in statements:
            results.append(self._run(statement.strip()))
            if results[-1].error:
                raise ReplicationError(f"Hive {self.side.hive}: {results[-1].error} (statement: {statement})")
        return results

    def _run(self, statement: str) -> StatementResult:
        process, _ = self._started()
        pipe = _open(process.stdin)
        with contextlib.suppress(BrokenPipeError):  # reading tells how it ended
            pipe.write(base64.b64encode(statement.encode()).decode() + "\n")
            pipe.flush()
        nanoseconds, error, *rows = self._read().split("\t")
        return StatementResult(int(nanoseconds) / 1e9, statement, tuple(map(_decoded, rows)), _decoded(error))

    def _read(self) -> str:
        process, _ = self._started()
        line = _open(process.stdout).readline()
        if not line:
            tail = end_of(self.log)[-2000:]
            raise ReplicationError(f"the Hive driver ended with exit code {process.wait()}; the end of its log: {tail}")
        return line.rstrip("\n")

    def _started(self) -> tuple[subprocess.Popen[str], Path]:
        if self._process is None or self._folder is None:
            raise BadRequest("this Hive driver is not started: use it in a with statement")
        return self._process, self._folder

    def _command(self) -> list[str]:
        program = java.java() if self.side.hive == 3 else java.newer_java()
        memory = "-Xmx3g" if self.compacts else "-Xmx1g" if self.quick else "-Xmx1500m"
        options = [*java.ADD_OPENS, *(java.QUICK if self.quick else ()), memory, "-cp", str(compiled(_SOURCE))]
        return [str(program), *options, "HiveDriver", *(["worker"] if self.compacts else [])]

    def _configure(self, folder: Path) -> None:
        conf = folder / "conf"
        shutil.copytree(self.side.conf, conf)
        settings = {
            "hive.metastore.uris": self.side.metastore,
            "metastore.thrift.uris": self.side.metastore,
            "hive.metastore.warehouse.dir": self.side.warehouse,
            "hive.metastore.dml.events": "true",
            "hive.repl.cm.enabled": "true",
            "hive.repl.cmrootdir": self.side.cm_root,
            "hive.repl.rootdir": self.repl_root,
            "hive.distcp.privileged.doAs": "root",
            "hive.exec.scratchdir": f"{self.repl_root}-scratch",
            "hive.exec.local.scratchdir": str(folder / "scratch"),
            "hive.execution.engine": "mr",
            "mapreduce.framework.name": "local",
            "hive.stats.autogather": "false",
            "hive.query.results.cache.enabled": "false",
            "hive.mapred.mode": "nonstrict",
            "hive.exec.dynamic.partition.mode": "nonstrict",
            "hive.strict.checks.bucketing": "false",
            **_BY_VERSION[self.side.hive],
            **self.properties,
        }
        write_xml(conf / "hive-site.xml", settings)


def _class_path(hive: int, folder: Path) -> str:
    groups = jars.fetch_groups(["hadoop", f"hive{hive}"])
    hadoop = groups["hadoop"].without("slf4j")
    own = groups[f"hive{hive}"].jars
    ordered = [*own, *hadoop] if hive == 3 else [*hadoop, *own]
    folders = [folder / "conf", *([patched(own)] if hive == 3 else [])]
    return os.pathsep.join([*(f"{path}{os.sep}" for path in folders), *map(str, ordered)])


def _open(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None  # noqa: S101 - both are pipes
    return pipe


def _decoded(text: str) -> str:
    return base64.b64decode(text).decode()
