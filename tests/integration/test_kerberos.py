"""Servers with Kerberos, in two realms that trust each other: who has no ticket gets nothing, and is told why."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from pathlib import Path

import pytest

from hive_replication.errors import BadRequest, Unreachable
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.transport import Access
from hive_replication.metastore.types import Database
from hive_replication.policy.warehouse import Kerberos
from resources.embedded import jars, java
from resources.embedded.cluster import Cluster, Side
from resources.embedded.kerberos import Kdc
from tests import kerberos

kerberos.require_extra()
pytestmark = pytest.mark.servers


def kdc_of(side: Side) -> Kdc:
    assert side.kdc
    return side.kdc


def listed(side: Side, cache: Path) -> subprocess.CompletedProcess[str]:
    """What Hadoop's own client answers to ``hdfs dfs -ls /``."""
    path = os.pathsep.join(map(str, (side.conf, *jars.fetch_groups(["hadoop"])["hadoop"].jars)))
    options = (*java.ADD_OPENS, *java.QUICK, *kdc_of(side).java_options)
    command = [str(java.java()), *options, "-cp", path, "org.apache.hadoop.fs.FsShell", "-ls", "/"]
    environment = {**os.environ, "KRB5CCNAME": str(cache), "HADOOP_TOKEN_FILE_LOCATION": ""}  # not this process's tokens
    return subprocess.run(command, capture_output=True, text=True, check=False, env=environment)


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
