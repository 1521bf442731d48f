"""The servers that tests share, started once a session.

Name a data folder in HIVE_REPL_TEST_CLUSTER to use the servers there instead, and to leave them running for the next session.
"""

from __future__ import annotations

import os
import re
import uuid
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import dagster as dg
import pytest
from hypothesis import settings
from xdist.scheduler import LoadScopeScheduling

from hive_replication.connect import Connection, connect
from hive_replication.policy import load_policy
from hive_replication.verify.witness import rounds
from resources.embedded.cluster import Cluster, Side
from resources.embedded.hive import HiveDriver
from resources.embedded.policy import policy, write_policy
from tests.policy_sensor import Sensor
from tests.warehouse import Warehouse

#: What asks for the metastores 4.2.0, by the names of their fixtures.
_OF_4_2 = re.compile(r"\b(source4|target4|connection4|hive4|acid: Warehouse)\b")

pytest_plugins = ["tests.seeds"]

settings.register_profile("shared cores", deadline=None)
settings.load_profile("shared cores")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Runs tests on servers first, so that no worker is left alone with them at the end, and does not measure their coverage.

    To trace each line doubles the time of Python, and what only a test on servers reaches lacks a unit test. So long unit tests
    that go through the same lines again and again are marked ``no_cover`` themselves.
    """
    items.sort(key=lambda item: not _on_servers(item))
    for item in items:
        if _on_servers(item):
            item.add_marker("no_cover")


def _on_servers(item: pytest.Item) -> bool:
    return any(item.get_closest_marker(mark) for mark in ("ui", "hive", "servers"))


class _Scheduling(LoadScopeScheduling):
    """The tests of a file stay together, and so do the files that use the metastores 4.2.0: one worker starts these."""

    def _split_scope(self, nodeid: str) -> str:
        return _scope(nodeid.partition("::")[0])


@cache
def _scope(file: str) -> str:
    return "4.2" if _OF_4_2.search((Path(__file__).parents[1] / file).read_text()) else file


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> LoadScopeScheduling:
    """How ``pytest -n`` shares the tests out."""
    return _Scheduling(config, log)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """The witness looks again soon at what seems wrong: here nobody is in the middle of an INSERT."""
    monkeypatch.setattr(rounds, "PAUSES", (0.2, 0.2))


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Source and target, each with its own HDFS and metastore 3.1.3."""
    kept = os.environ.get("HIVE_REPL_TEST_CLUSTER")
    servers = Cluster(Path(kept) if kept else tmp_path_factory.mktemp("cluster"))
    try:
        servers.up()
        yield servers
    finally:
        if not kept:
            servers.down()


@pytest.fixture(scope="session")
def source(cluster: Cluster) -> Side:
    return cluster.side("source")


@pytest.fixture(scope="session")
def target(cluster: Cluster) -> Side:
    return cluster.side("target")


@pytest.fixture(scope="session")
def source4(cluster: Cluster) -> Side:
    """A metastore 4.2.0 on the source's HDFS."""
    cluster.up(["source4"])
    return cluster.side("source4")


@pytest.fixture(scope="session")
def target4(cluster: Cluster) -> Side:
    """A metastore 4.2.0 on the target's HDFS."""
    cluster.up(["target4"])
    return cluster.side("target4")


@pytest.fixture(scope="session")
def hive3(source: Side, target: Side) -> Iterator[HiveDriver]:
    """Hive 3.1.3 on the source; DDL, LOAD DATA and REPL, no queries that need a job."""
    with HiveDriver(source, repl_root=f"{target.hdfs}repl/hive3", quick=True) as driver:
        yield driver


@pytest.fixture(scope="session")
def hive3_target(target: Side) -> Iterator[HiveDriver]:
    with HiveDriver(target, repl_root=f"{target.hdfs}repl/hive3", quick=True) as driver:
        yield driver


@pytest.fixture(scope="session")
def hive4(source4: Side, target4: Side) -> Iterator[HiveDriver]:
    """Hive 4.2.0 on source4; everything runs, ACID included."""
    with HiveDriver(source4, repl_root=f"{target4.hdfs}repl/hive4", quick=True) as driver:
        yield driver


@pytest.fixture(scope="session")
def hive4_target(target4: Side) -> Iterator[HiveDriver]:
    with HiveDriver(target4, repl_root=f"{target4.hdfs}repl/hive4", quick=True) as driver:
        yield driver


@pytest.fixture
def unique() -> str:
    """A database name that no other test uses."""
    return f"t{uuid.uuid4().hex[:10]}"


@pytest.fixture(scope="session")
def connection(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Connection:
    """Both sides of a policy over the embedded servers."""
    path = tmp_path_factory.mktemp("policy") / "policy.yaml"
    write_policy(cluster, path)
    return connect(load_policy(path))


@pytest.fixture(scope="session")
def connection4(cluster: Cluster, target4: Side) -> Connection:
    """From metastore 3.1.3 to 4.2.0, the usual migration."""
    return connect(policy(cluster, {"sales": "sales"}, "source", target4.name))


@pytest.fixture
def warehouse(connection: Connection, hive3: HiveDriver, unique: str) -> Warehouse:
    """A fresh source database, not replicated yet."""
    results = hive3.run([f"CREATE DATABASE {unique}", f"ALTER DATABASE {unique} SET OWNER USER hive"])
    assert not [result.error for result in results if result.error]
    return Warehouse(connection, hive3, unique)


@pytest.fixture
def acid(cluster: Cluster, source4: Side, target4: Side, hive4: HiveDriver, unique: str) -> Iterator[Warehouse]:
    """A fresh source database of metastore 4.2.0, not replicated yet; its target is of 4.2.0, too."""
    hive4.execute(f"CREATE DATABASE {unique}")
    yield Warehouse(connect(policy(cluster, {"x": "x"}, source4.name, target4.name)), hive4, unique)
    hive4.run([f"DROP DATABASE {unique} CASCADE"])


@pytest.fixture
def sensor(warehouse: Warehouse) -> Iterator[Sensor]:
    """The sensor on the log of a database with one table, ``plain``, which is not replicated yet."""
    warehouse.sql("CREATE TABLE plain (a INT)")
    warehouse.load_data("plain", "1\n")
    with dg.DagsterInstance.ephemeral() as instance:
        yield Sensor(warehouse, instance)
