"""Commands that need only the target, of a policy with patterns whose source is lost."""

from __future__ import annotations

import json
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from hive_replication.cli.main import run
from hive_replication.connect import Reachable, connect_target, reachable_servers
from hive_replication.errors import Unreachable
from hive_replication.load.layout.directories import new_token
from hive_replication.load.records import Record, RecordStore
from hive_replication.load.records.record import Action
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.retention import sweep as sweeping
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Database
from hive_replication.policy import Policy
from hive_replication.policy.warehouse import pair_hash
from hive_replication.storage import Storage
from tests.unit.failover.fakes import Side, without_locks


class Target(Side):
    """Both metastores: the target's, and one whose databases nobody can list."""

    def database(self, name: str) -> Any:
        return Database(name=name, locationUri=self.location, parameters=self.parameters) if name == "dr_sales_a" else None

    def databases(self) -> list[str]:
        raise Unreachable("the source is switched off")

    def at_once(self) -> Any:
        return SimpleNamespace(uuid=self.databases)


@pytest.fixture
def made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Policy:
    target = Target(parameters=ReplicaState("thrift://s:1/sales_a", 2).parameters(), uri="thrift://t:1")
    target.location = f"file://{tmp_path}/w/dr_sales_a"
    without_locks(monkeypatch)
    monkeypatch.setattr(reachable_servers, "reach", lambda _: Reachable(source="it is switched off"))
    monkeypatch.setattr(Metastore, "of", lambda *_, **__: target)
    side = {"metastore": "thrift://s:1", "roots": [{"uri": f"file://{tmp_path}/w/"}]}
    made = Policy.model_validate(
        {
            "source": side,
            "target": {**side, "metastore": "thrift://t:1"},
            "dump_root": f"file://{tmp_path}/dumps",
            "databases": {"sales_*": "dr_*"},
            "approval": True,
        }
    )
    place = tmp_path / f"dumps/.policies/default-{pair_hash(made.pair)}"
    place.mkdir(parents=True)
    (place / "1.json").write_text('{"sales_*": ["sales_a"]}', encoding="utf-8")
    (tmp_path / "policy.json").write_text(made.model_dump_json(exclude_defaults=True), encoding="utf-8")
    return made


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("REPL STATUS dr_sales_a", '"last_evid": 2'),
        ("pause sales_a", '"paused": true'),
        ("resume Sales_a", '"paused": false'),
        ("undo dr_sales_a --release", '"released": false'),
        ("history sales_a", '"pause"'),
        ("report 1-2", '"database": "dr_sales_a"'),
        ("report 1-2 --database sales_a", '"database": "dr_sales_a"'),
    ],
)
def test_they_work(made: Policy, tmp_path: Path, line: str, expected: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They ended as unreachable: after an unplanned failover, when they are asked for."""
    store = connect_target(made).store
    actions: tuple[Action, ...] = ("pause", "window")
    for action in actions:
        window = "1-2" if action == "window" else ""
        record = Record(new_token(), action, "dr_sales_a", "somebody", time.time(), window=window)
        RecordStore.of(made, store, "dr_sales_a").keep(record)
    code = run(["--config", str(tmp_path / "policy.json"), "--json", *line.split()])
    said = capsys.readouterr()
    assert (code, said.err) == (0, "")
    assert expected in json.dumps(json.loads(said.out))


def test_retention_is_of_the_databases_that_the_pattern_had(
    made: Policy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sweeping, "sweep", swept := Mock(return_value=()))
    assert run(["--config", str(tmp_path / "policy.json"), "retention"]) == 0
    assert [call.args[1] for call in swept.call_args_list] == list(map(made.target_of, ["sales_a"]))


def test_what_is_of_all_databases_is_not_done_for_none(made: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    assert list(connect_target(made, every=True).source.policy.databases) == ["sales_a"]
    monkeypatch.setattr(Storage, "ls", Mock(side_effect=Unreachable("the dump root does not answer")))
    with pytest.raises(Unreachable, match="the dump root"):
        connect_target(made, every=True)
    assert connect_target(made, "Sales_a").target.policy.databases == {"sales_a": "dr_sales_a"}
