"""Collapsed windows that fail on the way: never more is claimed than was applied."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import pytest

from hive_replication.copy.tasks import CopyFailure, CopyResult, CopyTask
from hive_replication.dump.format.record_types import EventRecord
from hive_replication.errors import ReplicationError
from hive_replication.load.plan import call_groups
from hive_replication.load.report import Collapsed
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Partition
from tests.faults import Killed
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@pytest.fixture
def replicated(warehouse: Warehouse) -> Warehouse:
    warehouse.sql("CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)")
    for day in "12":
        warehouse.load_data(f"parts PARTITION (ds='{day}')", f"{day}\n")
    warehouse.replicate()
    return warehouse


def inserts(warehouse: Warehouse, directory: str) -> list[EventRecord]:
    events = warehouse.connection.store.open(directory).events()
    return [event for event in events if event.notification.type == "INSERT"]


def test_on_by_default_and_off_by_policy(replicated: Warehouse) -> None:
    for collapse in (True, False):
        connection = replicated.connection
        policy = connection.target.policy.model_copy(update={"collapse": collapse})
        replicated.connection = replace(connection, target=replace(connection.target, policy=policy))
        for row in range(3):
            replicated.load_data("parts PARTITION (ds='1')", f"{row}\n", overwrite=row == 1)
        report = replicated.replicate()
        assert report.held == ()
        assert len(report.copies) == (2 if collapse else 3)
        assert (report.collapsed.files, report.collapsed.bytes) == ((1, 2) if collapse else (0, 0))
        assert (report.collapsed == Collapsed()) is not collapse
        replicated.assert_equal()


def test_a_file_that_is_nowhere_stops_the_lane_at_its_event(replicated: Warehouse) -> None:
    storage = replicated.connection.source.storage
    for day in "121":
        replicated.load_data(f"parts PARTITION (ds='{day}')", f"{day}0\n")
    dump = replicated.dump(replicated.applied())
    first, failing, last = inserts(replicated, dump.directory)
    lost = failing.groups[0].files[0]
    content = storage.read(lost.uri)
    storage.delete(lost.uri)
    (held,) = replicated.load(dump.directory).held
    assert held.evid == failing.notification.evid
    assert first.notification.evid <= held.after < held.evid
    names = [file.name for event in (first, last) for file in event.groups[0].files]
    parts = replicated.content(source=False)["parts"]
    assert isinstance(parts, dict)
    assert [name in parts["partition ['1']"][0] for name in names] == [True, False]
    storage.write(lost.uri, content)
    assert replicated.load(replicated.dump(held.after).directory).held == ()
    replicated.assert_equal()


@dataclass
class Meddling:
    """Somebody drops a partition on the target while files are copied."""

    warehouse: Warehouse

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        target = self.warehouse.connection.target.metastore
        target.drop_partitions(self.warehouse.database, "parts", ["ds=2"], delete_data=False)
        yield from self.warehouse.connection.copier.copy(tasks)


def test_a_failed_operation_claims_none_of_its_events(replicated: Warehouse) -> None:
    for day in "1212":
        replicated.load_data(f"parts PARTITION (ds='{day}')", f"{day}0\n")
    replicated.sql("ALTER TABLE parts SET TBLPROPERTIES ('colour'='blue')")
    dump = replicated.dump(replicated.applied())
    first, second, third, _ = (event.notification.evid for event in inserts(replicated, dump.directory))
    replicated.copier = Meddling(replicated)
    report = replicated.load(dump.directory)
    (held,) = report.held
    assert "went away" in held.reason
    assert dict(report.applied) == {"AppendData": 1}
    assert third in {copy.task.evid for copy in report.copies}
    assert first <= held.after < second
    assert replicated.status("parts") == held.after


@pytest.mark.parametrize("number", [1, 2])
def test_partitions_are_added_by_several_calls_at_the_same_time(
    replicated: Warehouse, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """One of the calls is refused for good, or is the last that the process makes; the others are carried out or not."""
    monkeypatch.setattr(call_groups, "MOST_ADDED", 1)
    target, add = replicated.connection.target.metastore, Metastore.add_partitions
    for failure in (ReplicationError, Killed):
        days = [[f"{failure.__name__}{day}" for day in some] for some in ("3", "4", "56", "7")]  # of each event
        for some in days:
            replicated.sql("ALTER TABLE parts ADD " + " ".join(f"PARTITION (ds='{day}')" for day in some))
            replicated.load_data(f"parts PARTITION (ds='{some[0]}')", "row\n")
        dump = replicated.dump(replicated.applied())
        events = (one.notification for one in replicated.connection.store.open(dump.directory).events())
        added = [0, *(event.evid for event in events if event.type == "ADD_PARTITION")]

        def failing(
            metastore: Metastore,
            db: str,
            table: str,
            partitions: Sequence[Partition],
            first: str = days[number][0],
            failure: type[BaseException] = failure,
        ) -> None:
            if partitions[0].values == [first]:
                raise failure("one of the calls fails")
            add(metastore, db, table, partitions)

        monkeypatch.setattr(Metastore, "add_partitions", failing)
        if failure is Killed:
            with pytest.raises(Killed):
                replicated.load(dump.directory)
        else:
            (held,) = replicated.load(dump.directory).held
            assert added[number] <= held.after < added[number + 1] <= held.evid
        monkeypatch.setattr(Metastore, "add_partitions", add)
        there = target.partition_names(replicated.database, "parts")
        assert {f"ds={day}" for day in days[number]}.isdisjoint(there)
        assert replicated.load(dump.directory).held == ()
        replicated.assert_equal()
