"""When the sensor leaves databases alone: pauses, hours; and whose runs come first."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest
import yaml

from hive_replication.cli.main import run
from hive_replication.load.state import replica_state
from tests.policy_sensor import Sensor
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@pytest.fixture
def sensor(warehouse: Warehouse) -> Iterator[Sensor]:
    warehouse.sql("CREATE TABLE plain (a INT)")
    warehouse.load_data("plain", "1\n")
    with dg.DagsterInstance.ephemeral() as instance:
        yield Sensor(warehouse, instance)


def test_a_paused_database_waits_in_every_instance_until_resumed(
    sensor: Sensor, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    name, target = sensor.warehouse.database, sensor.connection.target
    config = tmp_path / "policy.yaml"
    config.write_text(yaml.safe_dump(sensor.policy.model_dump(mode="json", exclude_defaults=True)), encoding="utf-8")
    assert run(["--config", str(config), "pause", name]) == 2  # no replica yet
    sensor.replicate()
    sensor.warehouse.load_data("plain", "2\n")
    request = sensor.request()
    assert run(["--config", str(config), "pause", name, "--why", "stock-taking"]) == 0
    assert sensor.run(request).success  # what was under way goes on, and leaves the pause as it is
    sensor.warehouse.load_data("plain", "3\n")
    assert re.search(f"{name}: paused since .* UTC by .*: stock-taking; hive-repl resume {name}", sensor.reason())
    assert run(["--config", str(config), "pause", name]) == 0
    assert "was paused already" in capsys.readouterr().err
    assert run(["--config", str(config), "resume", name]) == 0
    assert not replica_state(target.metastore.database(name)).paused
    assert sensor.run(sensor.request()).success
    sensor.warehouse.assert_equal()


def test_nothing_begins_outside_of_the_hours_then_with_its_priority(sensor: Sensor) -> None:
    now = datetime.now(UTC)
    begins = (now + timedelta(hours=2)).strftime("%H:00")
    hours = f"{begins}-{(now + timedelta(hours=3)).strftime('%H:00')}"
    policy = sensor.policy.model_copy(update={"hours": (hours,), "priorities": {"t*": 7}})
    sensor.connection = replace(sensor.connection, source=replace(sensor.connection.source, policy=policy))
    assert re.fullmatch(rf"outside of the hours {begins}-\d\d:00: goes on .* {begins} UTC, in 1 h \d+ min", sensor.reason())
    assert (sensor.source.calls, sensor.target.calls) == (0, 0)
    assert sensor.request(later=2 * 3600.0).tags["dagster/priority"] == "7"
