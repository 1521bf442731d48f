"""A window with more messages than memory is to hold, loaded in parts: here event by event."""

from __future__ import annotations

from itertools import pairwise

import pytest

from hive_replication.load import parts_of_window
from hive_replication.load.journal.journal import Journal
from hive_replication.load.undo.undo import release, undo
from tests.faults import Killed
from tests.integration.test_undo import dying, place
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@pytest.fixture
def behind(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> Warehouse:
    """A replica that lacks a window of many kinds of events."""
    monkeypatch.setattr(parts_of_window, "PART", 1)
    warehouse.sql(
        "CREATE TABLE plain (a INT)",
        "CREATE TABLE days (a INT) PARTITIONED BY (ds STRING)",
        "CREATE TABLE gone (a INT)",
        "CREATE TABLE old (a INT)",
    )
    warehouse.load_data("days PARTITION (ds='1')", "1\n")
    warehouse.load_data("old", "1\n")
    warehouse.replicate()
    warehouse.load_data("plain", "1\n")
    warehouse.load_data("days PARTITION (ds='1')", "2\n", overwrite=True)
    warehouse.load_data("days PARTITION (ds='2')", "3\n")
    warehouse.sql("DROP TABLE gone", "ALTER TABLE old RENAME TO new", "CREATE TABLE old (b STRING)")
    warehouse.load_data("new", "4\n")
    warehouse.load_data("old", "x\n")
    warehouse.sql("ALTER TABLE days DROP PARTITION (ds='2')", "ALTER TABLE plain ADD COLUMNS (b INT)")
    return warehouse


def test_parts_are_loads_of_their_own_and_their_report_is_of_all(behind: Warehouse) -> None:
    begin, dump = behind.applied(), behind.dump(behind.applied())
    report = behind.load(dump.directory)
    behind.assert_equal()
    assert (report.from_evid, report.to_evid, report.held) == (begin, dump.last_evid, ())
    assert {"plain", "days", "gone", "old", "new"} == {one.table for one in report.touched}
    assert report.applied["RenameTable"] == 1
    entries = Journal(behind.connection.target.storage, place(behind)).entries()
    assert len(entries) > 8
    assert {one.status for one in entries} == {"done"}
    assert all(one.to_evid <= other.from_evid for one, other in pairwise(entries))
    assert dict(behind.load(dump.directory).applied) == {}
    target = behind.connection.target
    undo(target, behind.database, None, entries[4].to_evid)
    release(target, behind.database)
    assert behind.applied() == entries[4].to_evid
    behind.load(dump.directory)
    behind.assert_equal()


def test_a_load_that_is_killed_goes_on_with_the_part_that_it_was_in(behind: Warehouse) -> None:
    dump, stands = behind.dump(behind.applied()), [behind.applied()]
    while True:
        with pytest.MonkeyPatch.context() as patch:
            dying(patch, behind, 6)
            try:
                behind.load(dump.directory)
                break
            except Killed:
                stands.append(behind.applied())
    assert sorted(stands) == stands
    assert len(set(stands)) > 3
    behind.assert_equal()
    assert behind.applied() == dump.last_evid
