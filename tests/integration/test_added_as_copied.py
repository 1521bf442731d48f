"""Lanes that only add partitions add each as soon as its files are copied."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pytest

from hive_replication.copy.tasks import CopyFailure, CopyResult, CopyTask
from hive_replication.load.plan import call_groups
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@pytest.fixture
def replicated(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    monkeypatch.setattr(call_groups, "MOST_ADDED", 1)  # few partitions are several calls
    warehouse.sql("CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)")
    warehouse.replicate()
    return warehouse


@dataclass
class Waiting:
    """Answers for the last file when the first partition is there."""

    warehouse: Warehouse

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        *first, last = tasks
        target, ends = self.warehouse.connection.target.metastore, time.monotonic() + 30
        yield from self.warehouse.connection.copier.copy(first)
        while not target.partition_names(self.warehouse.database, "parts"):
            assert time.monotonic() < ends, "no partition was added before all files were copied"
            time.sleep(0.05)
        yield from self.warehouse.connection.copier.copy([last])


def test_partitions_are_added_while_files_of_others_are_copied(replicated: Warehouse) -> None:
    for day in "123":
        replicated.load_data(f"parts PARTITION (ds='{day}')", f"{day}\n")
    replicated.copier = Waiting(replicated)
    report = replicated.replicate()
    assert (report.held, dict(report.applied)) == ((), {"AddPartitions": 3})
    replicated.assert_equal()


@pytest.mark.parametrize("dropped", [True, False])
def test_a_file_that_is_nowhere_among_those_of_many_partitions(replicated: Warehouse, dropped: bool) -> None:
    """A later event may supersede it; either way no partition is added twice."""
    for day in "1234":
        replicated.load_data(f"parts PARTITION (ds='{day}')", f"{day}\n")
    dump = replicated.dump(replicated.applied())
    adds = [event for event in replicated.connection.store.open(dump.directory).events() if event.groups]
    lost = adds[2].groups[0].files[0]
    storage = replicated.connection.source.storage
    content = storage.read(lost.uri)
    storage.delete(lost.uri)
    if dropped:
        replicated.sql("ALTER TABLE parts DROP PARTITION (ds='3')")
    report = replicated.load(dump.directory, source=replicated.connection.source.metastore)
    if dropped:
        assert report.held == ()
    else:
        (held,) = report.held
        assert (held.after, held.evid) == (adds[1].notification.evid, adds[2].notification.evid)
        storage.write(lost.uri, content)
        assert replicated.load(replicated.dump(held.after).directory).held == ()
    assert replicated.replicate().held == ()
    replicated.assert_equal()
