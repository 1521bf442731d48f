"""What an operator asks for and does on the command line: reports, history, status, alarms, repair, undo and its release."""

from __future__ import annotations

import getpass
import json
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml

from hive_replication.cli.main import run
from hive_replication.load.records import RecordStore
from hive_replication.load.report import LoadReport
from hive_replication.metastore.types import copy_of
from hive_replication.policy import load_policy
from resources.embedded.policy import save_policy
from tests.policy_sensor import Sensor
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]

ME = f"{getpass.getuser()}@{socket.gethostname()}"


@dataclass
class Shell:
    """``hive-repl`` with the policy of one database."""

    config: Path
    capsys: pytest.CaptureFixture[str]

    def __call__(self, *words: str, code: int = 0) -> Any:
        """Runs a command; returns what ``--json`` prints."""
        self.capsys.readouterr()
        found = run(["--config", str(self.config), *words, "--json"])
        out = self.capsys.readouterr().out
        assert found == code, out
        return json.loads(out)

    def lines(self, *words: str, code: int = 0) -> tuple[list[str], str]:
        """Runs a command in a pipe; returns its lines, and stderr."""
        self.capsys.readouterr()
        found = run(["--config", str(self.config), *words])
        captured = self.capsys.readouterr()
        assert found == code, captured
        return captured.out.splitlines(), captured.err


@pytest.fixture
def shell(warehouse: Warehouse, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Shell:
    policy = warehouse.connection.source.policy.model_copy(update={"databases": {warehouse.database: warehouse.database}})
    config = tmp_path / "policy.yaml"
    save_policy(policy, config)
    return Shell(config, capsys)


def filled(warehouse: Warehouse) -> None:
    warehouse.sql("CREATE TABLE plain (a INT)", "CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)")
    warehouse.load_data("plain", "1\n")
    for day in "12":
        warehouse.load_data(f"parts PARTITION (ds='{day}')", f"{day}\n")
    warehouse.replicate()


def location(warehouse: Warehouse, table: str, partition: str = "") -> str:
    """Directory of a replica."""
    metastore = warehouse.connection.target.metastore
    if partition:
        (found,) = metastore.partitions(warehouse.database, table, [partition])
    else:
        found = metastore.table(warehouse.database, table)
    assert found is not None
    return str(found.sd.location)


def test_each_load_keeps_its_whole_report(warehouse: Warehouse, shell: Shell) -> None:
    filled(warehouse)
    start = warehouse.applied()
    warehouse.load_data("plain", "2\n")
    dump = shell("REPL", "DUMP", warehouse.database, "FROM", str(start))
    loaded = shell("REPL", "LOAD", "FROM", dump["directory"])
    window = f"{start}-{dump['last_evid']}"
    assert loaded["window"] == window
    (report,) = shell("report", window)
    assert (report["by"], report["outcome"], report["database"], report["window"]) == (ME, "done", warehouse.database, window)
    assert report["report"] == loaded["report"]
    rows = report["rows"]
    assert [(row["section"], row["table"]) for row in rows if row["section"] in ("table", "file")] == [
        ("table", "plain"),
        ("file", "plain"),
    ]
    (file,) = (row for row in rows if row["section"] == "file")
    assert (file["origin"], file["size"], file["outcome"], len(file["checksum"])) == ("source", 2, "in use", 56)
    lines, remarks = shell.lines("report", window)
    assert any(file["checksum"] in line for line in lines)
    assert ME in remarks
    (bootstrap,) = shell("report", f"bootstrap-{start}", "--database", warehouse.database)
    assert sum(row["section"] == "file" for row in bootstrap["rows"]) == 3
    assert "no load of the window 1-2 is kept" in shell("report", "1-2", code=2)["error"]
    assert "is no window such as" in shell("report", "nonsense", code=2)["error"]


def test_history_says_what_was_done_by_whom(warehouse: Warehouse, shell: Shell) -> None:
    name = warehouse.database
    filled(warehouse)
    start = warehouse.applied()
    warehouse.load_data("plain", "2\n")
    warehouse.replicate()
    shell("pause", name, "--why", "stock-taking")
    shell("resume", name)
    shell("undo", f"{name}.plain", "--to", str(start))
    shell("undo", f"{name}.plain", "--release")
    shell("repair", f"{name}.plain")
    found = shell("history", name)["entries"]
    assert [one["action"] for one in found] == ["repair", "catch-up", "release", "undo", "resume", "pause", "window", "bootstrap"]
    assert {one["by"] for one in found} == {ME}
    assert (found[3]["tables"], found[3]["to_evid"], found[5]["text"]) == (["plain"], start, "stock-taking")
    assert all(one["time"].endswith("+00:00") for one in found)
    lines, _ = shell.lines("history", name, "--last", "2")
    assert len(lines) == 2
    assert lines[0].split("\t")[1:3] == ["repair", ME]
    assert "no replica 'nosuch'" in shell("history", "nosuch", code=2)["error"]
    # Loads of earlier versions left no record: what their journals say stands in their place.
    store = warehouse.connection.store
    for kept in RecordStore.of(warehouse.connection.target.policy, store, name).names():
        store.storage.delete(kept.uri)
    old = shell("history", name)["entries"]
    assert {one["by"] for one in old} == {""}
    assert (old[-1]["to_evid"], old[-2]["window"].split("-")[0]) == (start, str(start))


def test_repair_mends_files_and_metadata(warehouse: Warehouse, shell: Shell) -> None:
    name, target = warehouse.database, warehouse.connection.target
    filled(warehouse)
    assert shell("repair", name)["needed"] is False
    (file,) = target.storage.files(location(warehouse, "parts", "ds=1"))
    target.storage.write(file.uri, b"9\n")  # of the same size
    damaged = shell("repair", f"{name}.parts", "--dry-run", code=1)
    assert [one["table"] for one in damaged["found"]] == ["parts"]
    assert damaged["repaired"] is None
    assert target.storage.read(file.uri) == b"9\n"
    mended = shell("repair", f"{name}.parts", "ds=1")
    assert (mended["left"], mended["exit_code"]) == ([], 0)
    warehouse.assert_equal()

    altered = copy_of(target.metastore.table(name, "plain"))
    assert altered is not None
    altered.sd.cols[0].comment, altered.parameters["colour"] = "wrong", "red"
    target.metastore.alter_table(name, "plain", altered)
    target.metastore.drop_partitions(name, "parts", ["ds=2"])
    found = shell("repair", name, "--dry-run", code=1)["found"]
    assert {one["table"] for one in found} == {"parts", "plain"}
    lines, remarks = shell.lines("repair", name, "--yes")
    assert len([line for line in lines if line.startswith(("parts\t", "plain\t"))]) >= 2
    assert f"{name} is equal to the source now" in remarks
    warehouse.assert_equal()
    for words in (("nosuch",), (f"{name}.nosuch",), (f"{name}", "ds=1")):
        assert shell("repair", *words, code=2)["error"]


def test_status_and_alarms_name_what_is_held_and_what_to_do(warehouse: Warehouse, shell: Shell) -> None:
    name, target = warehouse.database, warehouse.connection.target
    (before,) = shell("status")["databases"]
    assert before["condition"] == "no replica"
    filled(warehouse)
    assert shell("alarms")["alarms"] == []
    warehouse.sql("CREATE TABLE blocked (a INT)")
    warehouse.replicate()
    place = location(warehouse, "blocked")
    target.storage.delete(place, recursive=True)
    target.storage.write(place, b"a file where a directory belongs")
    warehouse.load_data("blocked", "1\n")
    warehouse.load_data("plain", "2\n")
    report = warehouse.replicate()
    assert [one.tables for one in report.held] == [("blocked",)]
    (found,) = shell("status", name)["databases"]
    assert (found["condition"], found["database"], found["last_load"]["window"]) == ("tables held", name, report.window)
    (held,) = found["held"]
    assert held["table"] == "blocked"
    assert "RPCError" not in held["reason"]
    assert "org.apache" not in held["reason"]
    assert held["advice"]
    (alarm,) = shell("alarms", code=1)["alarms"]
    assert (alarm["kind"], alarm["about"], alarm["advice"]) == ("held table", f"{name}.blocked", held["advice"])
    lines, _ = shell.lines("status")
    assert lines[0].split("\t")[:3] == [name, name, "tables held"]
    assert any("blocked" in line and held["advice"] in line for line in lines)
    rows = shell("report", report.window)[0]["rows"]
    assert [(row["table"], row["outcome"]) for row in rows if row["section"] == "file" and row["table"] == "blocked"] in (
        [],
        [("blocked", "table held")],
    )
    shell("pause", name, "--why", "stock-taking")
    assert "stock-taking" in shell("status", name)["databases"][0]["paused"]
    shell("resume", name)
    assert "has no database 'nosuch'" in shell("status", "nosuch", code=2)["error"]


def test_names_that_are_nowhere_are_errors(warehouse: Warehouse, shell: Shell) -> None:
    filled(warehouse)
    for words in (
        ("drift", "nosuch"),
        ("drift", f"{warehouse.database}.nosuch"),
        ("recover", "nosuch"),
        ("REPL", "STATUS", "nosuch"),
        ("REPL", "STATUS", f"{warehouse.database}.nosuch"),
        ("undo", "nosuch", "--release"),
        ("undo", f"{warehouse.database}.nosuch", "--release"),
    ):
        error = shell(*words, code=2)["error"]
        assert "nosuch" in error, words
        assert "has no" in error, words
    assert shell("REPL", "STATUS", f"{warehouse.database}.plain")["last_evid"] == warehouse.applied()


def test_retention_deletes_old_reports(warehouse: Warehouse, shell: Shell) -> None:
    filled(warehouse)
    name, store = warehouse.database, warehouse.connection.store
    records = RecordStore.of(warehouse.connection.target.policy, store, name)
    (new,) = records.newest()
    old = replace(new, id="1000000000000" + new.id[13:], time=1e9)
    records.keep(old, LoadReport("dir", name, 1, 2))
    assert len(records.newest()) == 2
    swept = [one for one in shell("retention", name)["done"] if one["what"] == "report"]
    assert [one["path"].rpartition("/")[2] for one in swept] == ["2001-09-09"]
    assert records.newest() == [new]


def test_a_side_that_is_down_is_told_at_once_beside_the_other(warehouse: Warehouse, shell: Shell) -> None:
    """Nobody listens where its metastore should be; ordinary calls try for half a minute."""
    name = warehouse.database
    filled(warehouse)
    whole = yaml.safe_load(shell.config.read_text())
    store = warehouse.connection.store
    (loaded,) = RecordStore.of(warehouse.connection.target.policy, store, name).newest()
    for side, other in (("source", "target"), ("target", "source")):
        down = {**whole, side: {**whole[side], "metastore": "thrift://127.0.0.1:1"}}
        shell.config.write_text(yaml.safe_dump(down), encoding="utf-8")
        RecordStore.of(load_policy(shell.config), store, name).keep(loaded)  # with this address it has another history
        began = time.monotonic()
        findings = {(one["side"], one["check"]): one["verdict"] for one in shell("doctor", code=1)["findings"]}
        assert (findings[side, "metastore"], findings[other, "metastore"], findings["dump root", "write"]) == (
            "error",
            "ok",
            "ok",
        )
        last = {"source": "cmroot access", "target": "write to external_root"}
        assert findings[other, last[other]] == "ok"
        assert (other, "stopped") not in findings
        (lag,) = shell("lag", code=1)
        assert (lag["problem"], lag["seconds_behind"]) == (f"the {side}'s metastore does not answer", None)
        assert (lag["applied"], lag["current"]) == (
            (warehouse.applied(), None) if side == "source" else (None, warehouse.connection.source.metastore.current_event_id())
        )
        (found,) = shell("status", code=1)["databases"]
        assert (found["condition"], found["database"], found["last_load"]["action"]) == ("unknown", name, "bootstrap")
        assert [alarm["kind"] for alarm in shell("alarms", code=1)["alarms"]] == ["unreachable"]
        assert time.monotonic() - began < 20


def test_a_replica_that_was_dropped_on_the_target_is_an_alarm(warehouse: Warehouse, shell: Shell) -> None:
    assert shell("alarms")["alarms"] == [], "it is yet to come"
    filled(warehouse)
    assert shell("alarms")["alarms"] == []
    warehouse.connection.target.metastore.drop_database(warehouse.database, cascade=True, delete_data=True)
    (alarm,) = shell("alarms", code=1)["alarms"]
    assert alarm["title"].startswith(f"{warehouse.database} has no replica any more")


def test_a_released_table_is_caught_up_by_the_next_tick(sensor: Sensor, tmp_path: Path) -> None:
    warehouse = sensor.warehouse
    name = warehouse.database
    config = tmp_path / "policy.yaml"
    save_policy(sensor.policy, config)
    hive_repl: Callable[..., int] = lambda *words: run(["--config", str(config), *words])  # noqa: E731
    sensor.replicate()
    start = warehouse.applied()
    warehouse.load_data("plain", "2\n")
    sensor.replicate()
    for what in (f"{name}.plain", name):
        assert hive_repl("undo", what, "--to", str(start)) == 0
        assert isinstance(sensor.tick(), dg.SkipReason)
        assert isinstance(sensor.tick(), dg.SkipReason)
        assert hive_repl("undo", what, "--release") == 0
        assert hive_repl("alarms") == 0  # it waits, and nothing is wrong
        # Of a whole database the window that is loaded again counts as its second attempt, 10 s after the first.
        assert sensor.run(sensor.request(later=0.0 if "." in what else 10.0)).success
        warehouse.assert_equal()
    names = sensor.names
    for key, actions in (
        (names.table(name, "plain", "load"), ["undo", "release"]),
        (names.database(name, "load"), ["undo", "release", "undo", "release"]),
    ):
        entries = [record.asset_observation for record in sensor.instance.fetch_observations(key, limit=100).records]
        done = [one.metadata for one in reversed(entries) if one is not None and "action" in one.metadata]
        assert [one["action"].value for one in done] == actions
        assert {one["by"].value for one in done} == {ME}
        assert done[0]["evid"].value == start
    run_ids = [run.run_id for run in sensor.instance.get_runs()]
    store = sensor.connection.store
    records = RecordStore.of(sensor.policy, store, name).newest()
    by = {record.by for record in records if record.action == "window"}
    assert by <= {f"Dagster run {run_id}" for run_id in run_ids}


def test_a_load_and_a_repair_by_hand_are_on_dagsters_pages(
    sensor: Sensor, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    warehouse, names = sensor.warehouse, sensor.names
    name = warehouse.database
    config = tmp_path / "policy.yaml"
    save_policy(sensor.policy, config)
    shell = Shell(config, capsys)
    sensor.replicate()
    start = warehouse.applied()
    warehouse.load_data("plain", "2\n")
    dump = shell("REPL", "DUMP", name, "FROM", str(start))
    loaded = shell("REPL", "LOAD", "FROM", dump["directory"])
    storage = warehouse.connection.target.storage
    storage.write(storage.files(location(warehouse, "plain"))[0].uri, b"9\n")
    shell("repair", f"{name}.plain")
    warehouse.assert_equal()
    assert isinstance(sensor.tick(), dg.SkipReason), "the load by hand left nothing to do"
    found: dict[str, list[tuple[object, ...]]] = {}
    for page, key in {"database": names.database(name, "load"), "table": names.table(name, "plain", "load")}.items():
        entries = [record.asset_observation for record in sensor.instance.fetch_observations(key, limit=100).records]
        done = [one.metadata for one in reversed(entries) if one is not None and "action" in one.metadata]
        found[page] = [tuple(one[of].value for of in ("action", "by", "outcome", "window", "evid")) for one in done]
    window = ("window", ME, "done", loaded["window"], dump["last_evid"])
    repaired = ("repair", ME, "done", f"repair-{warehouse.status('plain')}", warehouse.status("plain"))
    assert found == {"database": [window, repaired], "table": [repaired]}
