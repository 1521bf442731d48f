"""HDFS with two NameNodes on both sides: the active one dies in a load or dump, the other takes over, and the work goes on."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from hive_replication.connect import Connection, connect
from hive_replication.doctor.webhdfs import webhdfs
from hive_replication.dump.command import repl_dump
from hive_replication.load.command import repl_load
from hive_replication.statements import ReplDump, ReplLoad
from hive_replication.storage import paths
from hive_replication.verify import compare_database
from resources.embedded.cluster import DEFAULT_SIDES, Cluster
from resources.embedded.policy import policy
from resources.spark_copier import SparkCopier
from tests import kerberos
from tests.hadoop import hdfs
from tests.origin import Origin
from tests.outages import Failover, Striking, create_with_files, kill

pytestmark = [pytest.mark.servers, pytest.mark.long]

_THREADS = 128  # files in flight, as many as a copier has by default


@pytest.fixture(scope="module", params=["plain", "tls", "kerberos"])
def available(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Source and target with high availability."""
    folder = tmp_path_factory.mktemp("ha")
    if request.param == "kerberos":
        kerberos.require_extra()
        with kerberos.servers(folder, *DEFAULT_SIDES, ha=True) as servers:
            yield servers
        return
    kept = os.environ.get("HIVE_REPL_TEST_CLUSTER")
    tls = request.param == "tls"
    servers = Cluster(Path(f"{kept}-ha{'-tls' if tls else ''}") if kept else folder, ha=True, tls=tls)
    try:
        servers.up()
        yield servers
    finally:
        if not kept:
            servers.down()


@pytest.fixture
def both(available: Cluster, unique: str) -> Connection:
    available.up()  # what an earlier test has killed
    return connect(policy(available, {unique: unique}))


def equal(connection: Connection, database: str, tables: list[str]) -> None:
    found = {one.table: one.differences for one in compare_database(connection.source, connection.target, database)}
    assert found == dict.fromkeys(tables, ())


def test_erasure_coded_directories_are_replicated_and_proven(available: Cluster, both: Connection, unique: str) -> None:
    """XOR-2-1 needs no more DataNodes than there are; a read that has to rebuild a lost block is not tried."""
    source, target = available.side("source"), available.side("target")
    origin = Origin(both, unique)
    origin.create_database()
    replica = f"{paths.split(target.warehouse)[2]}/{unique}.db/other"
    both.target.storage.mkdirs(f"{target.warehouse}/{unique}.db/other")
    for side in (source, target):
        hdfs(side, "ec", "-enablePolicy", "-policy", "XOR-2-1-1024k")
    for table in ("coded", "other"):
        origin.create(table)
    hdfs(source, "ec", "-setPolicy", "-path", paths.split(origin.location("coded"))[2], "-policy", "XOR-2-1-1024k")
    hdfs(target, "ec", "-setPolicy", "-path", replica, "-policy", "XOR-2-1-1024k")
    for table in ("coded", "other"):
        both.source.storage.write(f"{origin.location(table)}/large", os.urandom(3_000_000))
        origin.insert(table, "small\n")
    report = repl_load(
        both.target, ReplLoad(repl_dump(both.source, ReplDump(unique), both.store).directory), both.store, both.copier
    )
    assert report.held == ()
    assert {one.proof.algorithm for one in report.copies if one.task.target.endswith("/large")} == {"CRC32C"}
    equal(both, unique, ["coded", "other"])
    assert hdfs(target, "ec", "-getPolicy", "-path", f"{replica}/large").strip() == "XOR-2-1-1024k"


@pytest.mark.parametrize("files", [300, 2000])
def test_a_bootstrap_and_a_window_outlive_the_death_of_a_namenode(
    available: Cluster, both: Connection, unique: str, files: int
) -> None:
    source, target, store = both.source, both.target, both.store
    origin = Origin(both, unique)
    tables = create_with_files(origin, files)
    at_target = Failover(available, "target")
    copier = Striking(both.copier, files // 3, at_target.begin)
    report = repl_load(target, ReplLoad(repl_dump(source, ReplDump(unique), store).directory), store, copier)
    at_target.end()
    assert (report.held, sum(report.files_by_origin.values())) == ((), files)
    assert copier.proven_twice == []
    assert copier.written <= files + _THREADS
    equal(both, unique, tables)

    for number in range(files // 10):
        origin.insert(tables[number % len(tables)], f"{number}\n", "1")
    at_source = Failover(available, "source")
    copier = Striking(both.copier, files // 30, at_source.begin)
    report = repl_load(
        target, ReplLoad(repl_dump(source, ReplDump(unique, from_evid=report.to_evid), store).directory), store, copier
    )
    at_source.end()
    assert (report.held, sum(report.files_by_origin.values())) == ((), files // 10)
    assert copier.proven_twice == []
    equal(both, unique, tables)


def test_a_dump_waits_until_a_namenode_is_active(available: Cluster, both: Connection, unique: str) -> None:
    tables = create_with_files(Origin(both, unique), 20)
    at_source, at_target = Failover(available, "source"), Failover(available, "target")
    at_source.begin()
    at_target.begin()
    dumped = repl_dump(both.source, ReplDump(unique), both.store)
    report = repl_load(both.target, ReplLoad(dumped.directory), both.store, both.copier)
    at_source.end()
    at_target.end()
    assert report.held == ()
    equal(both, unique, tables)


def test_doctor_says_which_namenode_is_active(available: Cluster, both: Connection) -> None:
    (found,) = webhdfs(both.target.storage, "target", both.source.storage)
    namenodes = available.nameservice("target")
    active = namenodes.active()
    states = {role: "active" if role == active else "standby" for role in ("namenode", "namenode2")}
    assert found.verdict == "ok"
    addresses = dict(zip(states, namenodes.web.split(","), strict=True))
    assert found.found.split("; ") == [f"{addresses[role]}: {states[role]}" for role in states]
    standby = next(role for role in states if role != active)
    kill(available, f"target.{standby}")
    (found,) = webhdfs(both.target.storage, "target", both.source.storage)
    assert found.verdict == "warning"
    assert found.advice.startswith(f"start {addresses[standby]}: ")


@pytest.mark.parametrize("files", [300, 2000])
@pytest.mark.parametrize("side", ["target", "source"])
def test_a_bootstrap_outlives_the_death_of_a_datanode(
    available: Cluster, both: Connection, unique: str, side: str, files: int
) -> None:
    tables = create_with_files(Origin(both, unique), files)
    copier = Striking(both.copier, files // 3, lambda: kill(available, f"{side}.datanode"))
    dumped = repl_dump(both.source, ReplDump(unique), both.store)
    report = repl_load(both.target, ReplLoad(dumped.directory), both.store, copier)
    assert (report.held, sum(report.files_by_origin.values())) == ((), files)
    assert copier.proven_twice == []
    equal(both, unique, tables)


def test_spark_executors_outlive_the_death_of_a_namenode(available: Cluster, both: Connection, unique: str) -> None:
    tables = create_with_files(Origin(both, unique), 300)
    spark = SparkCopier.from_settings({"spark.app.name": "failover"}, threads=8)
    dumped = repl_dump(both.source, ReplDump(unique), both.store)
    at_target = Failover(available, "target")
    at_target.begin()  # a Spark task tells its answers at its end: it begins while no NameNode is active
    try:
        copier = Striking(spark.copier(both.source.storage, both.target.storage, description=unique), 0, lambda: None)
        report = repl_load(both.target, ReplLoad(dumped.directory), both.store, copier)
    finally:
        spark.spark_context().stop()
        at_target.end()
    assert (report.held, report.files_by_origin) == ((), {"source": 300})
    assert {result.executor for result in copier.results} == {"spark"}
    equal(both, unique, tables)
