"""What the source keeps and logs: change management and events, scenarios S131 to S145."""

from __future__ import annotations

import pytest

from hive_replication.connect import Connection
from hive_replication.events import event_records as r
from hive_replication.events.decoders_by_event_type import decode
from hive_replication.events.events_of_policy import notifications
from resources.embedded.hive import HiveDriver
from tests.scenarios.support import Site, new_site

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@pytest.fixture(scope="module")
def site(connection: Connection, hive3: HiveDriver) -> Site:
    return new_site(connection, hive3)


def kept(site: Site) -> set[str]:
    """Names of the database's files in cmroot, without their checksums."""
    source = site.connection.source
    names = (status.uri.rpartition("/")[2] for status in source.storage.ls(source.cm_root()))
    return {name.rpartition("_")[0] for name in names if name.startswith(site.database)}


def test_s137_non_repl_db_not_recycled(site: Site) -> None:
    """Before the first dump the database is not marked, and cmroot keeps nothing of it; from then on it does."""
    site.sql("CREATE TABLE early (a STRING)", "CREATE TABLE late (a STRING)")
    names = [site.insert(table, f"{table}\n").rpartition("/")[2] for table in ("early", "late")]
    site.sql("DROP TABLE early")
    assert kept(site) == set()
    site.step()
    site.sql("DROP TABLE late")
    assert kept(site) == {names[1]}


def test_s131_recycle_partitioned(site: Site) -> None:
    """A replaced file, a dropped partition and a dropped table go to cmroot, and the load takes them from there."""
    start = site.applied()
    site.sql("CREATE TABLE parts (a STRING) PARTITIONED BY (p INT)", "CREATE TABLE plain (a STRING)")
    uris = [site.insert("parts", f"{part}\n", f"p={part}") for part in (1, 2, 3)] + [site.insert("plain", "plain\n")]
    before, dump = kept(site), site.dump(start)
    site.load_data("parts PARTITION (p=1)", "over\n", overwrite=True)
    site.sql("ALTER TABLE parts DROP PARTITION (p=2)", "DROP TABLE parts", "DROP TABLE plain")
    assert {uri.rpartition("/")[2] for uri in uris} <= kept(site) - before
    report = site.load(dump.directory)
    assert (report.held, report.files_by_origin) == ((), {"cmroot": 4})
    assert (site.rows("parts"), site.rows("plain")) == (["1", "2", "3"], ["plain"])
    site.step()
    assert site.tables() == []


def test_s136_temp_table_not_recycled(site: Site) -> None:
    """What happens to a temporary table goes neither to cmroot nor to the replica: it has no events."""
    start = site.now()
    if site.applied() is None:
        site.step()
    before = kept(site)
    site.sql("CREATE TEMPORARY TABLE brief (a STRING)")
    site.load_data("brief", "1\n")
    site.load_data("brief", "2\n", overwrite=True)
    site.sql("TRUNCATE TABLE brief", "ALTER TABLE brief RENAME TO briefer", "DROP TABLE briefer")
    assert kept(site) == before
    assert [event for event in site.events(source=True, after=start) if "DATABASE" not in event] == []
    site.step()
    assert not {"brief", "briefer"} & set(site.tables())


def test_s142_repl_ops_not_logged(site: Site) -> None:
    """An empty dump and its load leave no event on either side."""
    if site.applied() is None:
        site.step()
    stands, source, target = site.applied(), site.now(), site.now(source=False)
    dump = site.dump(stands, to_evid=stands)
    assert dump.events == 0
    assert site.load(dump.directory).held == ()
    assert site.events(source=True, after=source) == site.events(source=False, after=target) == []
    # A window of other databases' events moves the replica's state, and nothing else.
    site.hive.execute(f"CREATE DATABASE {site.database}_s142")
    site.load(site.dump(stands).directory)
    assert site.events(source=True, after=source) == []
    assert site.events(source=False, after=target) == ["ALTER_DATABASE"]


def test_s143_repl_alter_db_not_logged(connection: Connection, hive3: HiveDriver) -> None:
    """Marking the source is no change that is replicated; the load of an empty database creates it, and notes its state."""
    fresh = new_site(connection, hive3)
    source, target = fresh.now(), fresh.now(source=False)
    dump = fresh.dump()
    assert fresh.events(source=True, after=source) == ["ALTER_DATABASE"]  # Hive 3.1 logs the mark; 4.x does not
    fresh.load(dump.directory)
    assert fresh.events(source=False, after=target) == ["CREATE_DATABASE", "ALTER_DATABASE"]
    again = fresh.dump(source)
    assert again.events == 1
    shown = fresh.load(again.directory)
    assert (dict(shown.applied), len(shown.skipped)) == ({}, 1)


def test_s145_each_event_type(connection: Connection, hive3: HiveDriver) -> None:
    """Every kind of statement: its events and what they say. Hive's own names of the types."""
    name, start = f"{new_site(connection, hive3).database}_s145", connection.source.metastore.current_event_id()
    hive3.execute(f"CREATE DATABASE {name}", f"ALTER DATABASE {name} SET DBPROPERTIES ('a'='b')")
    made = Site(connection, hive3, name)
    made.sql("CREATE TABLE t (a STRING) PARTITIONED BY (p INT)", "CREATE VIEW v AS SELECT a FROM t", "DROP VIEW v")
    uri = made.insert("t", "1\n", "p=1")
    other = made.insert("t", "2\n", "p=1")
    made.load_data("t PARTITION (p=1)", "3\n", overwrite=True)
    made.sql(
        "ALTER TABLE t PARTITION (p=1) SET SERDEPROPERTIES ('field.delim'=',')",
        "ALTER TABLE t PARTITION (p=1) RENAME TO PARTITION (p=2)",
        "TRUNCATE TABLE t PARTITION (p=2)",
        "ALTER TABLE t DROP PARTITION (p=2)",
        "ALTER TABLE t SET TBLPROPERTIES ('colour'='blue')",
        "ALTER TABLE t RENAME TO u",
        "DROP TABLE u",
    )
    hive3.execute(f"DROP DATABASE {name}")
    rows = [row for row in notifications(connection.source.metastore, start, made.now()) if row.database == name]
    events = [decode(row) for row in rows]
    assert [row.evid for row in rows] == [event.evid for event in events] == sorted(row.evid for row in rows)

    def only(kind: type[r.Event]) -> list[r.Event]:
        return [event for event in events if isinstance(event, kind)]

    assert [type(event) for event in (events[0], events[-1])] == [r.CreateDatabase, r.DropDatabase]
    (altered,) = only(r.AlterDatabase)
    assert (altered.before.parameters or {}, altered.after.parameters) == ({}, {"a": "b"})
    assert [(event.table, event.after.tableType) for event in only(r.CreateTable)] == [
        ("t", "MANAGED_TABLE"),
        ("v", "VIRTUAL_VIEW"),
    ]
    assert [event.table for event in only(r.DropTable)] == ["v", "u"]
    (added,) = only(r.AddPartition)
    assert [(part.name, [file.uri for file in part.files]) for part in added.partitions] == [("p=1", [uri])]
    into, over = only(r.Insert)
    assert (into.partition_name, into.replace, [file.uri for file in into.files]) == ("p=1", False, [other])
    assert (over.partition_name, over.replace, len(over.files)) == ("p=1", True, 1)
    assert all(file.checksum and file.cm_root for file in (*into.files, *over.files))
    parts = [change for event in only(r.AlterPartition) for change in event.changes]
    assert [(c.before_name, c.after_name) for c in parts if c.rename] == [("p=1", "p=2")]
    assert [event.truncate for event in only(r.AlterPartition)].count(True) == 1
    (dropped,) = only(r.DropPartition)
    assert dropped.partitions == ("p=2",)
    tables = only(r.AlterTable)
    assert [event.names for event in tables if event.rename] == [("t", "u")]
    assert "blue" in [(event.after.parameters or {}).get("colour") for event in tables if not event.rename]
    assert not [event for event in events if isinstance(event, r.OtherEvent) and not event.known]
    first = list(connection.source.metastore.events(rows[0].evid - 1, rows[0].evid, batch=1))
    assert [event.eventType for event in first] == ["CREATE_DATABASE"]
