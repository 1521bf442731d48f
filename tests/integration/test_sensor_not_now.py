"""When the sensor leaves databases alone: pauses, hours; and whose runs come first."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path

import dagster as dg
import pytest

from hive_replication.cli.main import run
from hive_replication.load.replica.state import replica_state
from repl_assets.catalog.keys import Window
from resources.embedded.policy import save_policy
from tests.policy_sensor import Sensor

pytestmark = [pytest.mark.servers, pytest.mark.hive]


def test_a_paused_database_waits_in_every_instance_until_resumed(
    sensor: Sensor, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    name, target = sensor.warehouse.database, sensor.connection.target
    config = tmp_path / "policy.yaml"
    save_policy(sensor.policy, config)
    assert run(["--config", str(config), "pause", name]) == 2  # no replica yet
    sensor.replicate()
    sensor.warehouse.load_data("plain", "2\n")
    request = sensor.request()
    assert run(["--config", str(config), "pause", name, "--why", "stock-taking"]) == 0
    assert sensor.run(request.with_replaced_attrs(tags={})).success  # a load by hand leaves the pause as it is
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
    sensor.set_policy(hours=(hours,), priorities={"t*": 7})
    waits = rf"outside of the hours {begins}-\d\d:00: resumes .* {begins}:00 UTC, in \d+ (h|min)( \d+ (min|s))?"
    assert re.fullmatch(waits, sensor.reason())
    assert (sensor.source.calls, sensor.target.calls) == (0, 0)
    assert sensor.request(later=2 * 3600.0).tags["dagster/priority"] == "7"


def test_windows_start_at_the_times_of_the_schedule_once_each(sensor: Sensor) -> None:
    soon = datetime.now(UTC) + timedelta(minutes=30)
    sensor.set_policy(schedule=f"{soon.minute} * * * *")
    at = soon.replace(second=0, microsecond=0)
    until = (at - datetime.now(UTC)).total_seconds() + 1
    name = sensor.warehouse.database
    waits = (
        rf"{name}: waits for the schedule {soon.minute} \* \* \* \*: resumes {at:%a %Y-%m-%d %H:%M}:00 UTC, in \d+ min( \d+ s)?"
    )
    assert re.fullmatch(waits, sensor.reason())
    assert sensor.run(sensor.request(later=until)).success  # the bootstrap
    assert "no events" in sensor.reason()
    sensor.warehouse.load_data("plain", "2\n")
    assert re.fullmatch(waits, sensor.reason())
    assert re.fullmatch(waits, sensor.reason())
    assert (sensor.source.calls, sensor.target.calls) == (0, 0)
    before = sensor.cursor
    request = sensor.request(later=until)
    run = sensor.record(request, dg.DagsterRunStatus.STARTED)
    sensor.warehouse.load_data("plain", "3\n")
    assert "is in progress" in sensor.reason(later=until)
    sensor.instance.report_run_canceled(run)
    assert sensor.run(request).success
    assert re.fullmatch(waits, sensor.reason())  # the event after the window is for the next time
    sensor.cursor = before
    assert Window.parse(str(sensor.request(later=until).partition_key)).start == sensor.warehouse.applied()
    sensor.cursor = None  # what a lost cursor knew is found again
    assert re.fullmatch(waits, sensor.reason())
