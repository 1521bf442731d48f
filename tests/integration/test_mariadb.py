"""A metastore 3.1.3 on MariaDB, as source and as target."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from bench.peers import Ours
from bench.servers import check_counts, new_database
from bench.workloads import Added, Bootstrap, Workload
from hive_replication.connect import connect
from resources.embedded.cluster import Cluster
from resources.embedded.policy import policy
from tests import mariadb as on
from tests.matrix.pairs import replicated

pytestmark = [
    pytest.mark.servers,
    pytest.mark.long,
    pytest.mark.skipif(not on.installed(), reason="install the package mariadb-server"),
]


@pytest.fixture(scope="module")
def sides(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[str, str]]:
    """Source and target, each with a database of its own on one server."""
    names = "source-maria", "target-maria"
    folder = tmp_path_factory.mktemp("mariadb")
    for closed in (folder.parent, folder.parent.parent):  # pytest's are closed to other accounts
        closed.chmod(0o711)
    with on.mariadb(folder) as server:
        databases = {name: name.replace("-", "_") for name in names}
        for database in databases.values():
            server.create(database)
        running = Cluster(cluster.directory, {name: server.properties(database) for name, database in databases.items()})
        running.up(names)
        try:
            yield names
        finally:
            running.down([f"{name}.metastore" for name in names])


def test_everything_is_equal(cluster: Cluster, sides: tuple[str, str], unique: str) -> None:
    wrong, events, _ = replicated(cluster, *sides, unique)
    assert wrong == []
    assert events > 40


@pytest.mark.parametrize("workload", [Added(300, 10), Bootstrap(1, 300, 10)])
def test_partitions_of_one_table_are_added_by_several_calls(
    cluster: Cluster, sides: tuple[str, str], caplog: pytest.LogCaptureFixture, workload: Workload
) -> None:
    """InnoDB, which locks ranges of keys, lets them be carried out at the same time: none fails and is made again."""
    caplog.set_level(logging.INFO)
    rules = policy(cluster, {"unused": "unused"}, *sides)
    database = new_database(connect(rules), cluster.side(sides[0]).warehouse)
    replica, ours = f"{database.name}_replica", Ours(rules)
    workload.fill(database)
    ours.replicate(database.name, replica)
    if workload.change(database):
        ours.replicate(database.name, replica)
    check_counts(connect(rules), database.name, [replica])
    assert "failed together" not in caplog.text
