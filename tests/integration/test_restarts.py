"""Servers that restart in the middle of a load: it goes on, or fails with one clear error and the next one ends it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from threading import Thread

import pytest

from hive_replication.connect import Connection, connect
from hive_replication.copy.tasks import Copier, CopyFailure, CopyResult, CopyTask
from hive_replication.dump.command import repl_dump
from hive_replication.errors import ReplicationError
from hive_replication.load.command import repl_load
from hive_replication.load.replica.state import replica_state
from hive_replication.statements import ReplDump, ReplLoad
from hive_replication.verify import compare_database
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy
from tests.origin import Origin

pytestmark = [pytest.mark.servers, pytest.mark.long]

DATABASE = "restarts"


@dataclass
class Restarting:
    """Copies two files, then servers stop; they are started again while it goes on."""

    copier: Copier
    cluster: Cluster
    servers: str
    started: Thread | None = None
    copied: int = 0

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        for task in tasks:
            if self.copied == 2 and self.started is None:
                self.cluster.down([self.servers])
                self.started = Thread(target=self.cluster.up)
                self.started.start()
            self.copied += 1
            yield from self.copier.copy([task])


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    made = Cluster(tmp_path_factory.mktemp("restarts"))
    try:
        made.up()
        yield made
    finally:
        made.down()


@pytest.mark.timeout(600)
def test_a_server_restarts_in_the_middle_of_a_load(cluster: Cluster) -> None:
    connection = connect(policy(cluster, {DATABASE: DATABASE}))
    source, target, store, copier = connection.source, connection.target, connection.store, connection.copier
    origin = Origin(connection, DATABASE)
    origin.create_database()
    origin.create("parts", "0")
    origin.insert("parts", "0\n", "0")
    repl_load(target, ReplLoad(repl_dump(source, ReplDump(DATABASE), store).directory), store, copier)
    for round_, servers in enumerate(("target.metastore", "target.hdfs", "source.hdfs", "source.metastore")):
        days = [f"{round_}{number}" for number in range(6)]
        for day in days:
            origin.add("parts", day)
            origin.insert("parts", f"{day}\n", day)
        applied = replica_state(target.metastore.database(DATABASE)).applied
        directory = repl_dump(source, ReplDump(DATABASE, None, applied), store).directory
        restarting = Restarting(copier, cluster, servers)
        whole, error = _outcome(connection, directory, restarting)
        assert restarting.started is not None
        restarting.started.join()
        assert whole or not error or ("cannot be reached" in error and "\n" not in error), error
        if not whole:
            assert repl_load(target, ReplLoad(directory), store, copier).held == ()
        print(f"{servers}: {'the load went on' if whole else 'the next load ended it'} {error}")
        assert {found.table: found.differences for found in compare_database(source, target, DATABASE)} == {"parts": ()}


def _outcome(connection: Connection, directory: str, copier: Copier) -> tuple[bool, str]:
    """Whether a load did all of it, and its error."""
    try:
        report = repl_load(connection.target, ReplLoad(directory), connection.store, copier)
    except ReplicationError as error:
        return False, str(error)
    return report.held == (), ""
