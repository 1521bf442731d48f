"""Lanes of a window go on as soon as their own files are there."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import pytest

from hive_replication.copy.tasks import CopyFailure, CopyResult, CopyTask
from hive_replication.errors import Unreachable
from hive_replication.load.journal.journal import Journal
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]

_PATIENCE = 30.0  # seconds


@dataclass
class Delaying:
    """Copies the files of one table after all others, and only when something is seen, or after a long time.

    Args:
        warehouse: the source and its replica.
        table: whose files wait.
        seen: what they wait for.
        then: happens before they are copied.
    """

    warehouse: Warehouse
    table: str
    seen: Callable[[], bool]
    then: Callable[[], None] = lambda: None
    waited: list[bool] = field(default_factory=list[bool])

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        tasks = list(tasks)
        late = [task for task in tasks if task.object_name.endswith(f".{self.table}")]
        yield from self.warehouse.connection.copier.copy([task for task in tasks if task not in late])
        began = time.monotonic()
        while not self.seen() and time.monotonic() - began < _PATIENCE:
            time.sleep(0.05)
        self.waited.append(self.seen())
        self.then()
        yield from self.warehouse.connection.copier.copy(late)


@pytest.fixture
def replicated(warehouse: Warehouse) -> Warehouse:
    warehouse.sql(
        "CREATE TABLE big (a INT)", "CREATE TABLE small (a INT) PARTITIONED BY (ds STRING)", "CREATE TABLE bare (a INT)"
    )
    warehouse.load_data("small PARTITION (ds='1')", "1\n")
    warehouse.replicate()
    warehouse.load_data("big", "2\n")
    warehouse.load_data("small PARTITION (ds='1')", "3\n")
    warehouse.load_data("small PARTITION (ds='2')", "4\n")
    warehouse.sql("ALTER TABLE bare SET TBLPROPERTIES ('colour'='blue')")
    return warehouse


def others_are_there(warehouse: Warehouse) -> bool:
    target = warehouse.connection.target.metastore
    bare = target.table(warehouse.database, "bare")
    coloured = bare is not None and bare.parameters.get("colour") == "blue"
    return coloured and "ds=2" in target.partition_names(warehouse.database, "small")


def test_a_lane_is_visible_while_the_files_of_another_are_copied(replicated: Warehouse) -> None:
    copier = replicated.copier = Delaying(replicated, "big", lambda: others_are_there(replicated))
    assert replicated.replicate().held == ()
    assert copier.waited == [True]
    replicated.assert_equal()


def test_where_a_storage_goes_away_what_is_visible_is_in_the_journal(replicated: Warehouse) -> None:
    def end() -> None:
        raise Unreachable("the storage does not answer")

    before = replicated.applied()
    dump = replicated.dump(before)
    replicated.copier = Delaying(replicated, "big", lambda: others_are_there(replicated), end)
    with pytest.raises(Unreachable):
        replicated.load(dump.directory)
    assert replicated.applied() == before
    target = replicated.connection.target
    journal = Journal(target.storage, str(target.metastore.database(replicated.database).locationUri))  # type: ignore[union-attr]
    (entry,) = [entry for entry in journal.entries() if entry.to_evid == dump.last_evid]
    assert entry.status == "open"
    assert sorted(lane.record.names for lane in journal.lanes(entry)) == [("bare",), ("small",)]
    replicated.copier = None
    report = replicated.load(dump.directory)
    assert (report.held, report.files_by_origin["source"]) == ((), 1)  # what was copied before is not copied again
    replicated.assert_equal()
