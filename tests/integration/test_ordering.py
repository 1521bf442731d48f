"""Order across holds, renames, kills and repairs: whatever comes first, the target ends as the source (design: load)."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from hive_replication.load.replica.repl_status import held_tables
from hive_replication.load.replica.state import replica_state
from hive_replication.load.report import LoadReport
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import Table, copy_of
from hive_replication.repair import repair
from tests.faults import Killed
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@pytest.fixture
def replicated(warehouse: Warehouse) -> Warehouse:
    """Two tables and two partitioned ones, replicated."""
    warehouse.sql(
        "CREATE TABLE a (x INT)",
        "CREATE TABLE b (x INT)",
        "CREATE TABLE parts (x INT) PARTITIONED BY (ds STRING)",
        "CREATE TABLE archive (x INT) PARTITIONED BY (ds STRING)",
    )
    warehouse.load_data("a", "a\n")
    warehouse.load_data("b", "b\n")
    for day in "12":
        warehouse.load_data(f"parts PARTITION (ds='{day}')", f"{day}\n")
    warehouse.replicate()
    return warehouse


def hold(warehouse: Warehouse, table: str) -> LoadReport:
    """An insert whose file is nowhere any more holds the table."""
    start = warehouse.applied()
    warehouse.load_data(table, "lost\n")
    dump = warehouse.dump(start)
    (group,) = [group for event in warehouse.connection.store.open(dump.directory).events() for group in event.groups]
    warehouse.connection.source.storage.delete(group.files[0].uri)
    report = warehouse.load(dump.directory)
    assert [held.tables for held in report.held] == [(table,)]
    return report


def catch_up(warehouse: Warehouse) -> LoadReport:
    """From where the lowest held table stands, as the sensor's catch-up runs do."""
    source = warehouse.connection.source.metastore
    return warehouse.load(warehouse.dump(warehouse.status()).directory, source=source)


def test_drop_after_a_hold(replicated: Warehouse) -> None:
    held = hold(replicated, "a")
    replicated.load_data("b", "meanwhile\n")
    replicated.sql("DROP TABLE a")
    assert [one.tables for one in replicated.replicate().held] == [("a",)]
    assert replicated.status() == held.held[0].after
    (shown,) = held_tables(replica_state(replicated.connection.target.metastore.database(replicated.database)))
    assert (shown.table, shown.after, shown.reason) == ("a", held.held[0].after, held.held[0].reason)
    assert (shown.history.evid, shown.history.attempts) == (held.held[0].evid, 1)  # the second load had no reason to try it
    assert catch_up(replicated).held == ()
    assert replicated.status() == replicated.applied()
    replicated.assert_equal()


@pytest.mark.long
def test_swap_rename_chain_over_kills_and_relocation(replicated: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two tables swap names, in a load with other lanes, killed before and after each of the renames."""
    swap = ["ALTER TABLE a RENAME TO tmp", "ALTER TABLE b RENAME TO a", "ALTER TABLE tmp RENAME TO b"]
    alter: Callable[..., None] = Metastore.alter_table
    for kill in range(6):
        start = replicated.applied()
        replicated.load_data("a", f"before{kill}\n")
        replicated.sql(*swap)
        replicated.load_data("a", f"after{kill}\n")
        replicated.load_data(f"parts PARTITION (ds='n{kill}')", "other lane\n")
        dump, renames = replicated.dump(start), iter(range(3))

        def dying(metastore: Metastore, db: str, name: str, table: Table, kill: int = kill, renames: object = renames) -> None:
            number = next(renames) if table.tableName != name else None  # type: ignore[call-overload]
            if number == kill // 2 and kill % 2 == 0:
                raise Killed
            alter(metastore, db, name, table)
            if number == kill // 2:
                raise Killed

        monkeypatch.setattr(Metastore, "alter_table", dying)
        with pytest.raises(Killed):
            replicated.load(dump.directory)
        monkeypatch.undo()
        assert replicated.load(dump.directory).held == ()
        replicated.assert_equal()
    root = replicated.connection.source.policy.source.roots[0].uri
    place, storage = f"{root}tmp/{replicated.database}/moved", replicated.connection.source.storage
    storage.write(f"{place}/table/x", b"elsewhere\n")
    storage.write(f"{place}/part/x", b"elsewhere too\n")
    replicated.sql(
        f"ALTER TABLE a SET LOCATION '{place}/table'", f"ALTER TABLE parts PARTITION (ds='1') SET LOCATION '{place}/part'"
    )
    assert replicated.replicate().held == ()
    replicated.assert_equal()


def test_repair_during_a_window_and_exchanged_partition(replicated: Warehouse) -> None:
    """A table repaired past the end of a window that is still to be loaded; then partitions change hands."""
    connection, start = replicated.connection, replicated.applied()
    replicated.load_data("a", "in the window\n")
    replicated.load_data("parts PARTITION (ds='1')", "in the window\n")
    window = replicated.dump(start)
    replicated.load_data("a", "after it\n", overwrite=True)
    assert repair(connection, replicated.database, "a").load.held == ()
    late = replicated.load(window.directory)
    assert (late.held, {one.table for one in late.touched}) == ((), {"parts"})
    start = replicated.applied()
    replicated.sql("ALTER TABLE archive EXCHANGE PARTITION (ds='2') WITH TABLE parts")
    assert replicated.load(replicated.dump(start).directory, source=connection.source.metastore).held == ()
    replicated.assert_equal()
    assert replica_state(connection.target.metastore.database(replicated.database)).at == {}


def test_database_dropped_while_a_lane_is_held(replicated: Warehouse) -> None:
    hold(replicated, "a")
    start, metastore = replicated.status(), replicated.connection.source.metastore
    database = copy_of(metastore.database(replicated.database))
    assert database is not None
    database.parameters = {}  # Hive drops no database that is a source of replication
    metastore.alter_database(replicated.database, database)
    replicated.hive.execute(f"DROP DATABASE {replicated.database} CASCADE")
    assert replicated.load(replicated.dump(start).directory).held == ()
    assert replicated.connection.target.metastore.database(replicated.database) is None
    assert replicated.status() is None
