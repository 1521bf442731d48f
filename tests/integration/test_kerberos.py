"""Servers with Kerberos, in two realms that trust each other: who has no ticket gets nothing, and is told why."""

from __future__ import annotations

import base64
import logging
import re
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import dagster as dg
import psutil
import pytest

from hive_replication import verify
from hive_replication.connect import Connection, connect
from hive_replication.copy.thread_copier import ThreadCopier
from hive_replication.doctor import examine
from hive_replication.errors import BadRequest, ReplicationError, Unreachable
from hive_replication.load.report import LoadReport
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.transport import Access
from hive_replication.metastore.types import Database
from hive_replication.policy import Root
from hive_replication.policy.warehouse import Account, Kerberos
from hive_replication.storage import Storage
from hive_replication.storage.hdfs_backend import HdfsBackend
from hive_replication.storage.token_file import FILE
from repl_assets.catalog.keys import Window
from resources.embedded.cluster import Cluster, Side
from resources.embedded.kerberos import Kdc
from resources.embedded.policy import policy
from resources.spark_copier import SparkCopier
from tests import kerberos
from tests.hadoop import attempted
from tests.origin import Origin
from tests.project import Project
from tests.warehouse import Warehouse

kerberos.require_extra()
pytestmark = [pytest.mark.servers, pytest.mark.long]

TICKET = 60  # seconds that a ticket lives
MIB = 1 << 20


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with kerberos.servers(tmp_path_factory.mktemp("kerberos"), "source", "target4", ticket_seconds=TICKET) as cluster:
        yield cluster


@pytest.fixture(scope="module")
def connection(secured: Cluster) -> Connection:
    return connect(policy(secured, {"sales": "sales"}, "source", "target4"))


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """All delegation tokens that this process has got."""
    found: set[str] = set()
    put = FILE.put

    def noted(service: str, token: str) -> None:
        found.add(token)
        put(service, token)

    monkeypatch.setattr(FILE, "put", noted)
    return found


@pytest.fixture
def origin(connection: Connection, unique: str) -> Origin:
    """A source database of three tables with five files."""
    made = Origin(connection, unique)
    made.create_database()
    made.create("plain")
    made.create("empty")
    made.create("parts", "d1", "d2")
    made.insert("plain", "1\n2\n")
    made.insert("plain", "3\n" * MIB)  # is more than one packet of the data transfer
    for day in ("d1", "d2"):
        made.insert("parts", f"{day}\n", day)
    return made


def warehouse(origin: Origin, copier: Any = None) -> Warehouse:
    return Warehouse(origin.connection, None, origin.database, copier)  # type: ignore[arg-type]


def assert_proven(connection: Connection, database: str, report: LoadReport, files: int) -> None:
    assert report.held == ()
    assert sum(report.copies.executors.values()) == files
    assert report.unproven == []
    found = verify(connection, database)
    assert {one.table: one.differences for one in found} == dict.fromkeys(("plain", "empty", "parts"), ())


def test_bootstrap_and_window_in_threads(connection: Connection, origin: Origin) -> None:
    replica = warehouse(origin)
    assert_proven(connection, origin.database, replica.replicate(), 4)
    origin.insert("parts", "new\n", "d1", overwrite=True)
    origin.add("parts", "d3")
    origin.insert("parts", "d3\n", "d3")
    assert_proven(connection, origin.database, replica.replicate(), 2)
    replica.assert_equal()


def test_executors_get_tokens_and_no_ticket_and_nobody_sees_them(
    connection: Connection,
    origin: Origin,
    tokens: set[str],
    tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
    capfd: pytest.CaptureFixture[str],
) -> None:
    from pyspark import SparkContext

    if (other := SparkContext._active_spark_context) is not None:
        other.stop()
    settings = {
        "spark.executorEnv.KRB5_CONFIG": "/nowhere",  # no executor can ask a KDC
        "spark.executorEnv.KRB5CCNAME": "/nowhere",
        "spark.eventLog.enabled": "true",  # what Spark's UI shows
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": str(tmp_path),
        "spark.log.level": "INFO",
    }
    resource = SparkCopier.from_settings(settings)
    commands: list[str] = []
    try:
        caplog.set_level(logging.DEBUG, "hive_replication")
        caplog.set_level(logging.DEBUG, "urllib3")
        copier = resource.copier(connection.source.storage, connection.target.storage, description="secured")
        replica = warehouse(origin, copier)
        first = replica.replicate()
        commands = [" ".join(process.info["cmdline"] or ()) for process in psutil.process_iter(["cmdline"])]
        assert set(first.copies.executors) == {"spark"}
        assert_proven(connection, origin.database, first, 4)
        before = set(tokens)
        origin.insert("plain", "4\n")
        assert_proven(connection, origin.database, replica.replicate(), 1)
        assert len(tokens - before) >= 2, "each job has tokens of its own, one for each side"
        shown = str(resource.spark_context().getConf().getAll())
    finally:
        resource.spark_context().stop()
    events = "".join(path.read_text(errors="replace") for path in tmp_path.rglob("*") if path.is_file())
    assert "secured" in events
    written = [caplog.text, *capfd.readouterr(), events, shown, *commands]
    assert "delegation=***" in caplog.text, "requests with tokens were logged"
    assert not [text[:200] for text in written for token in tokens if token in text]


def test_dagster_keeps_no_token_and_no_key(connection: Connection, origin: Origin, tokens: set[str], tmp_path: Path) -> None:
    origin.connection.source.storage.ls(origin.connection.source.storage.roots[0].uri)
    kept = {store(side.storage).delegation.text() for side in (connection.source, connection.target)}  # type: ignore[union-attr]
    with dg.DagsterInstance.local_temp(str(tmp_path)) as instance:
        project = Project(warehouse(origin), instance)
        assert project.window(Window(None, 1)).success
        (made,) = project.events(project.database("load"))
        assert made.metadata["files by threads"].value == 4
    side = connection.source.policy.source.kerberos
    assert side
    keytab = Path(str(side.keytab)).read_bytes()
    passwords = {line.split("\t")[1] for line in (Path(str(side.keytab)).parent / "principals").read_text().splitlines()}
    secrets = {*(tokens | kept | passwords), base64.b64encode(keytab).decode(), keytab.hex()}
    stored = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert any(origin.database.encode() in content for content in stored), "the run is there"
    assert not [secret for secret in secrets for content in stored if secret.encode() in content]


def test_doctor_says_which_tickets_and_tokens_there_are(connection: Connection) -> None:
    found = {(one.side, one.check): one.found for one in examine(connection) if one.verdict == "ok"}
    for side, encrypts in (("source", "false"), ("target", "true")):
        assert f"dfs.encrypt.data.transfer={encrypts}" in found[side, "HDFS's defaults"]
        assert re.search(rf"repl@{side.upper()}\.TEST by /.*/repl\.keytab, until 20\S+ \d\d:\d\d:\d\d UTC", found[side, "ticket"])
        assert re.search(r"of hdfs://.*, until 20\S+ \d\d:\d\d:\d\d UTC, renewed before", found[side, "delegation token"])
        assert found[side, "data transfer"].startswith("dfs.data.transfer.protection=privacy of hdfs://")


def test_a_load_outlives_tickets_and_tokens(connection: Connection, origin: Origin, tokens: set[str]) -> None:
    """Files are copied so slowly that tickets end, and tokens that are not renewed, and the oldest are replaced."""
    origin.insert("plain", "5\n" * (4 * MIB))
    began = time.monotonic()
    limit = ThreadCopier(connection.source.storage, connection.target.storage, bandwidth=11 * MIB / (1.3 * TICKET))
    replica = warehouse(origin, limit)
    assert_proven(connection, origin.database, replica.replicate(), 5)
    assert time.monotonic() - began > 1.2 * TICKET
    assert len(tokens) > 2, "both sides have got another token"
    origin.insert("plain", "6\n")
    assert_proven(connection, origin.database, warehouse(origin).replicate(), 1)


def store(storage: Storage) -> HdfsBackend:
    root = storage.roots[0]
    found = storage._backend(root.uri, root)
    assert isinstance(found, HdfsBackend)
    return found


@pytest.mark.parametrize("call", ["checksum", "ls", "write"])
def test_a_token_that_is_refused_is_replaced(connection: Connection, unique: str, call: str) -> None:
    uri = f"{connection.source.policy.source.roots[0].uri}tmp/{unique}"
    storage = Storage(connection.source.storage.roots)
    storage.write(uri, b"abc")
    delegation = store(storage).delegation
    assert delegation
    old = delegation.text()
    query = urlencode({"op": "CANCELDELEGATIONTOKEN", "token": old})
    assert delegation._pool.request("PUT", f"{delegation._addresses[0]}/webhdfs/v1/?{query}").status == 200
    again = Storage(connection.source.storage.roots)  # with connections of its own
    getattr(again, call)(*{"write": (uri, b"abcd")}.get(call, (uri,)))
    assert delegation.text() != old


ROOT = Root(uri="hdfs://127.0.0.1:1/", webhdfs="http://127.0.0.1:1")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kerberos": None}, r"if it asks for Kerberos, set kerberos of this side in the policy"),
        (
            {"kerberos": Account(principal="who@SOURCE.TEST", keytab="/nowhere")},
            r"would be used by .* and who@SOURCE\.TEST in",
        ),
        ({"webhdfs": None}, r"has no webhdfs in the policy: with Kerberos the delegation token is had there; set it"),
    ],
)
def test_what_is_wrong_with_hdfs_is_told(connection: Connection, change: dict[str, Any], message: str) -> None:
    root = connection.source.storage.roots[0]
    connection.source.storage.ls(root.uri)  # its account has a token here
    with pytest.raises(ReplicationError, match=message):
        Storage((root.model_copy(update=change),)).status(root.uri)


def test_webhdfs_without_kerberos_in_the_policy_is_told(connection: Connection) -> None:
    root = connection.source.storage.roots[0].model_copy(update={"kerberos": None})
    with pytest.raises(ReplicationError, match="WebHDFS asks for Kerberos: set kerberos of this side in the policy"):
        Storage((root,)).checksum(f"{root.uri}x")


@pytest.mark.parametrize(
    ("account", "message"),
    [
        (Account(), r"the ticket cache has no ticket for HTTP@localhost: .*; run kinit"),
        (Account(principal="who@SOURCE.TEST", keytab="/KEYTAB"), r"who@SOURCE\.TEST has no ticket .* check that the keytab"),
        (Account(principal="repl@SOURCE.TEST", keytab="/nowhere"), r"the keytab /nowhere of .* is not there or cannot be read"),
    ],
)
def test_who_has_no_ticket_is_told(
    connection: Connection, account: Account, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hive_replication.storage.delegation._SHARED", {})
    root = connection.source.storage.roots[0]
    assert root.kerberos
    keytab = root.kerberos.keytab if account.keytab == "/KEYTAB" else account.keytab
    account = account.model_copy(update={"keytab": keytab})
    with pytest.raises(ReplicationError, match=message):
        Storage((root.model_copy(update={"kerberos": account}),)).status(root.uri)


def test_an_hdfs_without_kerberos_gives_no_token(cluster: Cluster, connection: Connection) -> None:
    side = cluster.side("source")
    account = connection.source.storage.roots[0].kerberos
    root = Root(uri=side.hdfs, webhdfs=side.webhdfs, kerberos=account)
    with pytest.raises(ReplicationError, match=r"gives no delegation token .*: take kerberos out of this side of the policy"):
        Storage((root,)).status(root.uri)


def kdc_of(side: Side) -> Kdc:
    assert side.kdc
    return side.kdc


def listed(side: Side, cache: Path) -> subprocess.CompletedProcess[str]:
    """What Hadoop's own client answers to ``hdfs dfs -ls /``."""
    return attempted(side, "dfs", "-ls", "/", KRB5CCNAME=str(cache), HADOOP_TOKEN_FILE_LOCATION="")  # not this process's tokens


def test_hadoops_client_is_asked_for_a_ticket(secured: Cluster, tmp_path: Path) -> None:
    side = secured.side("source")
    without = listed(side, tmp_path / "none")
    assert without.returncode != 0
    assert "Client cannot authenticate via:[TOKEN, KERBEROS]" in without.stderr
    having = listed(side, kerberos.kinit(kdc_of(side), tmp_path / "cache"))
    assert having.returncode == 0, having.stderr
    assert "/source" in having.stdout


def test_two_accounts_of_two_realms_in_one_process(secured: Cluster) -> None:
    name = f"k{uuid.uuid4().hex[:8]}"
    for side in map(secured.side, ("source", "target4")):
        with Metastore(side.metastore, Access(kerberos=kerberos.keytab(kdc_of(side)))) as metastore:
            # Longer than a frame of SASL, so that an answer is put together from some.
            metastore.create_database(Database(name=name, parameters={f"p{n}": "x" * 1000 for n in range(200)}))
            made = metastore.database(name)
            assert made
            assert len(made.parameters) >= 200
            assert metastore.drop_database(name)


def test_realms_trust_each_other(secured: Cluster) -> None:
    source, target = secured.side("source"), secured.side("target4")
    stranger = kerberos.keytab(kdc_of(target)).model_copy(update={"metastore_principal": kdc_of(source).metastore_principal})
    with Metastore(source.metastore, Access(kerberos=stranger)) as metastore:
        assert "default" in metastore.databases()


def test_ticket_cache_of_kinit(secured: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    side = secured.side("source")
    account = Kerberos(metastore_principal=kdc_of(side).metastore_principal)
    monkeypatch.setenv("KRB5CCNAME", str(tmp_path / "cache"))
    with Metastore(side.metastore, Access(kerberos=account), retries=1) as metastore:
        with pytest.raises(Unreachable, match=r"the ticket cache has no ticket for hive/localhost@SOURCE\.TEST: .*; run kinit"):
            metastore.databases()
        kerberos.kinit(kdc_of(side), tmp_path / "cache")
        assert "default" in metastore.databases()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"keytab": "/nowhere"}, r"the keytab /nowhere of repl@SOURCE\.TEST is not there or cannot be read"),
        (
            {"principal": "who@SOURCE.TEST"},
            r"who@SOURCE\.TEST has no ticket .* check that the keytab .* has a key of that principal",
        ),
        ({"metastore_principal": "hive/_HOST@NO.TEST"}, r"hive/localhost@NO\.TEST: .* check metastore_principal in the policy"),
        ({"metastore_principal": "HTTP/_HOST@SOURCE.TEST"}, r"the metastore refused the ticket \(GSS initiate failed\)"),
    ],
)
def test_what_is_wrong_is_told(secured: Cluster, change: dict[str, str], message: str) -> None:
    side = secured.side("source")
    account = kerberos.keytab(kdc_of(side)).model_copy(update=change)
    with Metastore(side.metastore, Access(kerberos=account), retries=1) as metastore, pytest.raises(Unreachable, match=message):
        metastore.databases()


def test_without_the_extra_its_name_is_told(secured: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    side = secured.side("source")
    monkeypatch.setitem(sys.modules, "gssapi", None)
    account = kerberos.keytab(kdc_of(side))
    with (
        Metastore(side.metastore, Access(kerberos=account)) as metastore,
        pytest.raises(BadRequest, match=r"hive-replication\[kerberos\]"),
    ):
        metastore.databases()


def test_a_side_without_kerberos_does_not_get_it_later(tmp_path: Path) -> None:
    (tmp_path / "ports.json").write_text('{"source": {"namenode": 1, "metastore": 2}}')
    with pytest.raises(BadRequest, match=r"source in .* has no Kerberos"):
        Cluster(tmp_path, kerberos=True).up(["source"])
