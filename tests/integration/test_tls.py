"""Metastores over SSL, WebHDFS over HTTPS: replication, refusals, and what the doctor says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import trustme
from hive_metastore.ttypes import Database, FieldSchema, SerDeInfo, StorageDescriptor, Table

from hive_replication import dump, load, status, verify
from hive_replication.cli.main import run
from hive_replication.connect import connect
from hive_replication.doctor import examine
from hive_replication.errors import Unreachable
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.faults import MetastoreError
from hive_replication.metastore.transport import Access
from hive_replication.policy import Policy
from hive_replication.policy.warehouse import Tls
from hive_replication.tls import NotTrusted
from resources.embedded.cluster import Cluster, Side
from resources.embedded.policy import policy, save_policy

pytestmark = [pytest.mark.servers, pytest.mark.long]

_HTTP = {"metastore.server.thrift.transport.mode": "http"}


@pytest.fixture(scope="module")
def secured(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Metastores 3.1.3 and 4.2.0 with SSL on one HDFS with HTTPS_ONLY."""
    servers = Cluster(tmp_path_factory.mktemp("tls"), tls=True)
    try:
        servers.up(["source", "source4"])
        yield servers
    finally:
        servers.down()


@pytest.fixture
def written(secured: Cluster, unique: str, tmp_path: Path) -> Policy:
    """A policy from 3.1.3 to 4.2.0, also in ``policy.yaml``; its source has a table with one file."""
    made = policy(secured, {unique: unique}, "source", "source4")
    save_policy(made, tmp_path / "policy.yaml")
    source = connect(made).source
    source.metastore.create_database(Database(name=unique, parameters={}))
    place = f"{secured.side('source').warehouse}/{unique}.db/t"
    source.storage.write(f"{place}/first", b"1\n")
    serde = SerDeInfo(serializationLib="org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", parameters={})
    text, keyless = "org.apache.hadoop.mapred.TextInputFormat", "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat"
    columns = [FieldSchema(name="a", type="int")]
    described = StorageDescriptor(cols=columns, location=place, inputFormat=text, outputFormat=keyless, serdeInfo=serde)
    source.metastore.create_table(
        Table(dbName=unique, tableName="t", sd=described, partitionKeys=[], parameters={}, tableType="MANAGED_TABLE")
    )
    return made


def _side(made: Policy, side: str, **changed: object) -> Policy:
    return made.model_copy(update={side: getattr(made, side).model_copy(update=changed)})


def test_a_bootstrap_and_a_window(written: Policy, unique: str) -> None:
    connection = connect(written)
    source = connection.source
    assert source.storage.roots[0].webhdfs.startswith("https://")  # type: ignore[union-attr]
    first = load(connection, dump(connection, unique).directory)
    found = source.metastore.table(unique, "t")
    assert found is not None
    uri = f"{found.sd.location}/second"
    source.storage.write(uri, b"2\n")
    checksum = source.storage.checksum(uri)
    assert checksum is not None
    source.metastore.fire_insert_event(unique, "t", values=None, files=[uri], checksums=[checksum.value], replace=False)
    begun = status(connection, unique).last_evid
    second = load(connection, dump(connection, unique, from_evid=begun).directory)
    assert not first.held
    assert not second.held
    assert first.bytes_copied + second.bytes_copied == 4
    assert {table.table: tuple(table.differences) for table in verify(connection, unique)} == {"t": ()}


def test_an_unknown_authority_leaves_the_target_as_it_was(
    written: Policy, unique: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    connection = connect(written)
    dumped = dump(connection, unique)
    before = connection.target.metastore.current_event_id()
    other = tmp_path / "other.pem"
    trustme.CA().cert_pem.write_to_path(other)
    for side, words in (("source", ["DUMP", unique]), ("target", ["LOAD", "FROM", dumped.directory])):
        save_policy(_side(written, side, tls=Tls(ca=str(other))), tmp_path / "policy.yaml")
        assert run(["--config", str(tmp_path / "policy.yaml"), "REPL", *words]) == 1
        said = capsys.readouterr().err
        assert said.count("authority is not known here") == 1
        assert "set tls.ca of this side in the policy" in said
    assert connection.target.metastore.current_event_id() == before


def test_what_the_doctor_says(written: Policy) -> None:
    found = [one for one in examine(connect(written)) if one.check == "encryption"]
    assert [(one.side, one.verdict) for one in found] == [(side, "ok") for side in ("source", "source", "target", "target")]
    assert all("TLSv1." in one.found and "certificate of" in one.found for one in found)


def test_plain_to_tls_and_the_reverse(written: Policy, source: Side) -> None:
    with pytest.raises(NotTrusted, match="set metastore_ssl: true"):
        Metastore(written.source.metastore).databases()
    with pytest.raises(Unreachable, match="set metastore_ssl: false"):
        Metastore(source.metastore, Access(use_ssl=True), retries=1).databases()


def test_https(secured: Cluster, written: Policy, unique: str) -> None:
    Cluster(secured.directory, {"source-second4": _HTTP}).up(["source-second4"])
    place = secured.side("source-second4").metastore.replace("thrift://", "")
    access = Access(tls=written.target.tls)
    with Metastore(f"https://{place}/metastore", access) as http, Metastore.of(written.target) as other:
        assert http.version() == "4.2.0"
        http.create_database(Database(name=f"{unique}_h", parameters={"a": "b"}))
        found = other.database(f"{unique}_h")
        assert found is not None
        assert found.parameters["a"] == "b"
        assert [event.dbName for event in http.events(http.current_event_id() - 1, http.current_event_id())] == [f"{unique}_h"]
        with pytest.raises(MetastoreError):
            http.create_database(Database(name=f"{unique}_h", parameters={}))
        assert http.drop_database(f"{unique}_h")
    with pytest.raises(NotTrusted, match="write https:// for metastore"):
        Metastore(f"http://{place}/metastore").databases()
