"""The doctor on real servers."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from hive_replication.cli.main import run
from hive_replication.connect import connect
from hive_replication.doctor import examine
from hive_replication.policy import Policy, load_policy
from resources.embedded.cluster import Cluster, Side
from resources.embedded.policy import policy as embedded_policy
from resources.embedded.policy import write_policy
from tests.receivers import web_server

pytestmark = pytest.mark.servers

_BARE = {
    "hive.metastore.transactional.event.listeners": "",
    "hive.repl.cm.enabled": "false",
    "metastore.catalog.default": "other",
}


@pytest.fixture
def policy(cluster: Cluster, tmp_path: Path, unique: str) -> Path:
    write_policy(cluster, tmp_path / "policy.yaml", {unique: unique})
    return tmp_path / "policy.yaml"


def verdicts(policy: Policy) -> dict[tuple[str, str], str]:
    return {(one.side, one.check): one.verdict for one in examine(connect(policy))}


def test_working_servers(policy: Path, unique: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--config", str(policy), "--json", "doctor"]) == 0
    answer = json.loads(capsys.readouterr().out)
    found = {(one["side"], one["check"]): one for one in answer["findings"]}
    assert answer["working"] is True
    assert {name for name, one in found.items() if one["verdict"] != "ok"} == {
        ("source", "cmroot retention"),  # Hive 3.1.3's defaults of one day
        ("source", "event retention"),
        ("source", f"database {unique}"),
    }
    assert "hive.repl.cm.retain=10d" in found["source", "cmroot retention"]["advice"]
    assert {("target", "free space"), ("target", "locks"), ("dump root", "write")} <= found.keys()
    assert run(["--config", str(policy), "doctor"]) == 0
    lines = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [(one["found"], one["advice"]) for one in answer["findings"] if one["verdict"] == "warning"] == [
        (line[3], line[4]) for line in lines if line[2] == "warning"
    ]
    storage = connect(load_policy(policy)).store.storage
    assert not [file for file in storage.files(storage.roots[0].uri, hidden=True) if "doctor" in file.uri]


def test_servers_that_cannot_work(policy: Path, cluster: Cluster) -> None:
    whole = load_policy(policy)
    elsewhere = whole.model_copy(update={"target": whole.target.model_copy(update={"metastore": "thrift://127.0.0.1:1"})})
    assert verdicts(elsewhere)["target", "metastore"] == "error"
    bare = Cluster(
        cluster.directory,
        {"source-bare": _BARE},
    )
    bare.up(["source-bare"])
    try:
        side = bare.side("source-bare")
        found = verdicts(whole.model_copy(update={"source": whole.source.model_copy(update={"metastore": side.metastore})}))
    finally:
        bare.down(["source-bare.metastore"])
    assert found["source", "notification log"] == "error"
    assert found["source", "change management"] == "warning"
    assert found["source", "catalog"] == "error"


def test_webhdfs_of_both_sides_is_asked(policy: Path) -> None:
    """Nobody asked it: a login page in its place was found by the first window."""
    text = policy.read_text(encoding="utf-8")
    assert {verdicts(load_policy(policy)).get((side, "WebHDFS")) for side in ("source", "target")} == {"ok"}
    with web_server() as server:
        policy.write_text(re.sub(r"webhdfs: \S+", f"webhdfs: {server.url}", text), encoding="utf-8")
        found = verdicts(load_policy(policy))
    assert {found["source", "WebHDFS"], found["target", "WebHDFS"]} == {"error"}


def test_named_directories_are_written_to_and_left_as_they_were(policy: Path, target: Side, unique: str) -> None:
    made = {"external_root": f"{target.hdfs}{unique}/a/b", "functions_root": f"{target.hdfs}{unique}-locked/f"}
    whole = load_policy(policy).model_copy(update=made)
    storage = connect(whole).target.storage
    storage.mkdirs(f"{target.hdfs}{unique}")
    storage.write(f"{target.hdfs}{unique}-locked", b"a file, where a directory is needed")
    found = verdicts(whole)
    assert found["target", "write to external_root"] == "ok"
    assert storage.ls(f"{target.hdfs}{unique}") == []
    assert found["target", "write to functions_root"] == "error"


def test_targets_of_transactional_tables(cluster: Cluster, source4: Side, target: Side, target4: Side, unique: str) -> None:
    """A target of Hive 3 cannot hold them; of Hive 4 the metastore tells its ``hive.txn.manager`` only."""
    check = "target", "transactional tables"
    for side, verdict, advice in ((target, "error", "acid: {replicate: false}"), (target4, "warning", "DbTxnManager")):
        connection = connect(embedded_policy(cluster, {unique: unique}, source4.name, side.name))
        (found,) = (one for one in examine(connection) if (one.side, one.check) == check)
        assert found.verdict == verdict
        assert advice in found.advice
