"""Bootstrap and every event of the seeds' table, made by real Hive 3.1.3, replicated and compared."""

from __future__ import annotations

import pytest

from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


def test_bootstrap_brings_all_tables(warehouse: Warehouse) -> None:
    warehouse.sql(
        "CREATE TABLE plain (a INT, b STRING)",
        "CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)",
        "CREATE TABLE empty (a INT)",
        "CREATE VIEW seen AS SELECT a FROM plain",
    )
    warehouse.load_data("plain", "1\n2\n")
    warehouse.load_data("parts PARTITION (ds='2024-01-01')", "1\n")
    warehouse.load_data("parts PARTITION (ds='a b%/ü')", "2\n")
    dump = warehouse.dump()
    report = warehouse.load(dump.directory)
    assert report.held == ()
    assert len(report.copies) == 3
    assert all(result.proof.recorded for result in report.copies)
    assert warehouse.status() == dump.last_evid
    warehouse.assert_equal()


@pytest.fixture
def replicated(warehouse: Warehouse) -> Warehouse:
    """Two tables, one of them partitioned, replicated."""
    warehouse.sql("CREATE TABLE plain (a INT, b STRING)", "CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)")
    warehouse.load_data("plain", "1\n")
    for day in "123":
        warehouse.load_data(f"parts PARTITION (ds='{day}')", f"{day}\n")
    warehouse.replicate()
    warehouse.assert_equal()
    return warehouse


EVENTS = {
    "CREATE_TABLE": ["CREATE TABLE fresh (x INT)"],
    "CREATE_TABLE of a view": ["CREATE VIEW seen AS SELECT a FROM plain"],
    "DROP_TABLE": ["DROP TABLE plain"],
    "DROP_TABLE of a view": ["CREATE VIEW seen AS SELECT a FROM plain", "DROP VIEW seen"],
    "ALTER_TABLE columns": ["ALTER TABLE plain ADD COLUMNS (c DOUBLE COMMENT 'third')"],
    "ALTER_TABLE properties": ["ALTER TABLE parts SET TBLPROPERTIES ('colour'='blue')"],
    "ALTER_TABLE rename": ["ALTER TABLE plain RENAME TO renamed"],
    "ALTER_TABLE rename partitioned": ["ALTER TABLE parts RENAME TO renamed"],
    "ALTER_TABLE rename chain": ["ALTER TABLE plain RENAME TO a1", "ALTER TABLE parts RENAME TO plain", "ALTER TABLE a1 RENAME TO parts"],
    "truncate": ["TRUNCATE TABLE plain"],
    "truncate partitioned": ["TRUNCATE TABLE parts"],
    "truncate one partition": ["TRUNCATE TABLE parts PARTITION (ds='2')"],
    "ADD_PARTITION": ["ALTER TABLE parts ADD PARTITION (ds='4') PARTITION (ds='5')"],
    "DROP_PARTITION": ["ALTER TABLE parts DROP PARTITION (ds='1')"],
    "DROP_PARTITION range": ["ALTER TABLE parts DROP PARTITION (ds>='2')"],
    "drop and add again": ["ALTER TABLE parts DROP PARTITION (ds='1')", "ALTER TABLE parts ADD PARTITION (ds='1')"],
    "add and drop": ["ALTER TABLE parts ADD PARTITION (ds='9')", "ALTER TABLE parts DROP PARTITION (ds='9')"],
    "ALTER_PARTITION rename": ["ALTER TABLE parts PARTITION (ds='1') RENAME TO PARTITION (ds='one')"],
    "ALTER_PARTITION format": ["ALTER TABLE parts PARTITION (ds='1') SET SERDEPROPERTIES ('field.delim'=',')"],
    "drop and create": ["DROP TABLE plain", "CREATE TABLE plain (other STRING)"],
    "drop and create partitioned": ["DROP TABLE plain", "CREATE TABLE plain (other STRING) PARTITIONED BY (p INT)"],
    "ALTER_DATABASE": ["ALTER DATABASE {db} SET DBPROPERTIES ('team'='sales')"],
}


@pytest.mark.parametrize("statements", EVENTS.values(), ids=EVENTS.keys())
def test_event(replicated: Warehouse, statements: list[str]) -> None:
    replicated.sql(*statements)
    dump = replicated.dump(replicated.applied())
    report = replicated.load(dump.directory)
    assert report.held == ()
    assert replicated.status() == dump.last_evid
    replicated.assert_equal()
    events = replicated.target_events()
    again = replicated.load(dump.directory)
    assert (again.held, dict(again.applied), again.copies) == ((), {}, ())
    assert replicated.target_events() == events


def test_inserts(replicated: Warehouse) -> None:
    replicated.load_data("plain", "2\n")
    replicated.load_data("parts PARTITION (ds='1')", "10\n")
    replicated.load_data("parts PARTITION (ds='7')", "7\n")
    replicated.load_data("parts PARTITION (ds='2')", "20\n", overwrite=True)
    replicated.load_data("plain", "3\n", overwrite=True)
    report = replicated.replicate()
    assert report.held == ()
    assert report.files_by_origin["cmroot"] >= 1
    replicated.assert_equal()


def test_insert_then_drop_comes_from_cmroot(replicated: Warehouse) -> None:
    replicated.load_data("plain", "2\n")
    replicated.sql("DROP TABLE plain")
    report = replicated.replicate()
    assert (report.held, report.files_by_origin["cmroot"]) == ((), 1)
    replicated.assert_equal()


def test_daily_swap_with_inserts_around_it(replicated: Warehouse) -> None:
    replicated.sql("CREATE TABLE plain_new (a INT, b STRING)")
    replicated.load_data("plain_new", "new\n")
    replicated.load_data("plain", "late\n")
    replicated.sql("ALTER TABLE plain RENAME TO plain_old", "ALTER TABLE plain_new RENAME TO plain")
    replicated.load_data("plain", "later\n")
    report = replicated.replicate()
    assert report.held == ()
    replicated.assert_equal()


def test_loading_all_dumps_again_changes_nothing(replicated: Warehouse) -> None:
    first = replicated.dump()
    dumps = [first.directory]
    for statements in EVENTS.values():
        if "plain" in statements[0] or "seen" in statements[0] or "rename" in statements[0].lower():
            continue
        replicated.sql(*statements)
        dumps.append(replicated.dump(replicated.applied()).directory)
        replicated.load(dumps[-1])
    replicated.assert_equal()
    events = replicated.target_events()
    for directory in dumps:
        report = replicated.load(directory)
        assert (report.held, dict(report.applied)) == ((), {})
    assert replicated.target_events() == events
    replicated.assert_equal()
