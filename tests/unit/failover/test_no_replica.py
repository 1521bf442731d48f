"""A failover of what has no finished replica."""

from __future__ import annotations

from pathlib import Path

import pytest

from hive_replication import direction, failover
from hive_replication.cli.main import run
from hive_replication.connect import Connection, Reachable
from hive_replication.errors import BadRequest
from hive_replication.load.replica.state import ReplicaState
from tests.unit.failover.fakes import Side, connected, log, policy

STATES = {"never bootstrapped": ReplicaState(), "half-loaded": ReplicaState("thrift://a:1/db")}


@pytest.fixture(params=STATES)
def connection(request: pytest.FixtureRequest) -> Connection:
    source = Side({"a": {}}, log(("create", 0, 0, 0), ("insert", 0, 0, 0)))
    return connected(source, Side(parameters=STATES[request.param].parameters(), uri="thrift://b:1"))


@pytest.mark.parametrize("reach", [Reachable(), Reachable(source="down")])
def test_it_is_not_said_that_nothing_would_be_lost(connection: Connection, reach: Reachable) -> None:
    found = failover.status(connection, "db", reach)
    assert (found.phase, found.event, found.problem) == ("no replica", None, "the target has no finished replica")
    with pytest.raises(BadRequest, match="'db' is no finished replica of 'db': nothing can fail over"):
        failover.plan(connection, "db", reach)


def test_the_command_ends_with_that(
    connection: Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(direction, "connect_reachable", lambda *_: (connection, Reachable()))
    config = tmp_path / "policy.json"
    config.write_text(policy().model_dump_json(exclude_defaults=True), encoding="utf-8")
    assert run(["--config", str(config), "failover", "plan", "db"]) == BadRequest.exit_code
    said = capsys.readouterr()
    assert "is no finished replica" in said.err
    assert "nothing would be lost" not in said.out + said.err
