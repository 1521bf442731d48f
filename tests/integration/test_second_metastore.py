"""Two metastores that share a database, by a list of addresses: one is killed in the middle of a load, which goes on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import psutil
import pytest

from hive_replication.connect import connect
from hive_replication.copy.tasks import Copier, CopyFailure, CopyResult, CopyTask
from hive_replication.dump.command import repl_dump
from hive_replication.load.command import repl_load
from hive_replication.statements import ReplDump, ReplLoad
from hive_replication.verify import compare_database
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy
from tests.origin import Origin

pytestmark = pytest.mark.servers

_SECOND = "target-second"


@dataclass
class Killing:
    """Copies some files, then kills a server, and goes on."""

    copier: Copier
    server: psutil.Process
    left: int

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        for task in tasks:
            if self.left <= 0 and self.server.is_running():
                self.server.kill()
            self.left -= 1
            yield from self.copier.copy([task])


@pytest.fixture
def second(cluster: Cluster) -> Iterator[psutil.Process]:
    cluster.up([_SECOND])
    yield psutil.Process(next(server.pid for server in cluster.status() if server.name == f"{_SECOND}.metastore"))
    cluster.down([f"{_SECOND}.metastore"])


def test_a_load_outlives_one_of_two_metastores(cluster: Cluster, second: psutil.Process, unique: str) -> None:
    rules = policy(cluster, {unique: unique})
    addresses = f"{cluster.side(_SECOND).metastore},{rules.target.metastore}"
    connection = connect(rules.model_copy(update={"target": rules.target.model_copy(update={"metastore": addresses})}))
    source, target, store = connection.source, connection.target, connection.store
    origin = Origin(connection, unique)
    origin.create_database()
    tables, days = [f"t{number}" for number in range(4)], ["1", "2", "3"]
    for table in tables:
        origin.create(table, *days)
        for day in days:
            origin.insert(table, f"{day}\n", day)
    killing = Killing(connection.copier, second, left=3)
    report = repl_load(target, ReplLoad(repl_dump(source, ReplDump(unique), store).directory), store, killing)
    assert killing.left < 0, "the metastore was killed while files were copied"
    assert report.held == ()
    assert report.files_by_origin == {"source": len(tables) * len(days)}  # none twice
    assert {found.table: found.differences for found in compare_database(source, target, unique)} == dict.fromkeys(tables, ())
