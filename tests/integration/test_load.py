"""Loads under everything that is not the plain case: changes meanwhile, crashes, foreign objects, held lanes, names, repairs."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import hdfs_native
import pytest

from hive_replication.api import verify
from hive_replication.copy.thread_copier import ThreadCopier
from hive_replication.dump.bootstrap.table_reader import ObjectReader
from hive_replication.dump.command import repl_dump
from hive_replication.errors import BadRequest, Refused, Unreachable
from hive_replication.load.command import plan_load, repl_load
from hive_replication.load.layout.directories import Layout
from hive_replication.load.replica.state import replica_state
from hive_replication.load.retention.sweep import sweep
from hive_replication.metastore.types import Function, copy_of
from hive_replication.policy import Root
from hive_replication.repair import repair
from hive_replication.statements import ReplDump, ReplLoad
from hive_replication.storage import Storage
from tests.faults import DyingCopier, Killed, dying_at
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@pytest.fixture
def filled(warehouse: Warehouse) -> Warehouse:
    warehouse.sql("CREATE TABLE plain (a INT, b STRING)", "CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)")
    warehouse.load_data("plain", "1\n")
    for day in "123":
        warehouse.load_data(f"parts PARTITION (ds='{day}')", f"{day}\n")
    return warehouse


@pytest.fixture
def replicated(filled: Warehouse) -> Warehouse:
    filled.replicate()
    return filled


def test_bootstrap_is_consolidated_at_the_source(filled: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the reading of two tables a second client changes everything, the seed's table T1 with Pa, Pb, Px, Py included."""
    filled.sql(
        "CREATE TABLE t (a INT)",
        "CREATE TABLE t_new (a INT)",
        "CREATE TABLE gone (a INT)",
        "CREATE TABLE zz (a INT) PARTITIONED BY (p STRING)",
    )
    filled.load_data("t", "old\n")
    filled.load_data("t_new", "new\n")
    filled.load_data("zz PARTITION (p='x')", "x\n")
    filled.load_data("zz PARTITION (p='y')", "y\n")
    read = ObjectReader.read
    metastore = filled.connection.source.metastore

    def reading(reader: ObjectReader, name: str) -> None:
        if name == "t":
            filled.load_data("plain", "2\n", overwrite=True)
            filled.load_data("parts PARTITION (ds='1')", "11\n")
            metastore.drop_partitions(filled.database, "parts", ["ds=2"], delete_data=True)
            metastore.drop_partitions(filled.database, "zz", ["p=x"], delete_data=True)
            filled.load_data("parts PARTITION (ds='4')", "4\n")
            filled.sql("ALTER TABLE parts ADD COLUMNS (b STRING) CASCADE")
            filled.sql("ALTER TABLE t RENAME TO t_old", "ALTER TABLE t_new RENAME TO t")
            filled.sql("DROP TABLE gone", "CREATE TABLE gone (b STRING)", "CREATE TABLE late (a INT)", "TRUNCATE TABLE t_old")
            filled.load_data("late", "5\n")
        if name == "zz":
            filled.load_data("zz PARTITION (p='z')", "z\n")
        read(reader, name)
        if name == "zz":
            metastore.drop_partitions(filled.database, "zz", ["p=y"], delete_data=True)

    monkeypatch.setattr(ObjectReader, "read", reading)
    dump = filled.dump()
    monkeypatch.undo()
    assert dump.header.from_evid < dump.header.to_evid
    report = filled.load(dump.directory)
    assert report.held == ()
    assert filled.applied() == dump.header.to_evid
    filled.assert_equal()
    filled.load_data("t", "more\n")
    filled.replicate()
    filled.assert_equal()


def test_killed_bootstrap_goes_on_with_what_is_missing(filled: Warehouse) -> None:
    dump = filled.dump()
    filled.copier = DyingCopier(filled.connection.copier, 2)
    with pytest.raises(Killed):
        filled.load(dump.directory)
    assert filled.status() is None
    with pytest.raises(BadRequest, match="not finished"):
        filled.load(filled.dump(dump.last_evid).directory)
    filled.copier = None
    report = filled.load(dump.directory)
    assert report.files_by_origin == {"present": 2, "source": 2}
    filled.assert_equal()


def test_a_newer_bootstrap_replaces_a_half_made_one(filled: Warehouse) -> None:
    """Of a database in which a managed table has taken the name of an external one meanwhile (S193)."""
    outside = f"{filled.connection.source.policy.source.roots[0].uri}elsewhere/{filled.database}"
    filled.sql(f"CREATE EXTERNAL TABLE another (a INT) LOCATION '{outside}'")
    filled.load_data("another", "1\n")
    filled.copier = DyingCopier(filled.connection.copier, 3)
    with pytest.raises(Killed):
        filled.load(filled.dump().directory)
    filled.copier = None
    filled.sql("DROP TABLE another", "CREATE TABLE another (b STRING)")
    filled.load_data("another", "two\n")
    filled.load_data("plain", "2\n")
    assert filled.load(filled.dump().directory).held == ()
    filled.assert_equal()
    filled.load_data("another", "three\n")
    assert filled.replicate().held == ()
    filled.assert_equal()


@pytest.mark.parametrize("files", range(4))
def test_killed_window_is_applied_once(replicated: Warehouse, files: int) -> None:
    before = replicated.applied()
    replicated.load_data("plain", "2\n")
    replicated.load_data("parts PARTITION (ds='1')", "10\n", overwrite=True)
    replicated.load_data("parts PARTITION (ds='9')", "9\n")
    replicated.sql("ALTER TABLE plain RENAME TO renamed")
    replicated.load_data("renamed", "3\n")
    dump = replicated.dump(before)
    replicated.copier = DyingCopier(replicated.connection.copier, files)
    with pytest.raises(Killed):
        replicated.load(dump.directory)
    assert replicated.applied() == before
    replicated.copier = None
    report = replicated.load(dump.directory)
    # A lane may have been carried out before the end came: what was copied for it is not looked at any more.
    assert (report.held, len(report.copies) - report.files_by_origin.get("present", 0)) == ((), 4 - files)
    replicated.assert_equal()


def test_file_gone_from_source_and_cmroot_holds_its_lane_only(replicated: Warehouse) -> None:
    replicated.load_data("plain", "2\n")
    replicated.load_data("parts PARTITION (ds='1')", "10\n")
    dump = replicated.dump(replicated.applied())
    storage = replicated.connection.source.storage
    lost = next(group.files[0] for event in replicated.connection.store.open(dump.directory).events() for group in event.groups)
    content = storage.read(lost.uri)
    storage.delete(lost.uri)
    report = replicated.load(dump.directory)
    (held,) = report.held
    assert held.tables == ("plain",)
    assert lost.uri in held.reason
    assert lost.cm_uri in held.reason
    assert str(held.evid) in held.reason
    assert replicated.status("parts") == dump.last_evid
    assert replicated.status("plain") == replicated.status() == held.after < held.evid
    replicated.load_data("plain", "3\n")
    later = replicated.load(replicated.dump(replicated.applied()).directory)
    assert [held.tables for held in later.held] == [("plain",)]
    storage.write(lost.uri, content)
    caught_up = replicated.load(replicated.dump(held.after).directory)
    assert caught_up.held == ()
    assert replicated.status() == replicated.status("plain") == replicated.applied()
    assert replica_state(replicated.connection.target.metastore.database(replicated.database)).at == {}
    replicated.assert_equal()


def test_dropping_a_held_table_ends_the_hold(replicated: Warehouse) -> None:
    replicated.load_data("plain", "2\n")
    dump = replicated.dump(replicated.applied())
    file = next(group.files[0] for event in replicated.connection.store.open(dump.directory).events() for group in event.groups)
    replicated.connection.source.storage.delete(file.uri)
    held = replicated.load(dump.directory).held[0]
    repaired = repair(replicated.connection, replicated.database, "plain")
    assert repaired.load.held == ()
    assert held.tables == ("plain",)
    replicated.assert_equal()
    assert replicated.replicate().held == ()
    assert replica_state(replicated.connection.target.metastore.database(replicated.database)).held == {}


def test_a_foreign_table_is_never_overwritten(replicated: Warehouse) -> None:
    metastore = replicated.connection.target.metastore
    foreign = copy_of(metastore.table(replicated.database, "plain"))
    assert foreign is not None
    foreign.tableName, foreign.parameters = "mine", {}
    foreign.sd.location = None
    metastore.create_table(foreign)
    replicated.sql("CREATE TABLE mine (a INT)")
    replicated.load_data("plain", "2\n")
    report = replicated.replicate()
    (held,) = report.held
    assert (held.tables, held.refused, report.exit_code) == (("mine",), True, 3)
    assert "not a replica" in held.reason
    kept = metastore.table(replicated.database, "mine")
    assert kept is not None
    assert "hive_replication.source" not in kept.parameters


def test_bootstrap_over_a_foreign_table_is_refused_whole(filled: Warehouse) -> None:
    metastore, database = filled.connection.target.metastore, filled.connection.source.metastore.database(filled.database)
    foreign = copy_of(database)
    assert foreign is not None
    foreign.parameters, foreign.locationUri = {}, None
    metastore.create_database(foreign)
    table = copy_of(filled.connection.source.metastore.table(filled.database, "plain"))
    assert table is not None
    table.sd.location = None
    metastore.create_table(table)
    dump, events = filled.dump(), filled.target_events()
    with pytest.raises(Refused, match="not a replica"):
        filled.load(dump.directory)
    assert filled.target_events() == events
    metastore.drop_table(filled.database, "plain")
    assert filled.load(dump.directory).held == ()
    filled.assert_equal()


def test_a_dump_of_another_source_is_refused(replicated: Warehouse, warehouse: Warehouse) -> None:
    other = replicated.database + "x"
    replicated.hive.execute(f"CREATE DATABASE {other}")
    dump = repl_dump(replicated.connection.source, ReplDump(other), replicated.connection.store)
    events = replicated.target_events()
    with pytest.raises(Refused, match="is a replica of"):
        repl_load(
            replicated.connection.target,
            ReplLoad(dump.directory, replicated.database),
            replicated.connection.store,
            replicated.connection.copier,
        )
    assert replicated.target_events() == events


def test_missing_events_between_are_refused(replicated: Warehouse) -> None:
    replicated.load_data("plain", "2\n")
    after = replicated.connection.source.metastore.current_event_id()
    replicated.load_data("plain", "3\n")
    with pytest.raises(Refused, match="missing"):
        replicated.load(replicated.dump(after).directory)


def test_load_under_another_name(filled: Warehouse) -> None:
    target, store, copier = filled.connection.target, filled.connection.store, filled.connection.copier
    name = filled.database + "_copy"
    dump = filled.dump()
    repl_load(target, ReplLoad(dump.directory, name), store, copier)
    filled.load_data("parts PARTITION (ds='4')", "4\n")
    window = filled.dump(dump.last_evid)
    repl_load(target, ReplLoad(window.directory, name), store, copier)
    assert target.metastore.partition_names(name, "parts") == ["ds=1", "ds=2", "ds=3", "ds=4"]
    assert target.metastore.database(filled.database) is None


def test_a_table_alone_under_another_name(filled: Warehouse) -> None:
    connection, name = filled.connection, filled.database + "_one"
    dump = repl_dump(connection.source, ReplDump(filled.database, "parts"), connection.store)
    load = repl_load(connection.target, ReplLoad(dump.directory, name, "days"), connection.store, connection.copier)
    assert load.held == ()
    filled.load_data("parts PARTITION (ds='4')", "4\n")
    filled.load_data("plain", "4\n")
    window = repl_dump(connection.source, ReplDump(filled.database, "parts", dump.last_evid), connection.store)
    assert window.events < window.last_evid - dump.last_evid
    repl_load(connection.target, ReplLoad(window.directory, name, "days"), connection.store, connection.copier)
    metastore = connection.target.metastore
    assert metastore.table_names(name) == ["days"]
    assert metastore.partition_names(name, "days") == ["ds=1", "ds=2", "ds=3", "ds=4"]
    assert replica_state(metastore.database(name)).applied is None
    events = metastore.current_event_id()
    repl_load(connection.target, ReplLoad(window.directory, name, "days"), connection.store, connection.copier)
    assert metastore.current_event_id() == events


def test_batch_counts_events_of_the_policy_only(replicated: Warehouse) -> None:
    other = replicated.database + "o"
    start = replicated.applied()
    replicated.load_data("plain", "2\n")
    replicated.hive.execute(f"CREATE DATABASE {other}", f"CREATE TABLE {other}.x (a INT)")
    replicated.load_data("plain", "3\n")
    replicated.load_data("plain", "4\n")
    dump = replicated.dump(start, batch=2)
    assert dump.events == 2
    replicated.load(dump.directory)
    assert replicated.applied() == dump.last_evid
    replicated.replicate()
    replicated.assert_equal()


def test_repair_of_one_partition(replicated: Warehouse) -> None:
    connection = replicated.connection
    part = next(iter(connection.target.metastore.partitions(replicated.database, "parts", ["ds=2"])))
    for status in connection.target.storage.files(part.sd.location or ""):
        connection.target.storage.write(status.uri, b"broken\n")
    replicated.load_data("parts PARTITION (ds='3')", "33\n")
    done = repair(connection, replicated.database, "parts", ("ds=2",))
    assert done.load.held == ()
    replicated.assert_equal()
    events = replicated.target_events()
    assert replicated.replicate().held == ()
    replicated.assert_equal()
    assert replicated.target_events() > events  # the database's applied id
    with pytest.raises(BadRequest, match="no partition"):
        repair(connection, replicated.database, "parts", ("ds=nowhere",))


def test_plan_tells_what_the_load_does_and_changes_nothing(replicated: Warehouse) -> None:
    replicated.load_data("plain", "2\n")
    replicated.sql("ALTER TABLE parts RENAME TO days", "CREATE TABLE brief (a INT)", "DROP TABLE brief")
    dump, events = replicated.dump(replicated.applied()), replicated.target_events()
    plan = plan_load(replicated.connection.target, ReplLoad(dump.directory), replicated.connection.store)
    planned = Counter(operation.kind for lane in plan.lanes for operation in lane.operations)
    assert planned.keys() == {"AppendData", "RenameTable"}  # the table's statistics come along with its files
    assert {skipped.what for skipped in plan.skipped} >= {"CREATE_TABLE brief", "DROP_TABLE brief"}
    assert replicated.target_events() == events
    report = replicated.load(dump.directory)
    assert report.applied == planned


def test_columns_that_cascade_to_partitions(replicated: Warehouse) -> None:
    """Hive's metastore changes the partitions without an event of theirs; without CASCADE they stay as they are."""
    replicated.sql("ALTER TABLE parts ADD COLUMNS (b STRING) CASCADE")
    replicated.load_data("parts PARTITION (ds='4')", "4\n")
    replicated.sql("ALTER TABLE parts ADD COLUMNS (c INT)", "ALTER TABLE parts RENAME TO moved")
    replicated.load_data("moved PARTITION (ds='5')", "5\n")
    assert replicated.replicate().held == ()
    partitions = replicated.connection.target.metastore.partitions(replicated.database, "moved")
    columns = {part.values[0]: [column.name for column in part.sd.cols] for part in partitions}
    assert columns == {"1": ["a", "b"], "2": ["a", "b"], "3": ["a", "b"], "4": ["a", "b"], "5": ["a", "b", "c"]}
    replicated.assert_equal()


def test_comments_that_cascade_to_partitions(replicated: Warehouse) -> None:
    """Comparisons named each of the partitions different, until a repair."""

    def comments() -> set[tuple[str, ...]]:
        found = replicated.connection.target.metastore.partitions(replicated.database, "parts")
        return {tuple(column.comment or "" for column in part.sd.cols) for part in found}

    replicated.sql("ALTER TABLE parts CHANGE COLUMN a a INT COMMENT 'of all' CASCADE")
    assert replicated.replicate().held == ()
    assert comments() == {("of all",)}
    replicated.sql("ALTER TABLE parts CHANGE COLUMN a a INT COMMENT 'of later ones'")
    assert replicated.replicate().held == ()
    assert comments() == {("of all",)}
    side = replicated.with_policy().connection
    assert [one.differences for one in verify(side, replicated.database)] == [(), ()]


def test_a_file_that_is_still_written_is_copied_as_it_can_be_read(filled: Warehouse) -> None:
    """HDFS has no checksum of it; the copy is proven by what was read."""
    source = filled.connection.source
    location = source.metastore.table(filled.database, "plain").sd.location  # type: ignore[union-attr]
    root = source.policy.source.roots[0].uri.rstrip("/")
    writer = hdfs_native.Client(root).create(f"{location.removeprefix(root)}/open", hdfs_native.WriteOptions(overwrite=True))
    writer.write(b"9\n")
    try:
        dump = filled.dump()
        (record,) = (one for one in filled.connection.store.open(dump.directory).tables() if one.name == "plain")
        assert {file.relative: bool(file.checksum) for file in record.files}.items() >= {("open", False)}
    finally:
        writer.close()
    report = filled.load(dump.directory)
    assert report.held == ()
    assert [copy.proof.algorithm for copy in report.copies if copy.task.file.relative == "open"] == ["CRC32C"]
    filled.assert_equal()


def test_append_all_at_once(replicated: Warehouse) -> None:
    connection = replicated.connection
    policy = connection.target.policy.model_copy(update={"append": "atomic"})
    replicated.connection = replace(connection, target=replace(connection.target, policy=policy))
    before = next(iter(connection.target.metastore.partitions(replicated.database, "parts", ["ds=1"]))).sd.location
    replicated.load_data("parts PARTITION (ds='1')", "10\n")
    replicated.load_data("parts PARTITION (ds='9')", "9\n")
    replicated.load_data("parts PARTITION (ds='9')", "90\n")
    assert replicated.replicate().held == ()
    after = next(iter(connection.target.metastore.partitions(replicated.database, "parts", ["ds=1"]))).sd.location
    assert after != before
    assert len(connection.target.storage.files(str(before))) == 1, "readers on their way still find the old directory"
    replicated.assert_equal()


def test_exchanged_partition_supersedes_the_insert_before(replicated: Warehouse) -> None:
    """EXCHANGE PARTITION moves files without keeping them in cmroot: the INSERT before it can never be applied, nor need it."""
    replicated.sql("CREATE TABLE archive (a INT) PARTITIONED BY (ds STRING)")
    replicated.replicate()
    start, source = replicated.applied(), replicated.connection.source.metastore
    replicated.load_data("parts PARTITION (ds='1')", "exchanged\n")
    first = replicated.dump(start)
    replicated.sql("ALTER TABLE archive EXCHANGE PARTITION (ds='1') WITH TABLE parts")
    report = replicated.load(first.directory, source=source)
    assert report.held == ()
    assert [skipped.reason.startswith("superseded") for skipped in report.skipped] == [True]
    assert replicated.load(replicated.dump(first.last_evid).directory, source=source).held == ()
    replicated.assert_equal()


def test_a_file_of_several_blocks_is_found_after_the_rename_of_its_table(replicated: Warehouse) -> None:
    """Hive copies it to cmroot first, with the default size of blocks: that copy has another checksum."""
    source = replicated.connection.source
    replicated.sql("CREATE TABLE tmp (a STRING)")
    replicated.replicate()
    start = replicated.applied()
    database = source.metastore.database(replicated.database)
    assert database is not None
    beside = f"{str(database.locationUri).rstrip('/')}.beside/rows"
    source.storage.create(beside, iter([b"row\n" * (3 << 18)]), block_size=1 << 20)
    replicated.sql(f"LOAD DATA INPATH '{beside}' INTO TABLE tmp")
    dump = replicated.dump(start)
    replicated.sql("ALTER TABLE tmp RENAME TO renamed")
    report = replicated.load(dump.directory, source=source.metastore)
    assert report.held == ()
    assert [(one.origin, one.proof.recorded) for one in report.copies] == [("source", True)]
    assert replicated.load(replicated.dump(dump.last_evid).directory, source=source.metastore).held == ()
    replicated.assert_equal()


def _drop_source_database(warehouse: Warehouse) -> None:
    """Hive drops no database that is a source of replication: the mark goes first."""
    metastore = warehouse.connection.source.metastore
    database = copy_of(metastore.database(warehouse.database))
    assert database is not None
    database.parameters = {}
    metastore.alter_database(warehouse.database, database)
    warehouse.hive.execute(f"DROP DATABASE {warehouse.database} CASCADE")


def test_database_dropped_and_created_again(replicated: Warehouse) -> None:
    target = replicated.connection.target
    replicated.load_data("plain", "2\n")
    start = replicated.applied()
    _drop_source_database(replicated)
    replicated.hive.execute(f"CREATE DATABASE {replicated.database} COMMENT 'the second'")
    replicated.sql("CREATE TABLE plain (other STRING)")
    replicated.load_data("plain", "again\n")
    dump = replicated.dump(start)
    report = replicated.load(dump.directory)
    assert report.held == ()
    database = target.metastore.database(replicated.database)
    assert database is not None
    assert database.description == "the second"
    replicated.assert_equal()
    events = replicated.target_events()
    assert replicated.load(dump.directory).applied == {}
    assert replicated.target_events() == events


def test_database_dropped(replicated: Warehouse) -> None:
    metastore, start = replicated.connection.target.metastore, replicated.applied()
    foreign = copy_of(metastore.table(replicated.database, "plain"))
    assert foreign is not None
    foreign.tableName, foreign.parameters, foreign.sd.location = "mine", {}, None
    metastore.create_table(foreign)
    _drop_source_database(replicated)
    dump = replicated.dump(start)
    with pytest.raises(Refused, match="not our replica"):
        replicated.load(dump.directory)
    assert set(metastore.table_names(replicated.database)) >= {"mine"}
    metastore.drop_table(replicated.database, "mine")
    theirs = Function("theirs", replicated.database, "C", "hive", 1, 0, 1, [])
    metastore.create_function(theirs)
    with pytest.raises(Refused, match="'theirs', a function, stored procedure or package, is not our replica"):
        replicated.load(dump.directory)
    assert metastore.function(replicated.database, "theirs") is not None
    metastore.drop_function(replicated.database, "theirs")
    assert replicated.load(dump.directory).held == ()
    assert metastore.database(replicated.database) is None
    assert replicated.status() is None
    assert replicated.load(dump.directory).applied == {}


def test_data_of_external_tables_outlives_their_database(replicated: Warehouse) -> None:
    """Whatever the source deletes with it (S202): of a replica's directories nothing goes before retention ends."""
    source, target = replicated.connection.source, replicated.connection.target
    outside = f"{source.policy.source.roots[0].uri}elsewhere/{replicated.database}"
    replicated.sql(f"CREATE EXTERNAL TABLE away (a INT) LOCATION '{outside}'")
    replicated.load_data("away", "1\n")
    start = replicated.replicate().to_evid
    replica = target.metastore.table(replicated.database, "away")
    assert replica is not None
    location = str(replica.sd.location)
    _drop_source_database(replicated)
    source.storage.delete(outside, recursive=True)
    assert replicated.load(replicated.dump(start).directory).held == ()
    assert target.metastore.database(replicated.database) is None
    assert [target.storage.read(one.uri) for one in target.storage.files(location)] == [b"1\n"]


def test_a_database_that_is_marked_as_incompatible_is_left_alone(replicated: Warehouse) -> None:
    """As Hive's REPL LOAD does (S223)."""
    metastore, before = replicated.connection.target.metastore, replicated.applied()
    replicated.load_data("plain", "2\n")
    _set_parameter(replicated, "repl.incompatible", "true")
    events = replicated.target_events()
    with pytest.raises(Refused, match=r"repl\.incompatible=true"):
        replicated.replicate()
    assert (replicated.applied(), replicated.target_events()) == (before, events)
    assert metastore.database(replicated.database).parameters["repl.incompatible"] == "true"  # type: ignore[union-attr]
    _set_parameter(replicated, "repl.incompatible", "false")
    assert replicated.replicate().held == ()
    replicated.assert_equal()


def _set_parameter(warehouse: Warehouse, name: str, value: str) -> None:
    """Of the target database."""
    metastore = warehouse.connection.target.metastore
    database = copy_of(metastore.database(warehouse.database))
    assert database is not None
    database.parameters = {**(database.parameters or {}), name: value}
    metastore.alter_database(warehouse.database, database)


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_process_that_ends_while_it_drops_the_database(replicated: Warehouse, after: bool) -> None:
    """Its directory is not left behind: it is kept beside, and the next load ends the drop."""
    target, start = replicated.connection.target, replicated.applied()
    database = target.metastore.database(replicated.database)
    assert database is not None
    layout = Layout(str(database.locationUri))
    _drop_source_database(replicated)
    dump = replicated.dump(start)
    with dying_at("drop_database", 1, after=after):
        replicated.load(dump.directory)
    if not after:
        assert replicated.load(dump.directory).held == ()
    assert target.metastore.database(replicated.database) is None
    assert not target.storage.exists(layout.location)
    kept = [one.uri for one in target.storage.ls(layout.dropped_databases) if layout.dropped(one.uri)]
    assert [status.uri for one in kept for status in target.storage.files(f"{one}/plain")] != []
    own = {"retention_seconds": 0, "databases": {replicated.database: replicated.database}}
    everything = replace(target, policy=target.policy.model_copy(update=own))
    assert {one.path for one in sweep(everything, replicated.database)} == set(kept)
    assert not any(map(target.storage.exists, kept))


def test_external_tables_and_paths_in_parameters(replicated: Warehouse) -> None:
    root = replicated.connection.source.policy.source.roots[0].uri
    outside = f"{root}elsewhere/{replicated.database}/data"
    replicated.connection.source.storage.write(f"{outside}/p=1/x", b"1\n")
    replicated.sql(
        f"CREATE EXTERNAL TABLE outside (a INT) PARTITIONED BY (p INT) LOCATION '{outside}'"
        f" TBLPROPERTIES ('kept.at'='{outside}/x')",
        "ALTER TABLE outside ADD PARTITION (p=1)",
        f"CREATE EXTERNAL TABLE flat (a INT) LOCATION '{outside}/p=1'",
    )
    assert replicated.replicate().held == ()
    replicated.assert_equal_but_paths("kept.at")
    replicated.connection.source.storage.write(f"{root}elsewhere/{replicated.database}/moved/y", b"2\n")
    replicated.sql(f"ALTER TABLE flat SET LOCATION '{root}elsewhere/{replicated.database}/moved'")
    assert replicated.replicate().held == ()
    replicated.assert_equal_but_paths("kept.at")


def test_a_failed_window_is_not_lost(replicated: Warehouse) -> None:
    """A target that does not answer fails the window as a whole; nothing is held, and the next attempt does it all."""
    replicated.load_data("plain", "2\n" * 200_000)  # more than is read back instead
    dump = replicated.dump(replicated.applied())
    connection = replicated.connection
    roots = connection.target.policy.target.roots
    deaf = Storage((Root(uri=roots[0].uri, webhdfs="http://127.0.0.1:9"),))
    away = replace(connection.target, storage=deaf)
    copier = ThreadCopier(connection.source.storage, deaf)
    with pytest.raises(Unreachable, match="cannot be reached"):
        repl_load(away, ReplLoad(dump.directory), connection.store, copier)
    assert replica_state(connection.target.metastore.database(replicated.database)).held == {}
    assert replicated.load(dump.directory).held == ()
    replicated.assert_equal()
