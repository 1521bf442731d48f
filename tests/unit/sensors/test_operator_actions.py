"""What operators did: listed of the databases that they did it to, and of no others."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from hive_replication.connect import Connection
from hive_replication.load.layout.directories import new_token
from hive_replication.load.records import Record, RecordStore, last_asked
from hive_replication.load.records.record import Action
from hive_replication.policy import Root
from hive_replication.policy.warehouse import pair_hash
from hive_replication.storage import FileStatus, Storage
from repl_assets.catalog.keys import Names
from sensors.notification_log import operator_actions
from sensors.notification_log.operator_actions import observations, unobserved
from tests.lags import POLICY

DATABASES = {"sales": "sales_dr", "hr": "hr", "logs": "logs"}


class CountingStorage(Storage):
    """Notes which directories are listed."""

    def __init__(self, root: Path) -> None:
        super().__init__((Root(uri=root.as_uri()),))
        self.listed: list[str] = []

    def ls(self, uri: str) -> list[FileStatus]:
        self.listed.append(uri.rpartition("/.reports/")[2])
        return super().ls(uri)


class Site:
    """A store of dumps with records, and what a sensor knows of it."""

    def __init__(self, root: Path) -> None:
        self.storage, self.root = CountingStorage(root), root.as_uri()
        self.policy = POLICY.model_copy(update={"databases": DATABASES})
        fake: Any = SimpleNamespace(
            target=SimpleNamespace(policy=self.policy), store=SimpleNamespace(storage=self.storage, root=self.root)
        )
        self.connection = cast("Connection", fake)
        self.asked, self.checked = 0.0, time.time() - 600

    def act(self, target: str, action: Action, by: str = "ann@gate") -> None:
        time.sleep(0.01)
        RecordStore.of(self.policy, self.connection.store, target).keep(Record(new_token(), action, target, by, time.time()))

    def look(self) -> list[tuple[str, str]]:
        """As a tick does."""
        marks = last_asked(self.policy, self.connection.store)
        self.storage.listed.clear()
        found = unobserved(self.connection, marks, self.checked, self.asked, ())
        self.asked, self.checked = max(marks.values(), default=0.0), time.time()
        return [(database, record.action) for database, record in found]


@pytest.fixture
def site(tmp_path: Path) -> Site:
    return Site(tmp_path)


def test_one_mark_is_one_listing(site: Site) -> None:
    for database in DATABASES.values():
        site.act(database, "pause")
    assert site.look() == [(database, "pause") for database in DATABASES]
    site.act("sales_dr", "resume")
    assert site.look() == [("sales", "pause"), ("sales", "resume")]  # the first one is in what the cursor has
    today = time.strftime("%Y-%m-%d", time.gmtime())
    own = f".by-day/sales_dr-{pair_hash(POLICY.pair)}"
    assert site.storage.listed == [own, f"{own}/{today}"]
    assert site.look() == []
    assert site.storage.listed == []


def test_loads_and_repairs_by_hand_are_shown_and_those_of_dagster_are_not(site: Site) -> None:
    """Dagster has entries of its own runs already."""
    actions: tuple[Action, ...] = ("bootstrap", "window", "repair", "catch-up", "recovery")
    for action in actions:
        site.act("sales_dr", action, "Dagster run 0a1b")
        site.act("sales_dr", action)
    assert site.look() == [("sales", action) for action in actions]


def test_a_load_by_hand_is_an_entry_of_its_database_and_a_repair_one_of_its_table_too() -> None:
    names, at = Names("p"), 1_700_000_000.0
    load = Record("1", "window", "sales_dr", "ann@gate", at, window="5-9", to_evid=9, report="hdfs://d/r.parquet")
    (entry,) = observations(names, "sales", load)
    assert (entry.asset_key, entry.description) == (names.database("sales", "load"), "window by ann@gate")
    shown = {"action": "window", "by": "ann@gate", "time": at, "outcome": "done"}
    assert {name: value.value for name, value in entry.metadata.items()} == {
        **shown, "window": "5-9", "evid": 9, "report": "hdfs://d/r.parquet"
    }  # fmt: skip
    repair = Record("2", "repair", "sales_dr", "ann@gate", at, "held", "repair-9", 9, ("a b", "orders"), text="no space")
    entries = list(observations(names, "sales", repair))
    assert [one.asset_key for one in entries] == [
        names.database("sales", "load"),
        names.table("sales", "a b", "load"),
        names.table("sales", "orders", "load"),
    ]
    told = {**shown, "action": "repair", "outcome": "held", "window": "repair-9", "evid": 9, "details": "no space"}
    assert [{name: value.value for name, value in one.metadata.items()} for one in entries] == [told] * 3


def test_old_marks_are_none_for_a_sensor_that_begins(site: Site) -> None:
    site.act("sales_dr", "pause")
    site.checked = time.time() + 3600
    assert site.look() == []
    assert site.storage.listed == []


def test_a_store_that_lists_slowly_keeps_no_tick(
    site: Site, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    for database in DATABASES.values():
        site.act(database, "pause")
    monkeypatch.setattr(operator_actions, "_LONGEST", -1.0)
    assert site.look() == []
    assert "what was done by hand to hr is not shown" in caplog.text
