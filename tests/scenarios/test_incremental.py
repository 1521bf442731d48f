"""Incremental replication: scenarios S037 to S085. Four dumps and loads of one database, each with statements of many scenarios.

Tables carry the number of their scenario at the end of their names. ``before`` is replicated by the bootstrap, ``during`` is in
the first window, ``after`` comes after its dump and before its load, so that what it removes comes from cmroot.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

import pytest

from hive_replication.connect import Connection
from hive_replication.dump.format.record_types import DumpResult
from hive_replication.dump.format.tree import TreeStore
from hive_replication.events.files import FileRef
from hive_replication.load.report import LoadReport
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import copy_of
from resources.embedded.hive import HiveDriver
from tests.scenarios.support import Site, new_site

pytestmark = [pytest.mark.servers, pytest.mark.hive]

BEFORE = """
CREATE TABLE plain_s037 (a STRING)
CREATE TABLE parts_s040 (a STRING) PARTITIONED BY (p INT)
CREATE TABLE keys_s041 (a STRING) PARTITIONED BY (year INT, month STRING, day INT)
CREATE TABLE plain_s043 (a STRING)
CREATE TABLE plain_s046 (a STRING)
CREATE TABLE texts_s046 (a STRING) PARTITIONED BY (p STRING)
CREATE TABLE numbers_s046 (a STRING) PARTITIONED BY (p INT)
CREATE TABLE plain_s047 (a STRING)
CREATE TABLE parts_s047 (a STRING) PARTITIONED BY (p INT)
CREATE TABLE plain_s050 (a STRING)
CREATE TABLE plain_s052 (a STRING)
CREATE TABLE parts_s053 (a STRING) PARTITIONED BY (p INT)
CREATE TABLE special_s055 (a STRING) PARTITIONED BY (p STRING)
CREATE TABLE plain_s056 (a STRING)
CREATE TABLE parts_s056 (a STRING) PARTITIONED BY (p INT)
CREATE TABLE plain_s058 (a STRING)
CREATE TABLE parts_s059 (a STRING) PARTITIONED BY (p INT)
CREATE TABLE plain_s061 (a STRING)
CREATE TABLE parts_s062 (a STRING) PARTITIONED BY (p INT)
CREATE TABLE every_s062 (a STRING) PARTITIONED BY (p INT)
CREATE TABLE files_s067 (a STRING) PARTITIONED BY (p INT) STORED AS RCFILE
CREATE TABLE parts_s077 (a STRING) PARTITIONED BY (p INT)
CREATE TABLE plain_s080 (a STRING)
CREATE TABLE parts_s080 (a STRING) PARTITIONED BY (p INT)
"""

DURING = """
ALTER TABLE keys_s041 ADD PARTITION (year=2024, month='05', day=3)
ALTER TABLE files_s067 PARTITION (p=1) CONCATENATE
DROP TABLE plain_s046
ALTER TABLE texts_s046 DROP PARTITION (p='x')
ALTER TABLE numbers_s046 DROP PARTITION (p > 1)
ALTER DATABASE {db} SET DBPROPERTIES ('team'='sales', 'tier'='1')
ALTER DATABASE {db} SET OWNER USER ann
ALTER TABLE special_s055 DROP PARTITION (p='a b/c%d')
TRUNCATE TABLE plain_s061
TRUNCATE TABLE parts_s062 PARTITION (p=1)
TRUNCATE TABLE every_s062
CREATE TABLE fresh_s074 (a STRING) PARTITIONED BY (p INT)
CREATE TABLE parts_s076 (a STRING) PARTITIONED BY (p INT)
ALTER TABLE parts_s076 ADD PARTITION (p=1) PARTITION (p=2)
ALTER TABLE parts_s077 DROP PARTITION (p < 4)
CREATE TABLE again_s079 (a STRING)
DROP TABLE again_s079
CREATE TABLE again_s079 (a STRING, b INT)
DROP TABLE plain_s080
CREATE TABLE plain_s080 (a STRING) PARTITIONED BY (p INT)
DROP TABLE parts_s080
CREATE TABLE parts_s080 (a STRING)
"""

AFTER = """
DROP TABLE plain_s047
ALTER TABLE parts_s047 DROP PARTITION (p=2)
DROP TABLE plain_s050
ALTER TABLE plain_s056 RENAME TO renamed_s056
ALTER TABLE parts_s056 RENAME TO renamed_parts_s056
"""

SPECIAL = ("a b/c%d", "ü☃", "q'\"#:=?*[]{}^\\")


@dataclass
class Run:
    """The database and what was seen on the way.

    Args:
        site: the database.
        dumps: the bootstrap's and the two windows'.
        report: of the first window's load.
        first: rows of the replica after it.
        errors: what Hive answered to statements that it refuses, by table.
        target_events: the target's newest event before it.
        tables: of the replica at the end.
        drops: calls that dropped partitions of ``parts_s077``.
    """

    site: Site
    dumps: list[DumpResult]
    report: LoadReport
    first: Mapping[str, list[str]]
    errors: Mapping[str, str]
    target_events: int
    tables: list[str]
    drops: list[list[str]]


@pytest.fixture(scope="module")
def run(connection: Connection, hive3: HiveDriver) -> Run:
    store = TreeStore(connection.store.storage, connection.store.root)  # S037 and S038 look into it
    site = new_site(replace(connection, store=store), hive3)
    site.sql(*BEFORE.strip().splitlines())
    fill(site)
    dumps = [site.step()]
    errors = change(site)
    events = site.now(source=False)
    dumps.append(site.dump(site.applied()))
    change_after_the_dump(site)
    drops: list[list[str]] = []
    drop = Metastore.drop_partitions

    def dropping(metastore: Metastore, db: str, table: str, names: Iterable[str], **options: bool) -> None:
        names = list(names)
        drops.extend([names] if table == "parts_s077" else [])
        drop(metastore, db, table, names, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Metastore, "drop_partitions", dropping)
        report = site.load(dumps[1].directory)
    assert report.held == (), report.held
    first = {name: site.rows(name) for name in site.tables()}
    dumps.append(site.step())
    return Run(site, dumps, report, first, errors, events, site.tables(), drops)


def fill(site: Site) -> None:
    for table, parts in {
        "parts_s040": "12",
        "numbers_s046": "1234",
        "parts_s047": "1",
        "parts_s053": "12",
        "parts_s056": "1",
        "parts_s059": "1",
        "parts_s062": "12",
        "every_s062": "12",
        "parts_s077": "12345",
        "parts_s080": "1",
    }.items():
        for part in parts:
            site.insert(table, f"old {part}\n", f"p={part}")
    for part in ("x", "y"):
        site.insert("texts_s046", f"{part}\n", f"p={part}")
    for table in ("plain_s046", "plain_s047", "plain_s052", "plain_s058", "plain_s061"):
        site.insert(table, "old\n")
    fill_files(site)
    days = ", ".join(f"(p='{escaped(value)}')" for value in SPECIAL)
    site.sql(*(f"ALTER TABLE special_s055 ADD PARTITION {day}" for day in days.split(", ")))


def escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("'", "\\'").replace("{", "{{").replace("}", "}}")


def change(site: Site) -> dict[str, str]:
    """The first window; gives what Hive answered to what it refuses."""
    site.insert("plain_s037", "1\n")
    site.insert("parts_s040", "into\n", "p=1")
    site.insert("parts_s040", "new\n", "p=3")
    site.load_data("parts_s040 PARTITION (p=2)", "over\n", overwrite=True)
    site.load_data("parts_s040 PARTITION (p=4)", "over new\n", overwrite=True)
    site.insert("keys_s041", "1\n", "year=2024/month=05/day=1")
    site.insert("keys_s041", "2\n", "year=2025/month=05/day=1")
    add_unknown_file(site)
    uri = site.insert("plain_s043", "once\n")
    site.tell_of("plain_s043", uri)
    for table in ("plain_s047", "plain_s050", "plain_s056"):
        site.insert(table, "before\n")
    for table in ("parts_s047", "parts_s056"):
        site.insert(table, "before\n", "p=2")
    site.insert("plain_s052", "first\n")
    for _ in range(2):
        site.insert("parts_s053", "more\n", "p=1")
    other = f"{site.database}_other"
    create = [f"CREATE DATABASE {other} WITH DBPROPERTIES ('repl.source.for'='p')", f"USE {site.database}"]
    renames = [f"ALTER TABLE {table} RENAME TO {other}.{table}" for table in ("plain_s058", "parts_s059")]
    *_, one, two = site.hive.run([*create, *renames])
    site.sql(*DURING.strip().splitlines())
    site.insert("plain_s061", "again\n")
    site.insert("fresh_s074", "1\n2\n", "p=1")
    site.insert("again_s079", "last\n")
    site.insert("plain_s080", "part\n", "p=1")
    site.insert("parts_s080", "plain\n")
    view = copy_of(site.table("plain_s037"))  # as CREATE MATERIALIZED VIEW makes it, without the job for its rows
    view.tableName, view.tableType, view.sd.location = "view_s073", "MATERIALIZED_VIEW", None
    view.viewOriginalText = view.viewExpandedText = "SELECT a FROM plain_s037"
    site.connection.source.metastore.create_table(view)
    return {"plain_s058": one.error, "parts_s059": two.error}


def fill_files(site: Site) -> None:
    """A partition of two files."""
    site.sql("INSERT INTO files_s067 PARTITION (p=1) VALUES ('one')")
    storage = site.connection.source.storage
    (status,) = storage.files(f"{site.table('files_s067').sd.location}/p=1")
    storage.write(f"{status.uri}_copy_1", storage.read(status.uri))
    site.tell_of("files_s067", f"{status.uri}_copy_1", "p=1")


def add_unknown_file(site: Site) -> None:
    """A third file in the partition of two that no event names before CONCATENATE."""
    storage = site.connection.source.storage
    uri = f"{site.table('files_s067').sd.location}/p=1/000000_0"
    storage.write(f"{uri}_copy_2", storage.read(uri))


def change_after_the_dump(site: Site) -> None:
    site.sql(*AFTER.strip().splitlines())
    site.load_data("plain_s052", "second\n", overwrite=True)
    site.load_data("parts_s053 PARTITION (p=1)", "over\n", overwrite=True)


def target_events(run: Run, table: str) -> list[str]:
    return run.site.events(source=False, after=run.target_events, table=table)


def test_s037_incremental_structure(run: Run) -> None:
    """A directory for each event of the database, in it what the event needs; rows equal."""
    dump, site = run.dumps[1], run.site
    names = {status.uri.rpartition("/")[2] for status in site.connection.target.storage.ls(dump.directory) if status.is_dir}
    records = list(site.connection.store.open(dump.directory).events())
    mine = [
        e for e in site.connection.source.metastore.events(dump.header.from_evid, dump.last_evid) if e.dbName == site.database
    ]
    assert names == {str(event.eventId) for event in mine}
    assert [record.notification.type for record in records] == [event.eventType for event in mine]
    assert {record.notification.type for record in records} >= {"CREATE_TABLE", "INSERT", "ADD_PARTITION", "DROP_PARTITION"}
    assert run.first["plain_s037"] == ["1"]
    site.assert_equal(only="_s037")


def test_s038_incremental_structure_lazy(run: Run) -> None:
    """``_files`` of an INSERT: URI, checksum, cmroot; the data itself is in no dump."""
    site, dump = run.site, run.dumps[1]
    storage = site.connection.target.storage
    insert = next(
        record.notification.evid
        for record in site.connection.store.open(dump.directory).events()
        if (record.notification.table, record.notification.type) == ("plain_s037", "INSERT")
    )
    assert {s.uri.rpartition("/")[2] for s in storage.ls(f"{dump.directory}/{insert}")} == {"_metadata", "_files"}
    (line,) = storage.read(f"{dump.directory}/{insert}/_files").decode().splitlines()
    file = FileRef.decode(line)
    (status,) = site.connection.source.storage.files(str(site.table("plain_s037").sd.location))
    checksum = site.connection.source.storage.checksum(status.uri)
    assert checksum is not None
    assert (file.uri, file.checksum) == (status.uri, checksum.value)
    assert file.cm_root == site.connection.source.cm_root() != ""


def test_s040_insert_to_partition(run: Run) -> None:
    """INSERT INTO and OVERWRITE of partitions that are there and that are new."""
    assert run.first["parts_s040"] == ["into", "new", "old 1", "over", "over new"]
    run.site.assert_equal(only="_s040")


def test_s041_multi_key_partitions(run: Run) -> None:
    """Partitions of three levels, their places below the table included."""
    site, places = run.site, []
    names = ["year=2024/month=05/day=1", "year=2024/month=05/day=3", "year=2025/month=05/day=1"]
    for side, source in ((site.connection.source, True), (site.connection.target, False)):
        base = str(site.table("keys_s041", source=source).sd.location)
        places.append([str(p.sd.location).removeprefix(base) for p in side.metastore.partitions(site.database, "keys_s041")])
    assert site.partitions("keys_s041") == names
    assert sorted(places[0]) == sorted(places[1]) == [f"/{name}" for name in names]
    site.assert_equal(only="_s041")


def test_s043_duplicate_insert_event(run: Run) -> None:
    """The same INSERT under two event ids is one row."""
    assert run.first["plain_s043"] == ["once"]
    run.site.assert_equal(only="_s043")


def test_s046_drops(run: Run) -> None:
    """Drops of a table and of partitions, with text and number keys, one and by range."""
    assert "plain_s046" not in run.tables
    assert (run.first["texts_s046"], run.first["numbers_s046"]) == (["y"], ["old 1"])
    run.site.assert_equal(only="_s046")


def test_s047_drops_with_cm(run: Run) -> None:
    """What was dropped after the dump is there after its load, from cmroot, and gone after the next."""
    assert (run.first["plain_s047"], run.first["parts_s047"]) == (["before", "old"], ["before", "old 1"])
    origins = {result.task.object_name: result.origin for result in run.report.copies}
    assert origins[f"{run.site.database}.plain_s047"] == origins[f"{run.site.database}.parts_s047/p=2"] == "cmroot"
    assert "plain_s047" not in run.tables
    assert run.site.rows("parts_s047") == ["old 1"]


def test_s049_database_alters(run: Run) -> None:
    """Owner and properties of the database arrive."""
    database = run.site.target_database()
    assert database is not None
    assert (database.ownerName, database.parameters["team"], database.parameters["tier"]) == ("ann", "sales", "1")


def test_s050_insert_then_drop_unpartitioned(run: Run) -> None:
    """The window before the drop is loaded whole; the next one removes the table."""
    assert run.first["plain_s050"] == ["before"]
    assert "plain_s050" not in run.tables


def test_s052_overwrite_after_dump_unpartitioned(run: Run) -> None:
    """The older dump loads the older data from cmroot, the newer one the new data."""
    assert run.first["plain_s052"] == ["first", "old"]
    assert run.site.rows("plain_s052") == ["second"]
    run.site.assert_equal(only="_s052")


def test_s053_overwrite_after_dump_partitioned(run: Run) -> None:
    """The same for a partition with several files."""
    assert run.first["parts_s053"] == ["more", "more", "old 1", "old 2"]
    assert run.site.rows("parts_s053") == ["old 2", "over"]
    run.site.assert_equal(only="_s053")


def test_s055_partition_special_chars(run: Run) -> None:
    """Partition values with special characters are added and dropped."""
    values = [part.values[0] for part in run.site.connection.target.metastore.partitions(run.site.database, "special_s055")]
    assert sorted(values) == sorted(SPECIAL[1:])
    run.site.assert_equal(only="_s055")


def test_s056_rename_table_with_cm(run: Run) -> None:
    """Inserts before a rename that followed the dump still load; then the rename is replayed."""
    assert (run.first["plain_s056"], run.first["parts_s056"]) == (["before"], ["before", "old 1"])
    assert [name for name in run.tables if name.endswith("_s056")] == ["renamed_parts_s056", "renamed_s056"]
    run.site.assert_equal(only="_s056")


@pytest.mark.parametrize("table", ["plain_s058"])
def test_s058_rename_across_dbs_refused(run: Run, table: str) -> None:
    """Hive refuses to rename a table of a replicated database into another one; the replica is unchanged."""
    assert_not_renamed(run, table)


@pytest.mark.parametrize("table", ["parts_s059"])
def test_s059_rename_partitioned_across_dbs_refused(run: Run, table: str) -> None:
    """The same for a partitioned table."""
    assert_not_renamed(run, table)


def assert_not_renamed(run: Run, table: str) -> None:
    assert "not allowed" in run.errors[table]
    assert run.site.connection.target.metastore.database(f"{run.site.database}_other") is None
    assert run.site.rows(table) != []
    run.site.assert_equal(only=table)


def test_s061_truncate_table(run: Run) -> None:
    """A truncation, then an INSERT."""
    assert run.first["plain_s061"] == ["again"]
    run.site.assert_equal(only="_s061")


def test_s062_truncate_partitions(run: Run) -> None:
    """One partition truncated, and all of a table; the partitions stay."""
    assert (run.first["parts_s062"], run.first["every_s062"]) == (["old 2"], [])
    assert run.site.partitions("every_s062") == ["p=1", "p=2"]
    run.site.assert_equal(only="_s062")


def test_s067_concatenate_partition(run: Run) -> None:
    """CONCATENATE writes the files of a partition anew; its event names none, so that the whole directory is compared."""
    site = run.site
    (part,) = site.connection.target.metastore.partitions(site.database, "files_s067")
    assert len(site.connection.target.storage.files(str(part.sd.location))) == 3
    site.assert_equal(only="_s067")


def test_s073_materialized_views_off(run: Run) -> None:
    """A materialized view never appears on the replica, and the load says why."""
    assert "view_s073" in run.site.tables(source=True)
    assert "view_s073" not in run.tables
    assert any("view_s073" in skipped.what and "materialized" in skipped.reason for skipped in run.report.skipped)


def test_s074_move_optimisation_incremental(run: Run) -> None:
    """The data of a new partition lands where it stays: at its plain place, with the right rows."""
    site = run.site
    (part,) = site.connection.target.metastore.partitions(site.database, "fresh_s074")
    assert part.sd.location == f"{site.table('fresh_s074', source=False).sd.location}/p=1"
    assert run.first["fresh_s074"] == ["1", "2"]


def test_s076_add_partition_single_call(run: Run) -> None:
    """ADD PARTITION is replayed by one addition, not by additions and alterations."""
    assert run.site.partitions("parts_s076") == ["p=1", "p=2"]
    assert target_events(run, "parts_s076") == ["CREATE_TABLE", "ADD_PARTITION"]


def test_s077_drop_partitions_single_event(run: Run) -> None:
    """A drop of three partitions by range is one call."""
    assert run.site.partitions("parts_s077") == ["p=4", "p=5"]
    assert run.drops == [["p=1", "p=2", "p=3"]]


def test_s079_drop_create_same_name_batch(run: Run) -> None:
    """Create, drop, create in one window ends with the last table."""
    assert [column.name for column in run.site.table("again_s079", source=False).sd.cols] == ["a", "b"]
    assert run.first["again_s079"] == ["last"]
    run.site.assert_equal(only="_s079")


def test_s080_drop_create_other_partitioning(run: Run) -> None:
    """The same name, partitioned and then not, and the other way round."""
    assert (run.first["plain_s080"], run.first["parts_s080"]) == (["part"], ["plain"])
    assert run.site.partitions("plain_s080") == ["p=1"]
    run.site.assert_equal(only="_s080")


def test_s083_event_filters(run: Run) -> None:
    """Which events a dump takes: by table, by window, by number, and by all of them."""
    site, whole = run.site, run.dumps[1]
    start, end = whole.header.from_evid, whole.last_evid

    def evids(site: Site, table: str | None = None, **options: int) -> list[int]:
        dump = site.dump(start, **options) if table is None else site.dump_table(table, start)
        return [record.notification.evid for record in site.connection.store.open(dump.directory).events()]

    def mine(test: Callable[[str], bool]) -> list[int]:
        rows = [r.notification for r in site.connection.store.open(whole.directory).events()]
        return [row.evid for row in rows if not row.table or test(row.table)]

    everything = mine(lambda _: True)
    narrow = site.with_policy(tables=("*_s04*",), exclude=("keys*",))
    chosen = mine(lambda name: "_s04" in name and not name.startswith("keys"))
    assert everything
    assert evids(site, to_evid=everything[9]) == everything[:10]
    assert evids(site, batch=4, to_evid=end) == everything[:4]
    assert evids(narrow, to_evid=end) == chosen != everything
    assert evids(narrow, to_evid=everything[9], batch=2) == [evid for evid in chosen if evid <= everything[9]][:2]
    table = [evid for evid in evids(site, "parts_s040") if evid <= end]
    assert table == [evid for evid in mine(lambda name: name == "parts_s040") if evid in set(table)]


def test_s064_repeat_event_existing_object(run: Run) -> None:
    """Every dump loaded again changes nothing."""
    before, site = run.site.now(source=False), run.site
    for dump in run.dumps:
        assert dict(site.load(dump.directory).applied) == {}
    assert site.events(source=False, after=before) == []
    site.assert_equal(only="_s040")


def test_s065_repeat_event_missing_object(run: Run) -> None:
    """After the objects were dropped, the old dumps do not bring them back."""
    site = run.site
    site.sql("DROP TABLE renamed_s056", "ALTER TABLE parts_s040 DROP PARTITION (p=1)", "DROP TABLE keys_s041")
    site.step()
    for dump in run.dumps:
        assert dict(site.load(dump.directory).applied) == {}
    assert not {"renamed_s056", "plain_s056", "keys_s041"} & set(site.tables())
    assert site.partitions("parts_s040") == ["p=2", "p=3", "p=4"]
    assert site.tables() == [name for name in site.tables(source=True) if name != "view_s073"]


def test_s068_load_fail_and_retry(run: Run) -> None:
    """A missing file fails its table; once it is back, a retry succeeds, and nothing else was held up."""
    site = run.site
    start = site.applied()
    uri = site.insert("plain_s037", "s068\n")
    site.insert("plain_s043", "s068\n")
    dump, storage = site.dump(start), site.connection.source.storage
    content = storage.read(uri)
    storage.delete(uri)
    report = site.load(dump.directory)
    assert [held.tables for held in report.held] == [("plain_s037",)]
    assert (site.status("plain_s043"), site.status()) == (dump.last_evid, report.held[0].after)
    storage.write(uri, content)
    again = site.load(site.dump(report.held[0].after).directory)
    assert again.held == ()
    assert site.rows("plain_s037") == ["1", "s068"]
    site.assert_equal(only="_s037")
