"""Loads that are repeated or go on after a failure: scenarios S116 to S128."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from hive_replication.connect import Connection
from hive_replication.load.apply.change_tables import TableChanges
from hive_replication.load.apply.database import TargetDatabase
from hive_replication.load.command import repl_load
from hive_replication.load.report import LoadReport
from hive_replication.statements import ReplLoad
from resources.embedded.hive import HiveDriver
from tests.faults import DyingCopier, Killed
from tests.scenarios.support import Site, die_at, dying, new_site

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@pytest.fixture(scope="module")
def site(connection: Connection, hive3: HiveDriver) -> Site:
    """Managed and external tables; nothing is replicated yet."""
    made = new_site(connection, hive3)
    made.sql(
        "CREATE TABLE t1 (a STRING)",
        "CREATE TABLE t2 (a STRING)",
        "CREATE TABLE parts (a STRING) PARTITIONED BY (p INT)",
        *(f"CREATE {kind} TABLE {name}_{scenario} (a STRING)" for kind, name in KINDS.items() for scenario in ("s125", "s128")),
    )
    for table in ("t1", "t2"):
        made.insert(table, f"{table}\n")
    for part in (1, 2):
        made.insert("parts", f"{part}\n", f"p={part}")
    return made


KINDS = {"": "managed", "EXTERNAL": "external"}


def load_as(site: Site, name: str, directory: str, **options: object) -> LoadReport:
    """Loads a dump under another name."""
    ends = site.connection
    return repl_load(ends.target, ReplLoad(directory, name), ends.store, site.copier or ends.copier, **options)  # type: ignore[arg-type]


def files(site: Site, database: str) -> Mapping[str, int]:
    """Numbers of data files of each table of a target database."""
    metastore, storage = site.connection.target.metastore, site.connection.target.storage
    tables = metastore.tables(database, metastore.table_names(database))
    return {table.tableName: len(storage.files(str(table.sd.location))) for table in tables if table.sd.location}


def test_s121_retry_move_optimisation(site: Site) -> None:
    """A bootstrap load that dies among its files goes on without doubling one."""
    dump, name = site.dump(), f"{site.database}_s121"
    site.copier = DyingCopier(site.connection.copier, 2)
    with pytest.raises(Killed):
        load_as(site, name, dump.directory)
    site.copier = None
    report = load_as(site, name, dump.directory)
    assert (report.held, report.files_by_origin) == ((), {"present": 2, "source": 2})
    found = files(site, name)
    assert (found["t1"], found["t2"], found["parts"]) == (1, 1, 2)


def test_s116_retry_after_complete(site: Site) -> None:
    """A bootstrap that is complete is not done again, not even where the database was emptied since."""
    metastore, name = site.connection.target.metastore, f"{site.database}_s121"
    dump = site.dump()
    assert load_as(site, name, dump.directory).held == ()
    for table in metastore.table_names(name):
        metastore.drop_table(name, table, delete_data=True)
    report = load_as(site, name, dump.directory)
    assert (dict(report.applied), report.copies) == ({}, ())
    assert "already" in report.skipped[0].reason
    assert metastore.table_names(name) == []


def test_s124_bootstrap_retry_of_one_table(site: Site) -> None:
    """One table fails, its file is away; the others are loaded, and a retry completes it. Hive shows it with ACID tables."""
    storage, dump = site.connection.source.storage, site.dump()
    (status,) = storage.files(str(site.table("t2").sd.location))
    content = storage.read(status.uri)
    storage.delete(status.uri)
    report = site.load(dump.directory)
    assert [held.tables for held in report.held] == [("t2",)]
    assert (site.rows("t1"), site.status(), "t2" in site.tables()) == (["t1"], dump.last_evid, False)
    storage.write(status.uri, content)
    report = site.load(dump.directory)
    assert (report.held, report.files_by_origin, site.status()) == ((), {"source": 1}, dump.last_evid)
    site.assert_equal()


def test_s122_incr_failure_after_copy(site: Site) -> None:
    """Killed between the copy and the change: the copied files are used, no row is double; also with a file from cmroot."""
    start = site.applied()
    site.insert("t1", "s122\n")
    site.insert("t2", "s122\n")
    site.insert("parts", "s122\n", "p=1")
    dump = site.dump(start)
    site.sql("TRUNCATE TABLE t2")
    with pytest.MonkeyPatch.context() as patch:
        die_at(patch, TableChanges, "carry_out", lambda *_: True)
        with pytest.raises(Killed):
            site.load(dump.directory)
    assert site.rows("t1") == ["t1"]
    report = site.load(dump.directory)
    assert (report.held, report.files_by_origin) == ((), {"present": 3})
    assert (site.rows("t1"), site.rows("t2"), site.rows("parts")) == (["s122", "t1"], ["s122", "t2"], ["1", "2", "s122"])
    site.step()
    site.assert_equal()


@pytest.fixture(scope="module")
def replayed(site: Site) -> LoadReport:
    """A window loaded twice: the first load ends just before the database notes it."""
    if site.applied() is None:
        site.step()
    start = site.applied()
    site.sql("CREATE TABLE again (a STRING)")
    site.insert("t1", "s127\n")
    site.insert("again", "first\n")
    site.sql("DROP TABLE again", "CREATE TABLE again (a STRING)")
    site.insert("again", "second\n")
    for name in KINDS.values():
        site.sql(
            f"DROP TABLE {name}_s125",
            f"ALTER TABLE {name}_s128 ADD COLUMNS (b INT)",
            f"ALTER TABLE {name}_s128 SET TBLPROPERTIES ('colour'='blue')",
        )
    dump = site.dump(start)
    with dying(TargetDatabase, "write_state", lambda _, state: state.applied == dump.last_evid):
        site.load(dump.directory)
    assert site.applied() == start
    events = site.now(source=False)
    report = site.load(dump.directory)
    assert site.applied() == dump.last_evid
    assert site.events(source=False, after=events) == ["ALTER_DATABASE"]  # the database's state alone
    return report


@pytest.mark.parametrize("name", KINDS.values())
def test_s125_replay_drop(site: Site, replayed: LoadReport, name: str) -> None:
    """A drop that was applied without being noted is applied again: nothing."""
    assert_nothing(replayed, f"DROP_TABLE {name}_s125")
    assert f"{name}_s125" not in site.tables()


def test_s127_replay_insert(site: Site, replayed: LoadReport) -> None:
    """An INSERT applied again doubles no row, also where the table was dropped and created again."""
    assert_nothing(replayed, "INSERT t1", "INSERT again", "DROP_TABLE again")
    assert site.rows("t1").count("s127") == 1
    assert site.rows("again") == ["second"]


@pytest.mark.parametrize("name", KINDS.values())
def test_s128_replay_alter_table(site: Site, replayed: LoadReport, name: str) -> None:
    """Alterations applied again change nothing."""
    assert_nothing(replayed, f"ALTER_TABLE {name}_s128")
    table = site.table(f"{name}_s128", source=False)
    assert ([column.name for column in table.sd.cols], table.parameters["colour"]) == (["a", "b"], "blue")
    site.assert_equal(only="_s128")


def assert_nothing(report: LoadReport, *events: str) -> None:
    assert (report.held, dict(report.applied), report.copies) == ((), {}, ())
    assert set(events) <= {skipped.what for skipped in report.skipped}
