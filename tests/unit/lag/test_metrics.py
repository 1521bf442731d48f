"""What a scrape says while servers are down, hang or deny, and of which databases."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

from hive_replication.errors import Unreachable
from hive_replication.lag import Lag, LagReader, metrics
from hive_replication.lag.metrics import LagCollector
from hive_replication.load.journal.journal import FinishedLoad
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.dialect import Features
from hive_replication.policy import Policy
from hive_replication.storage import Denied
from tests.lags import POLICY, WELL


@pytest.fixture
def local(tmp_path: Path) -> Policy:
    """A policy whose dump root needs no server."""
    return POLICY.model_copy(update={"dump_root": f"file://{tmp_path}"})


class Scraped:
    """A page, scraped again and again.

    Args:
        policy: what it tells of.
        every: seconds between two readings.
    """

    def __init__(self, policy: Policy, every: float = 0.0) -> None:
        self._policy, self._registry = policy, CollectorRegistry()
        self.collector = LagCollector(policy, every)
        self._registry.register(self.collector)

    def values(self) -> dict[str, float]:
        """By metric, and database where it has one."""
        return {
            " ".join((sample.name.removeprefix("hive_replication_"), sample.labels.get("database", ""))).strip(): sample.value
            for family in self._registry.collect()
            for sample in family.samples
            if "table" not in sample.labels
        }


HIVE3, HIVE4 = Features("3", "uuid"), Features("4.1.0", "uuid")
DOWN = {"up": 0.0, "lag_target_seconds": 900.0}


@pytest.fixture
def hanging() -> Iterator[str]:
    """The address of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0), backlog=64) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


@pytest.mark.parametrize("side", ["source", "target"])
def test_a_scrape_says_within_seconds_that_a_metastore_hangs(
    hanging: str, side: str, local: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Prometheus waits no longer than 10 s, and without an answer no rule fires."""
    sides = {side: getattr(local, side).model_copy(update={"metastore": f"thrift://{hanging}"})}
    if side == "target":
        monkeypatch.setattr(Metastore, "current_event_id", lambda _: 100)
    page = Scraped(local.model_copy(update=sides))
    for _ in range(2):
        began = time.monotonic()
        assert page.values() == DOWN
        assert time.monotonic() - began < 5


def test_a_scrape_says_within_seconds_that_the_dump_root_hangs(hanging: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics, "_TIMEOUT", 0.2)
    monkeypatch.setattr(LagReader, "read", lambda _: (WELL,))
    roots = tuple(root.model_copy(update={"uri": f"hdfs://{hanging}/"}) for root in POLICY.target.roots)
    target = POLICY.target.model_copy(update={"roots": roots})
    assert Scraped(POLICY.model_copy(update={"target": target, "dump_root": f"hdfs://{hanging}/dumps"})).values() == DOWN


@pytest.fixture
def answering(monkeypatch: pytest.MonkeyPatch) -> None:
    """All servers answer, and nothing waits."""
    monkeypatch.setattr(metrics, "require_answers", lambda *_: None)
    monkeypatch.setattr(metrics, "_PATIENCE", 0.2)
    monkeypatch.setattr(Metastore, "database", lambda *_: SimpleNamespace(locationUri="hdfs://target:8020/x"))
    monkeypatch.setattr(metrics, "finished_loads", lambda *_: [FinishedLoad(1, 2, 50.0)])
    monkeypatch.setattr(LagReader, "read", lambda reader: tuple(replace(WELL, database=one) for one in reader._databases))


@pytest.mark.usefixtures("answering")
def test_old_figures_are_served_while_servers_are_slow_but_not_for_long(local: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """A reading that never ends is given up, and the next one counts."""
    page, ends = Scraped(local), threading.Event()
    well = page.values()
    assert (well["up"], well["seconds_behind sales"], well["last_load_timestamp_seconds sales"]) == (1, 0, 50)

    def hangs(_: LagReader) -> Any:
        assert ends.wait(30)
        return (replace(WELL, seconds_behind=77.0),)

    with monkeypatch.context() as patch:
        patch.setattr(LagReader, "read", hangs)
        assert page.values() == well
        patch.setattr(metrics, "_TOO_OLD", 0.0)
        assert page.values() == DOWN
    monkeypatch.setattr(metrics, "_GIVEN_UP", 0.0)
    assert page.values() == well
    ends.set()
    assert page.values() == well


@pytest.mark.usefixtures("answering")
def test_figures_of_the_last_scrape_are_served_however_long_ago_that_was(local: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """With two minutes between two scrapes, and a reading longer than a scrape waits; but not once a reading breaks or hangs."""
    page, ends = Scraped(local), threading.Event()
    well = page.values()

    def slow(_: LagReader) -> Any:
        assert ends.wait(30)
        return (replace(WELL, seconds_behind=77.0),)

    with monkeypatch.context() as patch:
        patch.setattr(LagReader, "read", slow)
        page.collector._observed -= 120.0
        assert page.values() == well
        page.collector._began -= 120.0
        assert page.values() == DOWN
        page.collector._began -= 300.0
        assert page.values() == DOWN, "given up: the next one may hang as long"
        ends.set()
        assert page.values()["seconds_behind sales"] == 77


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.usefixtures("answering")
def test_a_reading_that_breaks_leaves_no_old_figures(local: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    page = Scraped(local)
    assert page.values()["up"] == 1
    monkeypatch.setattr(LagReader, "read", lambda _: 1 // 0)
    assert page.values() == DOWN


@pytest.mark.usefixtures("answering")
def test_a_journal_that_may_not_be_read_hides_nothing_else(local: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    def denied(_: object, location: str) -> Any:
        if location.endswith("hr"):
            raise Denied("the account x lacks r")
        return [FinishedLoad(1, 2, 50.0)]

    both = local.model_copy(update={"databases": {"hr": "hr", "sales": "sales"}})
    lags = tuple(replace(WELL, database=name, target_database=name) for name in both.databases)
    monkeypatch.setattr(Metastore, "database", lambda _, name: SimpleNamespace(locationUri=f"hdfs://target:8020/{name}"))
    monkeypatch.setattr(metrics, "finished_loads", denied)
    monkeypatch.setattr(LagReader, "read", lambda _: lags)
    found = Scraped(both).values()
    assert (found["up"], found["seconds_behind hr"], found["last_load_timestamp_seconds sales"]) == (1, 0, 50)
    assert "last_load_timestamp_seconds hr" not in found


@pytest.mark.usefixtures("answering")
def test_databases_that_patterns_take_in_later_get_metrics(local: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    there = ["s1"]
    monkeypatch.setattr(metrics, "_PATIENCE", 30.0)  # no reading hangs, but the machine may be busy
    monkeypatch.setattr(Metastore, "databases", lambda _: list(there))
    monkeypatch.setattr(Metastore, "database", lambda *_: None)
    page = Scraped(local.model_copy(update={"databases": {"s*": "*"}, "new_databases": True}))
    assert "events_waiting s2" not in page.values()
    there.append("s2")
    assert {"events_waiting s1", "events_waiting s2"} < page.values().keys()


@pytest.mark.usefixtures("answering")
def test_a_replica_that_is_gone_has_a_metric_of_its_own(local: Policy, monkeypatch: pytest.MonkeyPatch) -> None:
    """No lag of it is known, and there is no gap."""
    page = Scraped(local)
    assert page.values()["no_replica sales"] == 0
    monkeypatch.setattr(LagReader, "read", lambda _: (replace(WELL, applied=None, waiting=None, seconds_behind=None),))
    found = page.values()
    assert (found["no_replica sales"], found["gap sales"], "seconds_behind sales" in found) == (1, 0, False)


@pytest.mark.parametrize("now", [HIVE3, replace(HIVE3, uuid="restored"), HIVE4], ids=["as before", "made anew", "upgraded"])
@pytest.mark.usefixtures("answering")
def test_what_the_source_is_is_asked_again_once_a_reading_failed(
    now: Features, local: Policy, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Commits of transactions did not count after an upgrade; but what was read of the log stays where there was none."""
    there, readers, away = HIVE3, list[tuple[LagReader, bool]](), False

    def read(reader: LagReader) -> tuple[Lag, ...]:
        if away:
            raise Unreachable("nobody answers")
        readers.append((reader, reader._source.acid))
        return (WELL,)

    monkeypatch.setattr(metrics, "_PATIENCE", 30.0)  # no reading hangs, but the machine may be busy
    monkeypatch.setattr(Metastore, "call", lambda *_, **__: there)
    monkeypatch.setattr(LagReader, "read", read)
    page = Scraped(local)
    page.values()
    away = True
    assert page.values() == DOWN
    away, there = False, now
    for _ in range(2):
        assert page.values()["up"] == 1
    (before, _), (after, acid), (later, _) = readers
    assert (after is before, acid, later is after) == (now == HIVE3, now == HIVE4, True)
