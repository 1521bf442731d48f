"""One JSON document for each command, whatever goes wrong on its way."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import hive_replication
from hive_replication.cli import settings
from hive_replication.cli.main import run
from hive_replication.errors import BadRequest, Refused, ReplicationError, Unreachable
from hive_replication.load.records import Record
from hive_replication.load.records.report_rows import ReportRow
from hive_replication.load.retention import sweep as sweeping
from hive_replication.load.retention.sweep import Swept
from hive_replication.observe import Report
from hive_replication.statements import parse_name
from hive_replication.storage import Denied

SIDE = {"metastore": "thrift://127.0.0.1:1", "roots": [{"uri": "hdfs://127.0.0.1:1/"}]}


@pytest.fixture
def config(tmp_path: Path) -> str:
    path = tmp_path / "policy.yaml"
    policy = {"source": SIDE, "target": SIDE, "dump_root": f"file://{tmp_path}/dumps", "databases": {"sales": "a", "hr": "b"}}
    path.write_text(json.dumps(policy), encoding="utf-8")
    return str(path)


def test_retention_tells_what_is_left_and_who_is_refused(
    config: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def sweep(_: object, name: str, *__: object, **___: object) -> list[Swept]:
        if name == "a":
            raise Refused("a parameter was edited")
        return [Swept("old data", "hdfs://t/x", "", 5, "it has snapshots")]

    monkeypatch.setattr(sweeping, "sweep", sweep)
    assert run(["--config", config, "--json", "retention"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert found["refused"] == {"a": "a parameter was edited"}
    assert [(one["database"], one["problem"]) for one in found["done"]] == [("b", "it has snapshots")]
    assert run(["--config", config, "retention"]) == 1
    assert "1 of these are left, the first is hdfs://t/x: it has snapshots" in capsys.readouterr().err


def test_retention_goes_on_after_a_database_that_cannot_be_swept(
    config: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def sweep(_: object, name: str, *__: object, **___: object) -> list[Swept]:
        if name == "a":
            raise Denied("hdfs://t/a: permission denied")
        return [Swept("old data", "hdfs://t/x", "", 5)]

    monkeypatch.setattr(sweeping, "sweep", sweep)
    assert run(["--config", config, "--json", "retention"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["refused"], len(found["done"])) == ({"a": "hdfs://t/a: permission denied"}, 1)
    assert run(["--config", config, "retention"]) == 1
    assert "a: hdfs://t/a: permission denied" in capsys.readouterr().err
    assert run(["--config", config, "--json", "retention", "B"]) == 0
    assert [one["database"] for one in json.loads(capsys.readouterr().out)["done"]] == ["b"]


def test_a_damaged_report_is_one_document(
    config: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    damaged: list[ReplicationError] = [ReplicationError("the report is damaged")]

    def rows(_: Record) -> Iterator[ReportRow]:
        yield from ()
        if damaged:
            raise damaged.pop()

    record = Record("1", "window", "sales", "me", 0.0, window="1-2", report="file:///r")
    store: Any = SimpleNamespace(rows=rows)
    monkeypatch.setattr(hive_replication, "reports", lambda *_: (Report(record, store),))
    monkeypatch.setattr(settings.Settings, "connect", lambda _: None)
    assert run(["--config", config, "--json", "report", "1-2"]) == 1
    assert json.loads(capsys.readouterr().out) == {"error": "the report is damaged", "exit_code": 1}
    assert run(["--config", config, "--json", "report", "1-2"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["rows"] == []


def test_dumps_of_all_databases_are_told_where_one_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "policy.yaml"
    databases = {name: name for name in "abc"}
    policy = {"source": SIDE, "target": SIDE, "dump_root": f"file://{tmp_path}/dumps", "databases": databases}
    path.write_text(json.dumps(policy), encoding="utf-8")
    errors: dict[str, ReplicationError] = {"b": BadRequest("the source has no database 'b'")}
    told: list[str] = []

    def dump(_: object, name: str, **__: object) -> Any:
        told.append(capsys.readouterr().out)
        if name in errors:
            raise errors[name]
        header = SimpleNamespace(kind="bootstrap", from_evid=None, left_out={}, scope=SimpleNamespace(database=name))
        figures = dict.fromkeys(("tables", "partitions", "events", "files"), 0)
        return SimpleNamespace(directory=f"hdfs://t/{name}", last_evid=7, header=header, **figures)

    monkeypatch.setattr(hive_replication, "dump", dump)
    assert run(["--config", str(path), "REPL", "DUMP", "*"]) == 2
    said = capsys.readouterr()
    assert [*told, said.out] == ["", "hdfs://t/a\t7\n", "", "hdfs://t/c\t7\n"], "each as it ends"
    assert said.err == "b: the source has no database 'b'\n"
    errors["c"] = ReplicationError("the log has a hole")
    assert run(["--config", str(path), "--json", "REPL", "DUMP", "*"]) == 2
    found = json.loads(capsys.readouterr().out)
    assert [one["directory"] for one in found["dumps"]] == ["hdfs://t/a"]
    assert found["failed"] == {"b": "the source has no database 'b'", "c": "the log has a hole"}
    errors["b"] = Unreachable("the source does not answer")
    told.clear()
    assert run(["--config", str(path), "REPL", "DUMP", "*"]) == 1
    said = capsys.readouterr()
    assert [*told, said.out] == ["", "hdfs://t/a\t7\n", ""], "c is not waited for"
    assert said.err == "b: the source does not answer\nc: the source does not answer\n"
    errors["b"] = BadRequest("the source has no database 'b'")
    assert run(["--config", str(path), "--json", "REPL", "DUMP", "b"]) == 2
    assert json.loads(capsys.readouterr().out) == {"error": "the source has no database 'b'", "exit_code": 2}


@pytest.mark.parametrize("table", ["a-b", "a.b", "c/b", "x y"])
def test_statements_take_tables_of_any_characters(
    config: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], table: str
) -> None:
    asked: list[tuple[str, str | None]] = []

    def ask(_: object, *names: str, **__: object) -> Any:
        asked.append(parse_name(names[-1]))
        raise BadRequest("it is there no more")

    for what in ("dump", "load", "plan", "status"):
        monkeypatch.setattr(hive_replication, what, ask)
    named = f"Sales.`{table}`"
    for words in (("REPL DUMP", named), ("REPL LOAD", named, "FROM d"), ("REPL STATUS", named)):
        assert run(["--config", config, " ".join(words)]) == 2
        assert run(["--config", config, *words[0].split(), named, *" ".join(words[2:]).split()]) == 2
    assert run(["--config", config, "plan", named, "FROM", "d"]) == 2
    assert run(["--config", config, "plan", f"{named} FROM d"]) == 2
    assert set(capsys.readouterr().err.splitlines()) == {"hive-repl: it is there no more"}
    assert asked == [("sales", table)] * 8
