"""The embedded servers start, stop and keep their data; what can go wrong at their start says so in one line."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import socket
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import psutil
import psycopg2
import pytest
from hive_metastore import ThriftHiveMetastore
from hive_metastore.ttypes import (
    CheckLockRequest,
    Database,
    DataOperationType,
    LockComponent,
    LockLevel,
    LockRequest,
    LockResponse,
    LockState,
    LockType,
)
from thrift.protocol.TBinaryProtocol import TBinaryProtocol
from thrift.transport.TSocket import TSocket
from thrift.transport.TTransport import TBufferedTransport
from typer.testing import CliRunner

from hive_replication.errors import BadRequest, Unreachable
from hive_replication.policy import load_policy
from resources.embedded import jars, java, processes
from resources.embedded.cli import app
from resources.embedded.cluster import Cluster, Side
from resources.embedded.jars import Jar
from resources.embedded.postgresql import USER


def states(cluster: Cluster) -> dict[str, str]:
    return {server.name.partition(".")[2]: server.state for server in cluster.status()}


def pids(cluster: Cluster) -> dict[str, int | None]:
    return {server.name: server.pid for server in cluster.status()}


def wait_for(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.05)


@contextmanager
def metastore(side: Side) -> Iterator[ThriftHiveMetastore.Client]:
    transport = TBufferedTransport(TSocket("127.0.0.1", int(side.metastore.rpartition(":")[2])))
    transport.open()
    try:
        yield ThriftHiveMetastore.Client(TBinaryProtocol(transport))
    finally:
        transport.close()


def make_database(side: Side, name: str) -> None:
    with metastore(side) as client:
        if name not in client.get_all_databases():
            client.create_database(Database(name=name, parameters={}))
        assert client.get_database(name).locationUri == f"{side.warehouse}/{name}.db"


def lock(side: Side) -> LockResponse:
    component = LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, "reserved", "name", operationType=DataOperationType.NO_TXN)
    with metastore(side) as client:
        return client.lock(LockRequest([component], txnid=0, user="test", hostname="localhost"))


def folder_exists(side: Side, path: str) -> bool:
    with urllib.request.urlopen(f"{side.webhdfs}/webhdfs/v1{path}?op=LISTSTATUS", timeout=10) as answer:
        return answer.status == 200


@pytest.mark.long
@pytest.mark.servers
def test_life_of_a_cluster(tmp_path: Path) -> None:
    # One test for what happens one after another: every start of real servers takes seconds.
    cluster = Cluster(tmp_path / "data")
    try:
        cluster.up(["source"])
        assert states(cluster) == dict.fromkeys(("namenode", "datanode", "database", "metastore"), "running")
        side = cluster.side("source")
        make_database(side, "kept")
        first = pids(cluster)

        cluster.up(["source"])
        assert pids(cluster) == first, "what runs is left alone"

        psutil.Process(first["source.metastore"]).kill()
        wait_for(lambda: states(cluster)["metastore"] == "died")
        other = socket.create_server(("127.0.0.1", int(side.metastore.rpartition(":")[2])))
        with other, pytest.raises(BadRequest, match=r"source\.metastore cannot start: another program listens on its port"):
            cluster.up(["source"])
        cluster.up(["source"])
        assert states(cluster)["metastore"] == "running"
        assert pids(cluster)["source.namenode"] == first["source.namenode"]
        assert pids(cluster)["source.metastore"] != first["source.metastore"]

        cluster.down(["source.metastore"])
        assert states(cluster) == {"namenode": "running", "datanode": "running", "database": "running", "metastore": "stopped"}
        cluster.down(["source.hdfs", "source.database"])
        assert set(states(cluster).values()) == {"stopped"}
        cluster.up(["source.database"])
        assert [name for name, state in states(cluster).items() if state == "running"] == ["database"]
        cluster.down()
        assert set(states(cluster).values()) == {"stopped"}
        assert not processes.listening(int(side.metastore.rpartition(":")[2]))

        cluster.up(["source"])
        assert cluster.side("source") == side, "addresses stay"
        make_database(side, "kept")
        assert folder_exists(side, "/source/warehouse/kept.db")
    finally:
        cluster.down()


@pytest.mark.servers
def test_locks_of_dead_clients_time_out(cluster: Cluster) -> None:
    name = "source-locks"
    soon = dict.fromkeys(("metastore.timedout.txn.reaper.start", "metastore.timedout.txn.reaper.interval"), "1s")
    own = Cluster(cluster.directory, {name: {"hive.txn.timeout": "2s", **soon}})
    try:
        own.up([name])
        side = own.side(name)
        assert lock(side).state == LockState.ACQUIRED
        waiting = lock(side)
        assert waiting.state == LockState.WAITING
        with metastore(side) as client:
            request = CheckLockRequest(lockid=waiting.lockid)
            wait_for(lambda: client.check_lock(request).state == LockState.ACQUIRED)
    finally:
        own.down([f"{name}.metastore"])


@pytest.mark.servers
def test_policy_for_the_servers(cluster: Cluster, source: Side, target: Side, tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["status", "--dir", str(cluster.directory)], env={"COLUMNS": "200"})
    assert source.metastore in shown.output
    assert target.hdfs.rstrip("/") in shown.output
    assert shown.output.count("running") >= 6
    started = CliRunner().invoke(app, ["up", "--dir", str(cluster.directory), "source", "target"])
    assert f"export HIVE_REPL_CONFIG={cluster.directory / 'policy.yaml'}" in started.output.replace("\n", "")
    policy = load_policy(cluster.directory / "policy.yaml")
    assert policy.source.metastore == source.metastore
    assert policy.source.roots[0].webhdfs == source.webhdfs
    assert policy.dump_root == f"{target.hdfs}repl/dumps"
    assert policy.external_root == f"{target.hdfs}external"


def test_without_java_one_line_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.delenv("JAVA_HOME", raising=False)
    result = CliRunner().invoke(app, ["up", "--dir", str(tmp_path)])
    assert result.exit_code == 2
    assert result.output.startswith(f"hive-repl: {java.NEEDED}")
    assert result.output.count("\n") == 1


def test_old_java_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = tmp_path / "bin" / "java"
    old.parent.mkdir()
    old.write_text("#!/bin/sh\necho 'openjdk version \"1.8.0_392\"' >&2\n")
    old.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    with pytest.raises(BadRequest, match=r"Java 17 or 21 is needed.* is Java 8\)"):
        java.java()


def test_a_folder_with_metastores_on_derby_is_refused(tmp_path: Path) -> None:
    (tmp_path / "source.metastore" / "db").mkdir(parents=True)
    result = CliRunner().invoke(app, ["up", "--dir", str(tmp_path)])
    assert result.exit_code == 2
    advice = "delete it, or name another folder"
    assert result.output.strip() == f"hive-repl: {tmp_path} has metastores on Derby, made by an earlier version: {advice}"
    assert [path.name for path in tmp_path.iterdir()] == ["source.metastore"]


@pytest.mark.parametrize("names", [["up", "Source!"], ["down", "nobody"]])
def test_unknown_names_are_refused(names: list[str], tmp_path: Path) -> None:
    result = CliRunner().invoke(app, [*names, "--dir", str(tmp_path)])
    assert result.exit_code == 2
    assert names[1] in result.output


def test_another_process_with_a_recorded_pid_is_never_stopped(tmp_path: Path) -> None:
    (tmp_path / "pid.json").write_text(json.dumps({"pid": os.getpid(), "started": 1.0}))
    assert processes.running(tmp_path) is None
    processes.stop([tmp_path])  # this very process, were it not for its start time
    assert not (tmp_path / "pid.json").exists()


@pytest.fixture
def maven(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A Maven repository on loopback with one artifact, and an empty local repository."""
    folder = tmp_path / "remote" / "org" / "example" / "thing" / "1.0"
    folder.mkdir(parents=True)
    (folder / "thing-1.0.jar").write_bytes(b"content of the jar")
    handler = partial(SimpleHTTPRequestHandler, directory=str(tmp_path / "remote"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    monkeypatch.setattr(SimpleHTTPRequestHandler, "log_message", lambda *args: None)
    monkeypatch.setenv("HIVE_REPL_MAVEN_URL", f"http://127.0.0.1:{server.server_port}/")
    monkeypatch.setenv("M2_REPO", str(tmp_path / "local"))
    yield folder
    server.shutdown()
    server.server_close()


def test_jars_are_fetched_once_and_proven(maven: Path, tmp_path: Path) -> None:
    jar = Jar("org.example:thing:1.0", hashlib.sha256(b"content of the jar").hexdigest())
    (path,) = jars.fetch([jar])
    assert path == tmp_path / "local" / "org" / "example" / "thing" / "1.0" / "thing-1.0.jar"
    assert path.read_bytes() == b"content of the jar"
    (maven / "thing-1.0.jar").unlink()
    assert jars.fetch([jar]) == [path], "present: nothing is downloaded"
    path.write_bytes(b"something else")
    with pytest.raises(BadRequest, match=rf"org\.example:thing:1.0 has SHA-256 .*delete {path}"):
        jars.fetch([jar])


def test_a_wrong_download_is_not_kept(maven: Path, tmp_path: Path) -> None:
    with pytest.raises(BadRequest, match=r"org\.example:thing:1.0 was downloaded with SHA-256"):
        jars.fetch([Jar("org.example:thing:1.0", "0" * 64)])
    assert not list((tmp_path / "local").rglob("*.jar"))
    with pytest.raises(Unreachable, match=r"cannot download org\.example:other:1.0"):
        jars.fetch([Jar("org.example:other:1.0", "0" * 64)])


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # jgo closes no answer that it refuses
def test_a_download_is_tried_again(maven: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    answer = SimpleHTTPRequestHandler.do_GET

    def busy_at_first(self: SimpleHTTPRequestHandler) -> None:
        asked.append(self.path)
        answer(self) if len(asked) > 1 else self.send_error(503)

    monkeypatch.setattr(SimpleHTTPRequestHandler, "do_GET", busy_at_first)
    (path,) = jars.fetch([Jar("org.example:thing:1.0", hashlib.sha256(b"content of the jar").hexdigest())])
    assert path.read_bytes() == b"content of the jar"
    assert len([name for name in asked if name.endswith(".jar")]) == 2
    gc.collect()


@pytest.mark.servers
def test_nobody_else_on_the_network_reaches_a_server(cluster: Cluster, source4: Side) -> None:
    """None of them asks who calls, and a metastore deletes what its tables name: they listen on the loopback interface only."""
    listening = {
        (server.name, socket.laddr.ip)
        for server in cluster.status()
        if server.pid is not None
        for socket in psutil.Process(server.pid).net_connections("inet")
        if socket.status == psutil.CONN_LISTEN
    }
    assert {name.partition(".")[2] for name, _ in listening} >= {"namenode", "datanode", "database", "metastore"}
    assert {address.removeprefix("::ffff:") for _, address in listening} == {"127.0.0.1"}, listening


@pytest.mark.servers
def test_other_accounts_of_this_machine_get_nothing_from_a_database(cluster: Cluster) -> None:
    """Who may connect to PostgreSQL may run programs as its account."""
    server = cluster.database("source")
    with pytest.raises(psycopg2.OperationalError, match="password authentication failed"):
        psycopg2.connect(host="127.0.0.1", port=server.port, user=USER, password="wrong", dbname="source")
    secrets = cluster.directory / "source.database" / "db", cluster.directory / "source.metastore" / "conf"
    assert [folder.stat().st_mode & 0o077 for folder in secrets] == [0, 0]
    found = psutil.Process(pids(cluster)["source.database"])
    assert server.password not in " ".join(found.cmdline())
