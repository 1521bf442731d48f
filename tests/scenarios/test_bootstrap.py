"""Bootstrap: scenarios S001 to S035. One database with a table or more for each, dumped and loaded once."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest

from hive_replication.connect import Connection
from hive_replication.dump.bootstrap.table_reader import ObjectReader
from hive_replication.dump.command import repl_dump
from hive_replication.dump.format.record_types import DumpResult
from hive_replication.dump.listing import Lister
from hive_replication.errors import Refused
from hive_replication.load.apply.change_tables import TableChanges
from hive_replication.load.command import repl_load
from hive_replication.load.plan import bootstrap_objects as plan_objects
from hive_replication.load.plan import call_groups
from hive_replication.load.replica.state import CHECKPOINT, TARGET_FOR
from hive_replication.load.report import LoadReport
from hive_replication.metastore.types import Database, copy_of
from hive_replication.parallel import Threads
from hive_replication.statements import ReplDump, ReplLoad
from hive_replication.storage import Storage
from resources.embedded.hive import HiveDriver
from tests.scenarios.support import Site, content, new_site

pytestmark = [pytest.mark.servers, pytest.mark.hive]

TABLES = """
CREATE TABLE plain_s001 (a STRING)
CREATE TABLE parts_s001 (a STRING) PARTITIONED BY (b INT)
CREATE TABLE plain_empty_s001 (a STRING)
CREATE TABLE parts_empty_s001 (a STRING) PARTITIONED BY (b INT)
CREATE TABLE dropped_s004 (a STRING)
CREATE TABLE overwritten_s004 (a STRING)
CREATE TABLE vanishing_s007 (a STRING) PARTITIONED BY (b INT)
CREATE TABLE old_s008 (a STRING)
CREATE TABLE parts_s008 (a STRING) PARTITIONED BY (b INT)
CREATE TABLE twins_s014 (a STRING)
CREATE TABLE parts_s014 (a STRING) PARTITIONED BY (b INT)
CREATE TABLE parts_s016 (a STRING) PARTITIONED BY (b INT)
CREATE TABLE one_s019 (a STRING)
CREATE TABLE two_s019 (a STRING)
CREATE TABLE parts_s034 (a STRING) PARTITIONED BY (b INT)
CREATE VIEW seen_s001 AS SELECT a FROM plain_s001
"""


@dataclass(frozen=True)
class Bootstrap:
    """The database, its dump, the load of it, and what was seen meanwhile."""

    site: Site
    dump: DumpResult
    load: LoadReport
    moves: list[tuple[str, str]]
    together: list[str]
    before: dict[str, list[str]]
    events: int


@pytest.fixture(scope="module")
def boot(connection: Connection, hive3: HiveDriver) -> Bootstrap:
    site = new_site(connection, hive3)
    site.connection = site.with_policy(missing_directories="empty").connection  # S016
    site.sql(*TABLES.strip().splitlines())
    fill(site)
    with pytest.MonkeyPatch.context() as patch:
        change_during_the_dump(site, patch)
        dump = site.dump()
    before = {name: site.rows(name, source=True) for name in ("dropped_s004", "overwritten_s004", "twins_s014", "parts_s014")}
    change_after_the_dump(site)
    # S005: the database is there already, empty
    connection.target.metastore.create_database(Database(name=site.database, ownerName="hive", parameters={}))
    events = site.now(source=False)
    with pytest.MonkeyPatch.context() as patch:
        moves, together = watch_the_load(patch)
        patch.setattr(plan_objects, "_BATCH", 2)  # S025
        patch.setattr(call_groups, "MOST_ADDED", 2)
        load = site.load(dump.directory)
    assert load.held == ()
    return Bootstrap(site, dump, load, moves, together, before, events)


def fill(site: Site) -> None:
    for table in ("plain_s001", "dropped_s004", "overwritten_s004", "old_s008", "one_s019", "two_s019"):
        site.insert(table, f"{table}\n")
    for table, number in (("parts_s001", 2), ("vanishing_s007", 2), ("parts_s008", 1), ("parts_s016", 2), ("parts_s034", 5)):
        for part in range(number):
            site.insert(table, f"{table} {part}\n", f"b={part}")
    for name in ("first", "second"):
        site.insert("twins_s014", "twins\n", name=name)
    for part in ("b=1", "b=2"):
        site.insert("parts_s014", "same name\n", part, name="same")
    missing = f"{site.table('parts_s016').sd.location}/b=1"
    site.connection.source.storage.delete(missing, recursive=True)  # S016
    table = copy_of(site.table("plain_empty_s001"))
    table.tableName, table.sd.location = "handled_s028", None
    table.parameters = {"storage_handler": "org.apache.hadoop.hive.hbase.HBaseStorageHandler"}
    site.connection.source.metastore.create_table(table)


def change_during_the_dump(site: Site, patch: pytest.MonkeyPatch) -> None:
    read, many, metastore = ObjectReader.read, Lister.many, site.connection.source.metastore

    def reading(reader: ObjectReader, name: str) -> None:
        if name == "old_s008":
            site.sql("ALTER TABLE parts_s008 PARTITION (b=0) RENAME TO PARTITION (b=7)")
        read(reader, name)
        if name == "old_s008":
            site.sql("ALTER TABLE old_s008 RENAME TO new_s008")

    def listed(lister: Lister, locations: Iterable[str | None], **options: Any) -> Iterator[Any]:
        places = list(locations)
        if any("vanishing_s007" in str(place) for place in places):
            metastore.drop_partitions(site.database, "vanishing_s007", ["b=0", "b=1"], delete_data=True)
        return many(lister, places, **options)

    patch.setattr(ObjectReader, "read", reading)
    patch.setattr(Lister, "many", listed)


def change_after_the_dump(site: Site) -> None:
    site.sql("DROP TABLE dropped_s004", "TRUNCATE TABLE twins_s014", "TRUNCATE TABLE parts_s014")
    site.load_data("overwritten_s004", "new\n", overwrite=True)


def watch_the_load(patch: pytest.MonkeyPatch) -> tuple[list[tuple[str, str]], list[str]]:
    """Notes renames from one directory to another, and whether two tables of the load are created at the same time."""
    rename, carry_out, meeting = Storage.rename, TableChanges.carry_out, threading.Barrier(2)
    moves: list[tuple[str, str]] = []
    together: list[str] = []

    def renaming(storage: Storage, source: str, target: str) -> None:
        if source.rpartition("/")[0] != target.rpartition("/")[0]:
            moves.append((source, target))
        rename(storage, source, target)

    def carrying_out(changes: TableChanges, lane: Any, number: int) -> None:
        if lane.lane.names[0].endswith("_s019") and number == 0:
            meeting.wait(60)
            together.append(lane.lane.names[0])
        carry_out(changes, lane, number)

    patch.setattr(Storage, "rename", renaming)
    patch.setattr(TableChanges, "carry_out", carrying_out)
    return moves, together


def load_as(boot: Bootstrap, name: str, directory: str = "", **options: Any) -> LoadReport:
    """Loads the dump, or another one, under another name."""
    ends = boot.site.connection
    return repl_load(ends.target, ReplLoad(directory or boot.dump.directory, name), ends.store, ends.copier, **options)


def test_s001_basic_bootstrap(boot: Bootstrap) -> None:
    """Unpartitioned, partitioned and empty tables and a view arrive equal; the ack file exists, the checkpoint key is set."""
    site = boot.site
    site.assert_equal(only="_s001")
    assert site.rows("parts_s001") == ["parts_s001 0", "parts_s001 1"]
    assert site.connection.target.storage.exists(f"{boot.dump.directory}/_finished_dump")
    assert site.status() == site.applied() == boot.dump.last_evid
    (part,) = site.connection.target.metastore.partitions(site.database, "parts_s001", ["b=0"])
    for thing in (site.table("plain_s001", source=False), site.table("parts_s001", source=False), part):
        assert thing.parameters[CHECKPOINT] == boot.dump.directory


def test_s004_source_changes_after_dump_lazy_copy(boot: Bootstrap) -> None:
    """Tables dropped and overwritten after the dump arrive as dumped: their files come from cmroot."""
    for name in ("dropped_s004", "overwritten_s004"):
        assert boot.site.rows(name) == boot.before[name] == [name]
    origins = {result.task.object_name: result.origin for result in boot.load.copies}
    assert origins[f"{boot.site.database}.dropped_s004"] == origins[f"{boot.site.database}.overwritten_s004"] == "cmroot"


def test_s005_load_into_existing_empty_db(boot: Bootstrap) -> None:
    """The empty database was accepted; one with a table or a view of others is not touched and has no STATUS."""
    metastore, database = boot.site.connection.target.metastore, f"{boot.site.database}_s005"
    stranger = copy_of(boot.site.table("seen_s001", source=False))
    metastore.create_database(Database(name=database, ownerName="hive", parameters={}))
    stranger.dbName, stranger.parameters = database, {}
    metastore.create_table(stranger)
    with pytest.raises(Refused, match="not a replica"):
        load_as(boot, database)
    assert metastore.table_names(database) == ["seen_s001"]
    assert replace(boot.site, database=database).status() is None


def test_s007_concurrent_drop_partition(boot: Bootstrap) -> None:
    """Partitions that vanish while the dump reads them are left out; the table arrives empty."""
    assert boot.site.partitions("vanishing_s007") == []
    boot.site.assert_equal(only="_s007")


def test_s008_concurrent_rename(boot: Bootstrap) -> None:
    """Hive refuses renames while it dumps. Here they go through, and the dump stands at its end: both are renamed."""
    assert [name for name in boot.site.tables() if name.endswith("_s008")] == ["new_s008", "parts_s008"]
    assert boot.site.partitions("parts_s008") == ["b=7"]
    boot.site.assert_equal(only="_s008")


def test_s010_data_in_dump_dir(boot: Bootstrap) -> None:
    """A dump holds no data, only ``_`` files and Parquet of references; every replica file has its source file's checksum."""
    site = boot.site
    held = site.connection.target.storage.files(boot.dump.directory, hidden=True)
    names = {status.uri.rpartition("/")[2] for status in held}
    assert [name for name in names if not name.startswith("_") and not re.fullmatch(r"part-\d+\.parquet", name)] == []
    checksums = []
    for side, storage in ((True, site.connection.source.storage), (False, site.connection.target.storage)):
        (status,) = storage.files(str(site.table("plain_s001", source=side).sd.location))
        checksums.append(storage.checksum(status.uri))
    assert checksums[0] == checksums[1] is not None


def test_s014_same_content_two_files(boot: Bootstrap) -> None:
    """Files of equal content, and of equal name too, that went to cmroot are still as many as they were."""
    assert boot.site.rows("twins_s014") == boot.before["twins_s014"] == ["twins", "twins"]
    assert boot.site.rows("parts_s014") == boot.before["parts_s014"] == ["same name", "same name"]


def test_s016_partition_dir_missing(boot: Bootstrap) -> None:
    """Hive fails here. Where the policy says so, a partition whose directory is gone is empty on the target, too; see also
    tests/integration/test_missing_directories.py."""
    assert boot.site.partitions("parts_s016") == ["b=0", "b=1"]
    assert boot.site.rows("parts_s016", partition="b=1") == []
    boot.site.assert_equal(only="_s016")
    (told,) = [one.reason for one in boot.load.skipped if one.what == f"{boot.site.database}.parts_s016/b=1"]
    assert told.endswith("is missing at the source: replicated as empty")


def test_s017_load_cm_path_missing(boot: Bootstrap) -> None:
    """The table is dropped and cmroot emptied: the load names both paths; nothing is lost where the source's log says why."""
    site, storage = boot.site, boot.site.connection.source.storage
    site.sql("CREATE TABLE lost_s017 (a STRING)")
    site.insert("lost_s017", "lost\n")
    dump = site.dump_table("lost_s017")
    (file,) = next(iter(site.connection.store.open(dump.directory).tables())).files
    site.sql("DROP TABLE lost_s017")
    assert storage.exists(file.cm_uri)
    storage.delete(file.cm_uri)
    report = load_as(boot, f"{site.database}_s017", dump.directory)
    (held,) = report.held
    assert report.exit_code == 1
    assert file.uri in held.reason
    assert file.cm_uri in held.reason
    again = load_as(boot, f"{site.database}_s017", dump.directory, source=site.connection.source.metastore)
    assert again.held == ()
    assert any("superseded" in skipped.reason for skipped in again.skipped)


def test_s019_ddl_tasks_parallel(boot: Bootstrap) -> None:
    """Two tables are created at the same time: each waited for the other."""
    assert sorted(boot.together) == ["one_s019", "two_s019"]


def test_s020_move_optimisation_bootstrap(boot: Bootstrap) -> None:
    """Data lands where it stays: nothing was moved from one directory to another, nothing is staged."""
    assert boot.moves == []
    site = boot.site
    for name in ("plain_s001", "parts_s001"):
        ours, theirs = (site.table(name, source=side) for side in (True, False))
        assert str(ours.sd.location).rpartition("/")[2] == str(theirs.sd.location).rpartition("/")[2]
        assert site.rows(name) == site.rows(name, source=True)


def test_s025_load_rounds_with_partition_batches(boot: Bootstrap) -> None:
    """Two partitions a call: three calls for five partitions, all there."""
    assert len(boot.site.partitions("parts_s034")) == 5
    assert boot.site.events(source=False, after=boot.events, table="parts_s034").count("ADD_PARTITION") == 3
    boot.site.assert_equal(only="_s034")


def test_s026_parallel_bootstrap_load(boot: Bootstrap, monkeypatch: pytest.MonkeyPatch) -> None:
    """One lane at a time gives what sixteen give."""
    monkeypatch.setitem(vars(boot.site.connection.target), "threads", Threads(1, "lane"))
    name = f"{boot.site.database}_s026"
    assert load_as(boot, name).held == ()
    assert replace(boot.site, database=name).content(source=False) == boot.site.content(source=False)


def test_s028_non_native_table_no_dir(boot: Bootstrap) -> None:
    """A table of a storage handler leaves nothing in the dump but the reason."""
    names = [record.name for record in boot.site.connection.store.open(boot.dump.directory).tables()]
    assert "handled_s028" in boot.site.tables(source=True)
    assert "handled_s028" not in names
    assert "storage handler" in boot.dump.header.skipped["handled_s028"]
    assert "handled_s028" not in boot.site.tables()


def test_s031_target_flag_reset(boot: Bootstrap) -> None:
    """A cleared repl.target.for is set again by the next load."""
    site, metastore = boot.site, boot.site.connection.target.metastore
    cleared = copy_of(site.target_database())
    assert cleared is not None
    assert cleared.parameters.pop(TARGET_FOR) == "true"
    metastore.alter_database(site.database, cleared)
    site.insert("one_s019", "s031\n")
    site.step()
    found = site.target_database()
    assert found is not None
    assert found.parameters[TARGET_FOR] == "true"
    assert "s031" in site.rows("one_s019")


def test_s032_export_drops_ckpt(boot: Bootstrap, hive3_target: HiveDriver) -> None:
    """EXPORT and IMPORT of a replicated table carry no checkpoint key."""
    name = boot.site.database
    assert CHECKPOINT in boot.site.table("plain_s001", source=False).parameters
    hive3_target.execute(f"USE {name}", f"EXPORT TABLE plain_s001 TO '/tmp/{name}'", f"IMPORT TABLE imported FROM '/tmp/{name}'")
    imported = boot.site.table("imported", source=False)
    assert CHECKPOINT not in imported.parameters
    hive3_target.execute(f"DROP TABLE {name}.imported")


def test_s034_partitions_in_batches(boot: Bootstrap, monkeypatch: pytest.MonkeyPatch) -> None:
    """One partition a call: all partitions."""
    monkeypatch.setattr(plan_objects, "_BATCH", 1)
    ends, database = boot.site.connection, f"{boot.site.database}_s034"
    dump = repl_dump(ends.source, ReplDump(boot.site.database, "parts_s034"), ends.store)
    report = load_as(boot, database, dump.directory)
    assert (report.held, report.applied["AddPartitions"]) == ((), 5)
    assert len(ends.target.metastore.partition_names(database, "parts_s034")) == 5


def test_s035_export_service_parallelism(boot: Bootstrap, monkeypatch: pytest.MonkeyPatch) -> None:
    """Many tables and partitions are dumped by one thread as by many."""
    dumps: list[DumpResult] = []
    for threads in (3, 100):
        for storage in (boot.site.connection.source.storage, boot.site.connection.store.storage):
            monkeypatch.setattr(storage, "threads", Threads(threads, "storage"))
        dumps.append(boot.site.dump())
    assert dumps[0].tables == len(boot.site.tables(source=True)) - 1  # without the one of a storage handler
    assert dumps[0].partitions > 10
    assert content(boot.site, dumps[0]) == content(boot.site, dumps[1])
