"""The doctor of a policy of which a part cannot be used."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from hive_replication.cli.main import run
from hive_replication.connect import Reachable, reachable_servers
from hive_replication.errors import MetastoreError


@pytest.fixture
def settings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    reached = Reachable(source="it is switched off", target="it is switched off, too")
    monkeypatch.setattr(reachable_servers, "reach", lambda _: reached)
    side = {"metastore": "thrift://127.0.0.1:1", "roots": [{"uri": f"file://{tmp_path}/w/"}]}
    return {"source": side, "target": side, "dump_root": f"file://{tmp_path}/dumps", "databases": {"sales": "sales"}}


def found(settings: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> dict[tuple[str, str], str]:
    (tmp_path / "policy.yaml").write_text(json.dumps(settings), encoding="utf-8")
    assert run(["--config", str(tmp_path / "policy.yaml"), "--json", "doctor"]) == 1
    return {(one["side"], one["check"]): one["found"] for one in json.loads(capsys.readouterr().out)["findings"]}


OTHERS = {("source", "metastore"), ("target", "metastore")}


@pytest.mark.parametrize("key", ["${env:HIVE_REPL_NOT_SET}", "${file:/no/such/key}", "${file:/dev/zero}"])
def test_a_signing_key_that_is_not_there_hides_nothing(
    key: str, settings: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = found(settings | {"signing_key": key}, tmp_path, capsys)
    assert "signing_key" in told["policy", "signing key"]
    assert OTHERS | {("dump root", "write")} <= told.keys()


def test_a_dump_root_under_no_root_hides_nothing(
    settings: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = found(settings | {"dump_root": "s3://elsewhere/dumps"}, tmp_path, capsys)
    assert "lies under none of its storage roots" in told["dump root", "place"]
    assert told.keys() >= OTHERS
    assert ("dump root", "write") not in told
    assert not (tmp_path / "w").exists()


def test_what_keeps_all_from_being_connected_is_a_finding(
    settings: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: object) -> None:
        raise MetastoreError("the databases must not be listed")

    monkeypatch.setattr(import_module("hive_replication.doctor.policy"), "connect_reachable", refused)
    assert found(settings, tmp_path, capsys) == {("policy", "connect"): "the databases must not be listed"}


def test_a_side_that_fails_before_its_metastore_is_asked_hides_nothing_of_the_other(
    settings: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def roots(_: object, side: str) -> list[Any]:
        if side == "source":
            raise OSError("cannot be read")
        return []

    monkeypatch.setattr(import_module("hive_replication.doctor.examine"), "roots", roots)
    told = found(settings, tmp_path, capsys)
    assert told["source", "stopped"] == "cannot be read"
    assert ("target", "metastore") in told
