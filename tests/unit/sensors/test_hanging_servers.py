"""Ticks while a metastore or an HDFS takes connections and never answers: they end in time and say so, once."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import dagster as dg
import pytest

from hive_replication.connect import connect, hanging_storage
from hive_replication.connect.databases import with_databases
from hive_replication.errors import Unreachable
from hive_replication.events.files import FileRef
from hive_replication.lag import Lag, LagReader, sizes
from hive_replication.lag.sizes import FileSizes
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.dialect import Features
from hive_replication.policy import Policy, Root
from hive_replication.policy.checks import Drift
from hive_replication.storage import Storage
from repl_assets.catalog.catalog import Catalog
from repl_assets.definitions import build_defs
from resources.notification_channels import WEBHOOK
from sensors import catalog, connections
from sensors.lag import KeptReader
from sensors.notification_log.sensor import SensorSettings
from tests.lags import POLICY, WELL
from tests.receivers import web_server
from tests.unit.repl_assets.test_dagster_definitions import CATALOG

HIVE3, HIVE4 = Features("3", "uuid"), Features("4.1.0", "uuid")


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Policy]:
    """A policy whose metastores take connections and never answer, and sensors that wait less than they do."""
    monkeypatch.setattr(connections, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        address = {"metastore": f"thrift://127.0.0.1:{server.getsockname()[1]}"}
        sides = {side: getattr(POLICY, side).model_copy(update=address) for side in ("source", "target")}
        yield POLICY.model_copy(update={"dump_root": f"file://{tmp_path}", **sides})


class Ticks:
    """The policy's sensors over ticks."""

    def __init__(
        self, policy: Policy, instance: dg.DagsterInstance, known: Catalog | None = None, *others: dg.Definitions
    ) -> None:
        made = build_defs(policy, known or Catalog(), settings=SensorSettings(listen=0))
        self.repository = dg.Definitions.merge(made, *others).get_repository_def()
        self.instance = instance
        self.cursors: dict[str, str | None] = {}

    def tick(self, name: str, *, kept: bool = True) -> Any:
        """One tick; Dagster does not keep the cursor of one that it ended."""
        resources, sensor = self.repository.get_top_level_resources(), self.repository.get_sensor_def(name)
        needed = {key: resources[key] for key in sensor.required_resource_keys}
        with dg.build_sensor_context(self.instance, self.cursors.get(name), resources=needed) as context:
            said = sensor.evaluate_tick(context)
        self.cursors[name] = said.cursor if kept else self.cursors.get(name)
        return said


@pytest.fixture
def ticks(hanging: Policy) -> Iterator[Ticks]:
    with dg.DagsterInstance.ephemeral() as instance:
        yield Ticks(hanging, instance)


def test_ticks_end_and_say_that_nobody_answers(ticks: Ticks) -> None:
    began = time.monotonic()
    said = ticks.tick("lag")
    assert [(event.check_name, event.passed) for event in said.asset_events] == [("up_to_date", False)]
    assert "the lag is not known: " in said.skip_message
    assert ticks.tick("notification_log").skip_message.startswith("nothing can be started: ")
    assert time.monotonic() - began < 20


def test_ticks_of_drift_and_the_catalog_say_that_nobody_answers(hanging: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(catalog, "TIMEOUT", 0.2)
    policy = hanging.model_copy(update={"drift": Drift()})
    looking = dg.Definitions(sensors=[catalog.catalog_sensor(policy, {"sales": frozenset()}, lambda: "")])
    with dg.DagsterInstance.ephemeral() as instance:
        ticks = Ticks(policy, instance, CATALOG, looking)
        assert ticks.tick("drift_sales").skip_message.startswith("nothing is scanned: ")
        assert ticks.tick("catalog").skip_message.startswith("it is not known what has changed: ")


@pytest.mark.parametrize("kept", [True, False], ids=["in time", "ended by Dagster"])
def test_alarms_are_told_once(ticks: Ticks, monkeypatch: pytest.MonkeyPatch, kept: bool) -> None:
    with web_server() as web:
        monkeypatch.setenv(WEBHOOK, web.url)
        ticks.tick("alarms", kept=kept)
        ticks.tick("alarms", kept=kept)
        monkeypatch.setattr(LagReader, "read", lambda _: (WELL,))
        monkeypatch.setattr(Metastore, "features", HIVE4)
        ticks.tick("alarms", kept=kept)
        ticks.tick("alarms", kept=kept)
        told = [(one["state"], one["kind"]) for _, posted in web.posted for one in posted["alarms"]]
    assert told == [("begins", "unreachable"), ("ends", "unreachable")]


def test_those_that_come_during_a_reading_get_what_it_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    begun, answers, connection = threading.Semaphore(0), threading.Event(), connect(POLICY)
    number = 0

    def read(_: LagReader) -> Sequence[Lag]:
        nonlocal number
        number += 1
        begun.release()
        assert answers.wait(30)
        if number == 1:
            raise Unreachable("nobody answers")
        return [WELL]

    monkeypatch.setattr(Metastore, "features", HIVE4)
    monkeypatch.setattr(LagReader, "read", read)
    reader, found = KeptReader(patience=0.1), list[object]()

    def reads(patience: float) -> None:
        reader._patience = patience
        try:
            found.append(reader.read(connection))
        except Unreachable as error:
            found.append(str(error))

    for expected in ("nobody answers", [WELL]):
        first = threading.Thread(target=reads, args=(30.0,))
        first.start()
        assert begun.acquire(timeout=30)
        reads(0.1)
        assert "has not ended after 0.1 s" in str(found.pop())
        others = [threading.Thread(target=reads, args=(30.0,)) for _ in range(3)]
        for other in others:
            other.start()
        time.sleep(0.2)
        answers.set()
        for thread in (first, *others):
            thread.join(30)
        answers.clear()
        assert [found.pop() for _ in range(4)] == [expected] * 4
    assert number == 2


@pytest.mark.parametrize("now", [HIVE3, replace(HIVE3, uuid="restored"), HIVE4], ids=["as before", "made anew", "upgraded"])
def test_a_kept_reader_is_replaced_once_the_source_is_another_one(now: Features, monkeypatch: pytest.MonkeyPatch) -> None:
    """It took a source that was upgraded for Hive 3 until the code server was started again: commits did not count."""
    there, readers = HIVE3, list[tuple[LagReader, bool]]()

    def read(reader: LagReader) -> Sequence[Lag]:
        readers.append((reader, reader._source.acid))
        return [WELL]

    monkeypatch.setattr(Metastore, "call", lambda *_: there)
    monkeypatch.setattr(LagReader, "read", read)
    kept = KeptReader()
    kept.read(connect(POLICY))
    there = now
    for _ in range(2):  # a tick connects anew
        kept.read(connect(POLICY))
    (before, _), (after, acid), (later, _) = readers
    assert (after is before, acid, later is after) == (now == HIVE3, now == HIVE4, True)


class Databases(Metastore):
    """A metastore with a database."""

    def databases(self) -> list[str]:
        return ["sales"]


@pytest.fixture
def silent(monkeypatch: pytest.MonkeyPatch) -> Iterator[Policy]:
    """A policy with a pattern, whose HDFS of the target takes connections and never answers, and sensors that wait less."""
    monkeypatch.setattr(connections, "TIMEOUT", 0.2)
    monkeypatch.setattr(catalog, "TIMEOUT", 0.2)
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        root = f"hdfs://127.0.0.1:{server.getsockname()[1]}/dumps"
        target = POLICY.target.model_copy(update={"roots": (Root(uri=root),)})
        yield POLICY.model_copy(update={"target": target, "dump_root": root, "databases": {"sales*": "*"}})


def threads_that_ask(policy: Policy) -> int:
    return [one.name for one in threading.enumerate()].count(f"asks {policy.dump_root}/")


def test_an_hdfs_that_never_answers_takes_one_thread(silent: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    with dg.DagsterInstance.ephemeral() as instance:
        ticks = Ticks(with_databases(silent, ["sales"]), instance)
        for _ in range(3):
            said = ticks.tick("notification_log").skip_message
            assert said.startswith(f"nothing can be started: {silent.dump_root}/ has not answered for 0 s")
    with Databases(silent.source.metastore) as metastore:
        for _ in range(3):
            with pytest.raises(Unreachable, match="has not answered"):
                list(catalog.changes(metastore, silent, {}))
        assert threads_that_ask(silent) == 1
        monkeypatch.setattr(hanging_storage, "_ASK_AGAIN", 0.0)
        with pytest.raises(Unreachable, match="has not answered"):
            list(catalog.changes(metastore, silent, {}))
        assert threads_that_ask(silent) == 2


def test_sizes_are_not_waited_for_while_hdfs_never_answers(silent: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sizes, "_PATIENCE", 0.2)
    found, file = FileSizes(Storage(silent.target.roots), 10), FileRef(f"{silent.dump_root}/f", "")
    found.look_up([file])
    assert found.total([file]) is None


def test_a_reading_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    connection, begun, ends, found = connect(POLICY), threading.Event(), threading.Event(), list[object]()
    monkeypatch.setattr(Metastore, "features", HIVE4)
    monkeypatch.setattr("sensors.lag._GIVEN_UP", 0.3)

    def hangs(_: LagReader) -> Sequence[Lag]:
        begun.set()
        assert ends.wait(30)
        return []

    monkeypatch.setattr(LagReader, "read", hangs)
    reader = KeptReader(patience=0.1)
    first = threading.Thread(target=lambda: found.append(reader.read(connection)))
    first.start()
    assert begun.wait(30)
    with pytest.raises(Unreachable, match="has not ended"):
        reader.read(connection)
    time.sleep(0.3)
    monkeypatch.setattr(LagReader, "read", lambda _: [WELL])
    assert reader.read(connection) == [WELL]
    ends.set()
    first.join(30)
    assert (found, reader.read(connection)) == ([[]], [WELL])
