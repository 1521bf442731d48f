"""Bootstrap and every event of the seeds' table, made by real Hive 3.1.3, replicated and compared."""

from __future__ import annotations

import uuid
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from hive_replication.connect import Connection
from resources.embedded.hive import HiveDriver
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@pytest.fixture(
    scope="module", params=[pytest.param("connection", marks=pytest.mark.long), "connection4"], ids=["to 3.1.3", "to 4.2.0"]
)
def to(request: pytest.FixtureRequest) -> Connection:
    """To a metastore of the source's version, and to the next one."""
    return request.getfixturevalue(request.param)


@pytest.fixture
def warehouse(to: Connection, warehouse: Warehouse) -> Warehouse:
    """A fresh source database, not replicated yet."""
    return replace(warehouse, connection=to)


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
    "CREATE_TABLE": ["CREATE TABLE fresh_{n} (x INT)"],
    "CREATE_TABLE of a view": ["CREATE VIEW seen_{n} AS SELECT a FROM plain_{n}"],
    "DROP_TABLE": ["DROP TABLE plain_{n}"],
    "DROP_TABLE of a view": ["CREATE VIEW seen_{n} AS SELECT a FROM plain_{n}", "DROP VIEW seen_{n}"],
    "ALTER_TABLE columns": ["ALTER TABLE plain_{n} ADD COLUMNS (c DOUBLE COMMENT 'third')"],
    "ALTER_TABLE properties": ["ALTER TABLE parts_{n} SET TBLPROPERTIES ('colour'='blue')"],
    "ALTER_TABLE rename": ["ALTER TABLE plain_{n} RENAME TO renamed_{n}"],
    "ALTER_TABLE rename partitioned": ["ALTER TABLE parts_{n} RENAME TO renamed_{n}"],
    "ALTER_TABLE rename chain": [
        "ALTER TABLE plain_{n} RENAME TO a1_{n}",
        "ALTER TABLE parts_{n} RENAME TO plain_{n}",
        "ALTER TABLE a1_{n} RENAME TO parts_{n}",
    ],
    "truncate": ["TRUNCATE TABLE plain_{n}"],
    "truncate partitioned": ["TRUNCATE TABLE parts_{n}"],
    "truncate one partition": ["TRUNCATE TABLE parts_{n} PARTITION (ds='2')"],
    "ADD_PARTITION": ["ALTER TABLE parts_{n} ADD PARTITION (ds='4') PARTITION (ds='5')"],
    "DROP_PARTITION": ["ALTER TABLE parts_{n} DROP PARTITION (ds='1')"],
    "DROP_PARTITION range": ["ALTER TABLE parts_{n} DROP PARTITION (ds>='2')"],
    "drop and add again": ["ALTER TABLE parts_{n} DROP PARTITION (ds='1')", "ALTER TABLE parts_{n} ADD PARTITION (ds='1')"],
    "add and drop": ["ALTER TABLE parts_{n} ADD PARTITION (ds='9')", "ALTER TABLE parts_{n} DROP PARTITION (ds='9')"],
    "ALTER_PARTITION rename": ["ALTER TABLE parts_{n} PARTITION (ds='1') RENAME TO PARTITION (ds='one')"],
    "ALTER_PARTITION format": ["ALTER TABLE parts_{n} PARTITION (ds='1') SET SERDEPROPERTIES ('field.delim'=',')"],
    "drop and create": ["DROP TABLE plain_{n}", "CREATE TABLE plain_{n} (other STRING)"],
    "drop and create partitioned": ["DROP TABLE plain_{n}", "CREATE TABLE plain_{n} (other STRING) PARTITIONED BY (p INT)"],
    "ALTER_DATABASE": ["ALTER DATABASE {db} SET DBPROPERTIES ('team'='sales')"],
}


@pytest.fixture(scope="module")
def cases(to: Connection, hive3: HiveDriver) -> Warehouse:
    """Two tables for each case, one of them partitioned, all in one database and replicated."""
    connection = to
    warehouse = Warehouse(connection, hive3, f"t{uuid.uuid4().hex[:10]}")
    hive3.execute(f"CREATE DATABASE {warehouse.database}", f"ALTER DATABASE {warehouse.database} SET OWNER USER hive")
    storage, metastore = connection.source.storage, connection.source.metastore
    numbers = range(len(EVENTS))
    warehouse.sql(
        *(f"CREATE TABLE plain_{n} (a INT, b STRING)" for n in numbers),
        *(f"CREATE TABLE parts_{n} (a INT) PARTITIONED BY (ds STRING)" for n in numbers),
    )
    files: dict[str, bytes] = {}
    for table in metastore.tables(warehouse.database, metastore.table_names(warehouse.database)):
        places = [f"ds={day}/" for day in "123"] if table.partitionKeys else [""]
        files |= {f"{table.sd.location}/{place}data": f"{table.tableName}{place}".encode() for place in places}
    with ThreadPoolExecutor(32) as pool:
        list(pool.map(storage.write, files, files.values()))
    days = " ".join(f"PARTITION (ds='{day}')" for day in "123")
    warehouse.sql(*(f"ALTER TABLE parts_{n} ADD {days}" for n in numbers))
    warehouse.replicate()
    warehouse.assert_equal()
    return warehouse


@pytest.mark.parametrize("name", EVENTS)
def test_event(cases: Warehouse, name: str) -> None:
    number = list(EVENTS).index(name)
    cases.sql(*(statement.replace("{n}", str(number)) for statement in EVENTS[name]))
    dump = cases.dump(cases.applied())
    assert dump.events
    report = cases.load(dump.directory)
    assert (report.held, report.changed_on_target) == ((), ())
    assert cases.status() == dump.last_evid
    cases.assert_equal(only=f"_{number}")
    events = cases.target_events()
    again = cases.load(dump.directory)
    assert (again.held, dict(again.applied), again.copies) == ((), {}, ())
    assert cases.target_events() == events


def test_inserts(replicated: Warehouse) -> None:
    replicated.load_data("plain", "2\n")
    replicated.load_data("parts PARTITION (ds='1')", "10\n")
    replicated.load_data("parts PARTITION (ds='7')", "7\n")
    replicated.load_data("parts PARTITION (ds='2')", "20\n", overwrite=True)
    replicated.load_data("plain", "3\n", overwrite=True)
    report = replicated.replicate()
    assert (report.held, report.files_by_origin["cmroot"]) == ((), 0)  # what the overwrite replaced is not copied
    replicated.assert_equal()


def test_insert_then_drop_comes_from_cmroot(replicated: Warehouse) -> None:
    replicated.load_data("plain", "2\n")
    dump = replicated.dump(replicated.applied())
    replicated.sql("DROP TABLE plain")
    report = replicated.load(dump.directory)
    assert (report.held, report.files_by_origin["cmroot"]) == ((), 1)
    assert replicated.replicate().held == ()
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


def test_names_come_again_within_a_window(replicated: Warehouse) -> None:
    """What the target has under a name before the window is not what the window's inserts of that name are about."""
    replicated.sql("ALTER TABLE parts ADD PARTITION (ds='5')")
    replicated.replicate()
    replicated.sql("ALTER TABLE parts DROP PARTITION (ds='5')")  # its empty directory looks free until then
    replicated.load_data("parts PARTITION (ds='5')", "5\n")
    assert replicated.replicate().held == ()
    replicated.assert_equal()
    replicated.sql("ALTER TABLE parts PARTITION (ds='3') RENAME TO PARTITION (ds='6')")
    replicated.load_data("parts PARTITION (ds='6')", "renamed\n")
    replicated.sql("ALTER TABLE parts DROP PARTITION (ds='6')")
    replicated.load_data("parts PARTITION (ds='6')", "again\n")
    assert replicated.replicate().held == ()
    replicated.assert_equal()
    replicated.sql("ALTER TABLE parts RENAME TO days")
    replicated.load_data("days PARTITION (ds='1')", "renamed\n")
    replicated.load_data("days PARTITION (ds='7')", "7\n")
    assert replicated.replicate().held == ()
    replicated.assert_equal()


def test_loading_all_dumps_again_changes_nothing(replicated: Warehouse) -> None:
    steps = [
        ["ALTER TABLE parts ADD PARTITION (ds='4')", "CREATE TABLE fresh (x INT)"],
        ["ALTER TABLE parts DROP PARTITION (ds='1')", "ALTER TABLE fresh RENAME TO renamed", "ALTER TABLE plain RENAME TO fresh"],
        ["TRUNCATE TABLE fresh", "DROP TABLE renamed", "ALTER TABLE parts ADD PARTITION (ds='1')"],
    ]
    dumps = [replicated.dump().directory]
    for statements in steps:
        replicated.sql(*statements)
        replicated.load_data("parts PARTITION (ds='2')", f"{len(dumps)}\n", overwrite=len(dumps) == 2)
        dumps.append(replicated.dump(replicated.applied()).directory)
        replicated.load(dumps[-1])
    replicated.assert_equal()
    events = replicated.target_events()
    for directory in dumps:
        report = replicated.load(directory)
        assert (report.held, dict(report.applied)) == ((), {})
    assert replicated.target_events() == events
    replicated.assert_equal()
