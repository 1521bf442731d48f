"""Two metastores that share a database, by a list of addresses: one is killed in the middle of a load, which goes on."""

from __future__ import annotations

from collections.abc import Iterator

import psutil
import pytest

from hive_replication.connect import connect
from hive_replication.dump.command import repl_dump
from hive_replication.load.command import repl_load
from hive_replication.statements import ReplDump, ReplLoad
from hive_replication.verify import compare_database
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy
from tests.origin import Origin
from tests.outages import Striking, create_with_files

pytestmark = pytest.mark.servers

_SECOND = "target-second"


@pytest.fixture
def second(cluster: Cluster) -> Iterator[psutil.Process]:
    cluster.up([_SECOND])
    yield psutil.Process(next(server.pid for server in cluster.status() if server.name == f"{_SECOND}.metastore"))
    cluster.down([f"{_SECOND}.metastore"])


@pytest.mark.parametrize("files", [300, pytest.param(2000, marks=pytest.mark.long)])
def test_a_bootstrap_outlives_one_of_two_metastores(cluster: Cluster, second: psutil.Process, unique: str, files: int) -> None:
    rules = policy(cluster, {unique: unique})
    addresses = f"{cluster.side(_SECOND).metastore},{rules.target.metastore}"
    connection = connect(rules.model_copy(update={"target": rules.target.model_copy(update={"metastore": addresses})}))
    source, target, store = connection.source, connection.target, connection.store
    tables = create_with_files(Origin(connection, unique), files)
    copier = Striking(connection.copier, files // 3, second.kill)
    report = repl_load(target, ReplLoad(repl_dump(source, ReplDump(unique), store).directory), store, copier)
    # Nobody may have taken it off the list of processes yet.
    gone = not second.is_running() or second.status() == psutil.STATUS_ZOMBIE
    assert gone, "the metastore was killed while files were copied"
    assert report.held == ()
    assert report.files_by_origin == {"source": files}
    assert copier.proven_twice == []
    assert {found.table: found.differences for found in compare_database(source, target, unique)} == dict.fromkeys(tables, ())
