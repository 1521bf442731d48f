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
from sensors.notification_log import operator_actions
from sensors.notification_log.operator_actions import unobserved
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

    def act(self, target: str, action: Action) -> None:
        time.sleep(0.01)
        RecordStore.of(self.policy, self.connection.store, target).keep(
            Record(new_token(), action, target, "ann@gate", time.time())
        )

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
