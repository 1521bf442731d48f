"""The demo, act by act."""

from __future__ import annotations

import shutil
import socket
import threading
import time
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from demo import comparison, dagster_dev
from demo.changes import Round
from demo.comparison import Outcome
from demo.dagster_dev import DagsterDev
from demo.filling import filling, is_filled
from demo.following import Follower
from demo.screen import Screen
from demo.source import SourceDatabase
from demo.spark import Rows, Spark, end_java
from hive_replication.connect import Connection, connect
from hive_replication.policy import load_policy
from resources.embedded import java, processes
from resources.embedded.cluster import Cluster
from resources.embedded.policy import write_policy

_BY_THREADS = 50  # files of a window at most


@dataclass(frozen=True)
class Demo:
    """Where the demo keeps its things.

    Args:
        servers: folder of the embedded servers.
        dagster_home: DAGSTER_HOME.
        port: of Dagster's UI; a free one if it is in use.
        screen: shows the steps.
    """

    servers: Path
    dagster_home: Path
    port: int
    screen: Screen

    def reset(self) -> None:
        """Stops a demo that runs and deletes its data."""
        with self.screen.step("stop and delete the demo"):
            dagster_dev.stop(self.dagster_home)
            if self.servers.is_dir():
                Cluster(self.servers).down()
            for folder in (self.servers, self.dagster_home):
                shutil.rmtree(folder, ignore_errors=True)

    def play(self, *, headless: bool) -> int:
        """Plays the demo; what it started is stopped at its end.

        Args:
            headless: stop the source before the last comparison and end; else keep all up until Ctrl-C.

        Returns:
            Exit code: 0 if source and replica are equal.
        """
        java.java()
        with ExitStack() as started:
            cluster = started.enter_context(self._servers())
            connection = connect(load_policy(self.servers / "policy.yaml"))
            started.callback(end_java)
            spark = Spark(cluster.side("source"), self.servers / "spark.log")
            source = SourceDatabase(connection.source, spark, cluster.side("source").hdfs)
            self._fill(source)
            dagster = DagsterDev(self.dagster_home, self.servers / "policy.yaml", _port(self.port))
            dagster.prepare()
            with ExitStack() as running:
                instance = running.enter_context(dg.DagsterInstance.from_config(str(self.dagster_home)))
                follower = Follower(connection, instance, self.screen)
                self._start_dagster(dagster, running)
                self._replicate(source, follower, dagster)
                outcome = self._compare(connection, follower, spark, cluster, running if headless else None)
                if headless:
                    return self._verdict(outcome)
                self._verdict(outcome)
                self._stay(dagster, cluster)
        return 0

    @contextmanager
    def _servers(self) -> Generator[Cluster]:
        self.screen.title("Two Hive warehouses on this machine, each with its own HDFS and metastore 3.1.3")
        cluster = Cluster(self.servers)
        ran = {server.name for server in cluster.status() if server.state == "running"}
        try:
            began = time.monotonic()
            with self.screen.bars() as bars:
                cluster.up(progress=bars)
            self.screen.done(f"{len(cluster.status())} servers", began)
            for server in cluster.status():
                self.screen.say(f"  {server.name} [dim]{server.address}[/]")
            if not (self.servers / "policy.yaml").exists():
                # So few files, that the bootstrap goes through Spark and a window through threads.
                write_policy(cluster, self.servers / "policy.yaml", driver_max_files=_BY_THREADS)
            yield cluster
        finally:
            with self.screen.step("stop the servers"):
                cluster.down([server.name for server in cluster.status() if server.name not in ran])

    def _fill(self, source: SourceDatabase) -> None:
        self.screen.title("The source: a sales database, its files written by Spark")
        if is_filled(source):
            self.screen.say(f"[green]✓[/] filled by an earlier demo: {len(source.names())} tables")
            return
        with self.screen.step("start Spark"):
            _ = source.spark.session
        self.screen.steps(filling(source))

    def _start_dagster(self, dagster: DagsterDev, running: ExitStack) -> None:
        self.screen.title("Dagster: its sensor reads the source's notification log and asks for runs")
        with self.screen.step("start dagster dev"):
            running.enter_context(dagster.running())
        self.screen.say(f"[bold]{dagster.url}[/]  [dim]log: {dagster.log}[/]")

    def _replicate(self, source: SourceDatabase, follower: Follower, dagster: DagsterDev) -> None:
        self.screen.title("Bootstrap" if follower.lag().applied is None else "Catching up")
        self._caught_up(follower)
        for wave in Round.of(source).waves():
            self.screen.title(wave.title)
            self.screen.steps(wave.steps)
            self._caught_up(follower)
        dagster.reload()

    def _caught_up(self, follower: Follower) -> None:
        began = time.monotonic()
        found = follower.wait()
        self.screen.done(f"the replica stands at event {found.applied} of {found.current}", began)

    def _compare(
        self, connection: Connection, follower: Follower, spark: Spark, cluster: Cluster, source_ends: ExitStack | None
    ) -> Outcome:
        """Compares; with the source stopped before the target is read, where what uses it is handed over to be ended."""
        self.screen.title("Is the replica equal?")
        policy = connection.source.policy
        source_names = connection.source.metastore.table_names("sales")
        with self.screen.step("hash all rows of the source, in Spark"):
            source_rows = spark.rows("sales", source_names)
        spark.stop()
        lag, loads = follower.lag(), tuple(follower.loads())
        with self.screen.step("compare metadata, partitions and files with their checksums"):
            tables = comparison.compared(connection, self.screen)
        if source_ends is not None:
            with self.screen.step("stop Dagster, the source's metastore and its HDFS"):
                source_ends.close()
                cluster.down(["source"])
        with self.screen.step("hash all rows of the target, in Spark, through its own metastore"):
            target_rows = self._target_rows(connection, spark, cluster, policy.target_of("sales"))
        return Outcome(tables, source_rows, target_rows, lag, loads, comparison.foreign_places(connection))

    def _target_rows(self, connection: Connection, spark: Spark, cluster: Cluster, database: str) -> dict[str, Rows]:
        session = Spark(cluster.side("target"), spark.log)
        try:
            return session.rows(database, connection.target.metastore.table_names(database))
        finally:
            session.stop()

    def _verdict(self, outcome: Outcome) -> int:
        comparison.show(outcome, self.screen)
        problems = list(outcome.problems())
        for problem in problems:
            self.screen.say(f"[red]✗[/] {problem}")
        if not problems:
            self.screen.say(
                "[green]✓[/] [bold]All tables are equal, every file is proven, nothing on the target names the source.[/]"
            )
        return 1 if problems else 0

    def _stay(self, dagster: DagsterDev, cluster: Cluster) -> None:
        end_java()
        self.screen.title(f"All stays up; look around: {dagster.url}")
        self.screen.say(f"The command line: export HIVE_REPL_CONFIG={self.servers / 'policy.yaml'}; hive-repl REPL STATUS sales")
        self.screen.say(f"The metastores: {cluster.side('source').metastore} and {cluster.side('target').metastore}")
        self.screen.say("Ctrl-C stops everything; the next make demo continues from here, make demo-reset starts over.")
        threading.Event().wait()


def _port(wanted: int) -> int:
    if wanted and not processes.listening(wanted):
        return wanted
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]
