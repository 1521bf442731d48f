"""Lag on real servers: in seconds, events and bytes, from the library, hive-repl and Prometheus."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import dagster as dg
import pytest
from dagster._core.storage.asset_check_execution_record import AssetCheckExecutionRecordStatus
from prometheus_client.parser import text_string_to_metric_families

from hive_replication.cli.main import run
from hive_replication.connect import Connection
from hive_replication.errors import MissingEvents
from hive_replication.lag import LagReader
from hive_replication.load.replica.state import database_with_state, replica_state
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import NotificationEvent
from repl_assets.catalog.catalog import read_catalog
from repl_assets.catalog.keys import Names
from repl_assets.definitions import build_defs
from repl_assets.recording.metadata import asset_url
from resources.connection import ReplicationConnection
from resources.embedded.policy import save_policy
from resources.notification_channels import WEBHOOK
from tests.receivers import web_server
from tests.unit.cli.test_output import INTERRUPTIBLE
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


class Log(Metastore):
    """Counts what is read of a log whose events up to ``purged`` are gone."""

    purged = 0
    read = 0

    def events(
        self, after: int, until: int | None = None, *, batch: int = 1000, patience: float = 3.0
    ) -> Iterator[NotificationEvent]:
        if after < self.purged:
            raise MissingEvents(f"events after {after} were purged")
        for event in super().events(after, until, batch=batch, patience=patience):
            self.read += 1
            yield event


class LoggedConnection(ReplicationConnection):
    """The policy's servers, with a source whose log tells which events were read."""

    read: ClassVar[list[int]] = []

    def connect(self, **patience: Any) -> Connection:
        class Told(Metastore):
            def events(
                self, after: int, until: int | None = None, *, batch: int = 1000, patience: float = 3.0
            ) -> Iterator[NotificationEvent]:
                for event in super().events(after, until, batch=batch, patience=patience):
                    LoggedConnection.read.append(event.eventId)
                    yield event

        made = super().connect(**patience)
        return replace(made, source=replace(made.source, metastore=Told(made.source.metastore.uri)))


@pytest.fixture
def replicated(warehouse: Warehouse) -> Warehouse:
    warehouse.sql("CREATE TABLE plain (a INT)", "CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)")
    warehouse.replicate()
    return warehouse


def of_one(warehouse: Warehouse, log: Log) -> Connection:
    """Both sides of a policy for the database alone."""
    whole = warehouse.connection
    policy = whole.source.policy.model_copy(update={"databases": {warehouse.database: warehouse.database}})
    source = replace(whole.source, policy=policy, metastore=log)
    return replace(whole, source=source, target=replace(whole.target, policy=policy))


def hold(warehouse: Warehouse, table: str) -> None:
    metastore = warehouse.connection.target.metastore
    database = metastore.database(warehouse.database)
    state = replica_state(database)
    assert database is not None
    metastore.alter_database(
        warehouse.database, database_with_state(database, state.quarantine(table, state.applied or 0, "no space"))
    )


def test_what_waits(replicated: Warehouse) -> None:
    log = Log(replicated.connection.source.metastore.uri)
    connection = of_one(replicated, log)
    reader = LagReader(connection.source, connection.target)
    (level,) = reader.read()
    assert (level.seconds_behind, level.waiting, level.bytes_waiting, level.tables, level.gap) == (0, 0, 0, (), "")

    replicated.load_data("plain", "12345\n")
    replicated.load_data("plain", "123\n", overwrite=True)  # the files of the first are in cmroot now
    replicated.load_data("parts PARTITION (ds='1')", "1234567\n")
    (found,) = reader.read()
    assert (found.bytes_waiting, [(one.table, one.bytes_waiting) for one in found.tables]) == (18, [("parts", 8), ("plain", 10)])
    assert found.seconds_behind == max(one.seconds_behind for one in found.tables)
    assert 0 < found.seconds_behind < 300
    assert found.waiting == sum(one.waiting for one in found.tables) >= 3
    read = log.read
    (again,) = reader.read()
    assert (again.waiting, again.bytes_waiting) == (found.waiting, found.bytes_waiting)
    assert log.read - read <= again.current - found.current  # what was read before is not read again

    few = LagReader(connection.source, connection.target, most_events=1).read()[0]
    assert not few.complete
    assert few.bytes_waiting is None

    log.purged = level.current + 1
    hopeless = LagReader(connection.source, connection.target)
    (gap,) = hopeless.read()
    assert "were purged" in gap.gap
    assert (gap.waiting, gap.seconds_behind) == (None, None)
    replicated.replicate()
    (after,) = hopeless.read()
    assert (after.waiting, after.gap) == (0, "")
    assert reader.read()[0].tables == ()


@pytest.fixture
def policy_file(replicated: Warehouse, tmp_path: Path) -> Path:
    connection = of_one(replicated, Log(replicated.connection.source.metastore.uri))
    path = tmp_path / "policy.yaml"
    save_policy(connection.source.policy, path)
    return path


def scraped(url: str) -> dict[tuple[str, str], float]:
    """Values by metric and table."""
    with urllib.request.urlopen(url, timeout=120) as answer:
        families = list(text_string_to_metric_families(answer.read().decode()))
    samples = [sample for family in families for sample in family.samples]
    return {(one.name.removeprefix("hive_replication_"), one.labels.get("table", "")): one.value for one in samples}


def test_commands(replicated: Warehouse, policy_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    replicated.load_data("plain", "12345\n")
    hold(replicated, "parts")
    assert run(["--config", str(policy_file), "lag", "--tables", "--json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert (found["bytes_waiting"], found["held"]) == (6, {"parts": "no space"})
    assert [(one["table"], one["bytes_waiting"], one["held"]) for one in found["tables"]] == [
        ("parts", 0, "no space"),
        ("plain", 6, ""),
    ]
    assert run(["--config", str(policy_file), "lag", "--tables"]) == 0
    rows = [line.split("\t") for line in capsys.readouterr().out.splitlines()]
    assert [(row[1], row[4], row[-1]) for row in rows] == [
        ("all", "6", "1 held"),
        ("parts", "0", "no space"),
        ("plain", "6", ""),
    ]

    main = [sys.executable, "-c", "from hive_replication.cli import main; main()", "--config", str(policy_file)]
    environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
    watched_in_a_terminal(policy_file)
    watch = subprocess.Popen([*main, "lag", "--watch", "1", "--json"], stdout=subprocess.PIPE, text=True, env=environment)
    serve = subprocess.Popen(
        [*main, "metrics", "--port", "0", "--every", "1"], stderr=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert watch.stdout is not None
        assert serve.stderr is not None
        assert [json.loads(watch.stdout.readline())[0]["bytes_waiting"] for _ in range(2)] == [6, 6]
        url = serve.stderr.readline().strip()
        while not (values := scraped(url))["up", ""]:  # a scrape does not wait for long
            pass
        assert values["lag_target_seconds", ""] == 900
        assert values["bytes_waiting", ""] == values["table_bytes_waiting", "plain"] == 6
        assert values["seconds_behind", ""] >= values["table_seconds_behind", "plain"] > 0
        assert (values["held_tables", ""], values["table_held", "parts"], values["table_held", "plain"]) == (1, 1, 0)
        assert values["applied_event_id", ""] == replicated.applied()
        assert values["last_load_timestamp_seconds", ""] > 1e9
        replicated.replicate()
        while (values := scraped(url))["bytes_waiting", ""]:
            pass
        assert (values["seconds_behind", ""], values["table_events_waiting", "plain"], values["gap", ""]) == (0, 0, 0)
    finally:
        for process in (watch, serve):
            process.kill()
            process.communicate()


def watched_in_a_terminal(policy_file: Path) -> None:
    """The table is drawn again in its place, and Ctrl-C leaves with one line and the terminal as it was."""
    command = [*INTERRUPTIBLE, "--config", str(policy_file), "lag", "--watch", "1"]
    inside = ["script", "--quiet", "--flush", "--return", "--command", shlex.join(command), os.devnull]
    with subprocess.Popen(inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as terminal:
        assert terminal.stdin
        assert terminal.stdout
        shown = b""
        while shown.count(b"Ctrl-C ends") < 2 and (more := os.read(terminal.stdout.fileno(), 65536)):
            shown += more
        assert b"\x1b[1A\x1b[2K" in shown  # up and over the old one
        terminal.stdin.write(b"\x03")
        terminal.stdin.flush()
        try:
            rest, _ = terminal.communicate(timeout=60)
        finally:
            terminal.kill()
    assert rest.endswith(b"\r\n\x1b[?25hhive-repl: interrupted\r\n")
    assert terminal.returncode == 130


def test_a_port_that_cannot_be_listened_at(policy_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["--config", str(policy_file), "metrics", "--address", "192.0.2.1"]) == 2
    assert "cannot listen at 192.0.2.1:9468" in capsys.readouterr().err


def test_sensors(replicated: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    connection = of_one(replicated, Log(replicated.connection.source.metastore.uri))
    policy = connection.source.policy.model_copy(update={"lag_target_seconds": 1})
    names, resources = Names.of(policy), {"connection": LoggedConnection.of(policy)}
    LoggedConnection.read.clear()
    defs = build_defs(policy, read_catalog(connection.source.metastore, policy))
    sensors = {sensor.name: sensor for sensor in defs.sensors or ()}
    load, plain = names.database(replicated.database, "load"), names.table(replicated.database, "plain", "load")
    with dg.DagsterInstance.ephemeral() as instance, web_server() as web:
        monkeypatch.setenv(WEBHOOK, web.url)
        cursors: dict[str, str | None] = {}

        def tick(name: str) -> None:
            cursor = cursors.get(name)
            with dg.build_sensor_context(instance, cursor=cursor, resources=resources, sensor_name=name) as context:
                said = sensors[name].evaluate_tick(context)
            for event in said.asset_events:
                assert isinstance(event, dg.AssetObservation | dg.AssetCheckEvaluation)
                instance.report_runless_asset_event(event)
            cursors[name] = said.cursor

        def observed(key: dg.AssetKey) -> dict[str, object]:
            (record,) = instance.fetch_observations(key, limit=1).records
            assert record.asset_observation is not None
            return {name: value.value for name, value in record.asset_observation.metadata.items()}

        def page() -> tuple[object, object, bool]:
            found = observed(names.status)
            shown = f"[{replicated.database}]({asset_url(load)}) | {policy.target_of(replicated.database)} | behind |"
            return found["databases up to date"], found["open alarms"], shown in str(found["databases"])

        tick("alarms")
        tick("lag")
        assert web.take() == {}
        assert page() == (1, 0, False)
        assert observed(load)["behind (s)"] == 0
        replicated.load_data("plain", "12345\n")
        time.sleep(2)
        tick("lag")
        tick("alarms")
        assert observed(load)["waiting (MB)"] == observed(plain)["waiting (MB)"] == 6e-6
        (alarm,) = web.take()["/"]["alarms"]
        assert (alarm["state"], alarm["about"]) == ("begins", replicated.database)
        assert page() == (0, 1, True)
        check = dg.AssetCheckKey(load, "up_to_date")
        (found,) = instance.event_log_storage.get_asset_check_execution_history(check, limit=1)
        assert found.status == AssetCheckExecutionRecordStatus.FAILED
        replicated.replicate()
        tick("lag")
        tick("alarms")
        assert observed(plain)["events waiting"] == 0
        assert [one["state"] for one in web.take()["/"]["alarms"]] == ["ends"]
        assert page() == (1, 0, False)
        assert len(LoggedConnection.read) == len(set(LoggedConnection.read)) > 0  # both sensors read each event once
        (found,) = instance.event_log_storage.get_asset_check_execution_history(check, limit=1)
        assert found.status == AssetCheckExecutionRecordStatus.SUCCEEDED
