"""When the sensor on the catalog has the definitions loaded again."""

from __future__ import annotations

import logging
from functools import partial
from itertools import pairwise
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import dagster as dg
import pytest

from hive_replication.errors import BadRequest
from hive_replication.policy import load_policy
from repl_assets.components import ReplicationPolicy, replication_policy
from repl_assets.dagster_private import GrpcServerCodeLocationOrigin
from sensors import catalog
from tests.lags import POLICY


class Sensor:
    """The sensor over ticks; reloads are counted and change nothing."""

    def __init__(self) -> None:
        self.cursor: str | None = None
        self.now = 1_000_000.0
        self.reloads = self.read_again = 0
        self.why_not = ""

    def tick(self, *found: str, later: float = 60.0) -> str:
        self.now += later
        origin = GrpcServerCodeLocationOrigin(host="localhost", socket="/tmp/none")
        context = dg.SensorEvaluationContext(None, cursor=self.cursor, code_location_origin=origin)
        said = catalog.tick(context, list(found), lambda: self.why_not, self.now, self.asked)
        self.cursor = context.cursor
        return str(said.skip_message)

    def asked(self) -> None:
        self.read_again += 1


@pytest.fixture
def sensor(monkeypatch: pytest.MonkeyPatch) -> Sensor:
    made = Sensor()

    def later(_: object) -> None:
        made.reloads += 1

    monkeypatch.setattr(catalog, "_reload_soon", later)
    return made


def test_a_reload_that_changed_nothing_is_asked_again_with_growing_delay(sensor: Sensor) -> None:
    assert sensor.tick("+sales.new") == "changed: +sales.new; the code server is asked to reload the definitions"
    assert sensor.tick("+sales.new", later=30).startswith(
        "changed: +sales.new; the code server was asked to reload the definitions, the next time is in 30 s"
    )
    assert sensor.reloads == 1
    asked = [minute for minute in range(1, 600) if "is asked to reload" in sensor.tick("+sales.new")]
    assert sensor.reloads == sensor.read_again == 1 + len(asked)
    assert asked[:4] == [1, 3, 7, 15]
    assert {after - before for before, after in pairwise(asked[6:])} == {60}, "at least once an hour"


def test_a_new_database_that_no_reload_gives_assets_fails_the_tick(sensor: Sensor) -> None:
    said = [sensor.tick("+sales2", "+sales.new", later=later) for later in (60, 61, 121)]
    assert all("is asked to reload" in one for one in said)
    with pytest.raises(BadRequest, match=r"^sales2: not replicated, .*; or restart Dagster's code server"):
        sensor.tick("+sales2", "+sales.new")
    assert "is asked to reload" in sensor.tick("+sales2", "+sales.new", later=300)


def test_a_new_database_where_nothing_can_be_reloaded_fails_the_tick() -> None:
    context, asked = dg.SensorEvaluationContext(None, cursor=None, code_location_origin=None), list[float]()
    for now in range(0, 600, 60):
        said = catalog.tick(context, ["+sales.new"], str, now, partial(asked.append, now))
        assert "Dagster cannot reload" in str(said.skip_message)
    assert asked == [0, 60, 180, 420], "the next code server reads the source, the ones after it only now and then"
    with pytest.raises(BadRequest, match=r"^sales2: not replicated, .* restart Dagster's code server"):
        catalog.tick(context, ["+sales2"], str, 0.0)


def test_another_change_is_asked_at_once(sensor: Sensor) -> None:
    sensor.tick("+sales2")
    assert "is asked to reload" in sensor.tick("+sales2", "+sales3", later=1)
    assert "is asked to reload" in sensor.tick("-sales2", later=1), "it went, which is not the same as that it came"


def test_the_same_change_is_asked_again_after_it_was_level(sensor: Sensor) -> None:
    sensor.tick("+sales2")
    assert sensor.tick() == "the definitions are up to date"
    assert "is asked to reload" in sensor.tick("+sales2", later=1)


def test_no_reload_while_the_policy_cannot_be_loaded(sensor: Sensor) -> None:
    sensor.why_not = "policy.yaml is not valid"
    assert sensor.tick("+sales.new").startswith("changed: +sales.new; the definitions are not reloaded: policy.yaml is not valid")
    with pytest.raises(BadRequest, match=r"^sales2: not replicated, .* are not reloaded: policy.yaml is not valid"):
        sensor.tick("+sales2")
    assert sensor.reloads == 0
    sensor.why_not = ""
    assert "is asked to reload" in sensor.tick("+sales2", later=1)


@pytest.mark.parametrize("reloads", [True, False])
def test_a_code_server_that_does_not_reload_is_told(
    reloads: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One of ``dagster api grpc`` answers, and does nothing."""
    monkeypatch.setattr(logging.getLogger("dagster"), "propagate", True)
    asked: list[int] = []
    client: Any = SimpleNamespace(
        reload_code=lambda timeout: asked.append(timeout), get_server_id=lambda: f"server {len(asked) if reloads else 0}"
    )
    monkeypatch.setattr(catalog, "DagsterGrpcClient", lambda *_, **__: client)
    catalog._reload(GrpcServerCodeLocationOrigin(host="localhost", port=1))
    assert len(asked) == 1
    assert ("the definitions were not reloaded" in caplog.text) is not reloads


def test_a_reload_is_asked_for_though_the_clock_was_set_back_since(sensor: Sensor) -> None:
    sensor.tick("+sales2", later=86_400)
    assert "is asked to reload" in sensor.tick("+sales2", later=-86_400)


def test_a_cursor_of_an_earlier_version(sensor: Sensor) -> None:
    sensor.cursor = "0123456789abcdef"
    assert "is asked to reload" in sensor.tick("+sales2")


def test_changes_have_a_direction() -> None:
    there: Any = type("M", (), {"databases": lambda _: ["sales", "new"], "table_names": lambda *_: ["a", "b"]})()
    policy = POLICY.model_copy(update={"databases": {"sales": "sales", "new": "new", "old": "old"}})
    known = {"sales": frozenset({"b", "c"}), "old": frozenset[str]()}
    assert sorted(catalog.changes(there, policy, known)) == ["+new", "+sales.a", "-old", "-sales.c"]


def test_policies_that_were_changed_keep_from_a_reload(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    text = POLICY.model_dump_json(exclude_defaults=True)  # which is YAML, too
    file.write_text(text)
    assert load_policy(file) == POLICY
    why = replication_policy.why_no_reload([(ReplicationPolicy(policy_file=str(file)), POLICY), (ReplicationPolicy(), None)])
    assert why() == ""
    file.write_text(f"# a comment\n{text}")
    assert why() == ""
    file.write_text(text.replace('"sales"', '"sales2"'))
    assert why() == f"{file} was changed; Reload on Dagster's Deployment page makes the change take effect"
    file.write_text(text.replace("databases", "databsaes"))
    assert "databsaes" in why()
    file.unlink()
    assert str(file) in why()
    file.write_text(text)
    assert why() == ""
