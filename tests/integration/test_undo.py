"""Going back: undo of every kind of operation, with kills, of one table; loads up to an event; retention in between."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import dagster as dg
import pytest

from hive_replication.errors import BadRequest, Refused, ReplicationError
from hive_replication.load.command import repl_load
from hive_replication.load.journal.journal import Journal, finished_loads
from hive_replication.load.replica.state import LAST_ID, replica_state
from hive_replication.load.retention.sweep import sweep
from hive_replication.load.undo.undo import release, undo
from hive_replication.metastore.client import Metastore
from hive_replication.recover import UNFINISHED, Gap, dump_recovery, find_gap, recover
from hive_replication.repair import repair
from hive_replication.statements import ReplLoad
from repl_assets.definitions import build_defs
from tests.faults import Killed
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


def place(warehouse: Warehouse) -> str:
    found = warehouse.connection.target.metastore.database(warehouse.database)
    assert found is not None
    return str(found.locationUri)


def picture(warehouse: Warehouse) -> dict[str, object]:
    """What readers see of the replica, with all state ids."""
    metastore = warehouse.connection.target.metastore
    ids: dict[str, object] = {}
    for table in metastore.tables(warehouse.database, metastore.table_names(warehouse.database)):
        ids[table.tableName] = table.parameters[LAST_ID]
        if table.partitionKeys:
            ids |= {
                f"{table.tableName} {part.values}": part.parameters[LAST_ID]
                for part in metastore.partitions(warehouse.database, table.tableName)
            }
    state = replica_state(metastore.database(warehouse.database))
    return {"content": warehouse.content(source=False), "ids": ids, "state": replace(state, undone=None)}


def dying(monkeypatch: pytest.MonkeyPatch, warehouse: Warehouse, survived: int) -> None:
    """The process ends after some changes of the target's metastore and storage, before the next."""
    target, left = warehouse.connection.target, [survived]
    metastore, storage = target.metastore, target.storage
    methods = (
        "alter_table",
        "create_table",
        "drop_table",
        "add_partitions",
        "alter_partitions",
        "drop_partitions",
        "alter_database",
    )
    for owner, names in ((metastore, (*methods, "alter_database")), (storage, ("rename",))):
        for name in names:

            def counting(*args: object, do: Callable[..., object] = getattr(owner, name), **options: object) -> object:
                if left[0] == 0:
                    raise Killed
                left[0] -= 1
                return do(*args, **options)

            monkeypatch.setattr(owner, name, counting)


@pytest.fixture
def replica_with_history(warehouse: Warehouse) -> tuple[Warehouse, dict[int, dict[str, object]]]:
    """A replica with every kind of operation behind it, and what it looked like after each load."""
    warehouse.sql(
        "CREATE TABLE plain (a INT)",
        "CREATE TABLE a (x INT)",
        "CREATE TABLE b (x INT)",
        "CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)",
        "CREATE TABLE gone (a INT) PARTITIONED BY (ds STRING)",
        "CREATE TABLE other (a INT)",
    )
    for table in ("plain", "a", "b", "other"):
        warehouse.load_data(table, f"{table}\n")
    for day in "123":
        warehouse.load_data(f"parts PARTITION (ds='{day}')", f"{day}\n")
    warehouse.load_data("gone PARTITION (ds='1')", "1\n")
    pictures: dict[int, dict[str, object]] = {}

    def load() -> None:
        assert warehouse.replicate().held == ()
        pictures[warehouse.applied() or 0] = picture(warehouse)

    load()
    warehouse.load_data("plain", "2\n")
    warehouse.load_data("parts PARTITION (ds='1')", "11\n", overwrite=True)
    warehouse.load_data("parts PARTITION (ds='2')", "22\n")
    warehouse.load_data("parts PARTITION (ds='4')", "4\n")
    warehouse.sql(
        "ALTER TABLE parts DROP PARTITION (ds='3')",
        "ALTER TABLE other SET TBLPROPERTIES ('colour'='blue')",
        "ALTER DATABASE {db} SET DBPROPERTIES ('season'='winter')",
    )
    load()
    warehouse.sql(
        "ALTER TABLE a RENAME TO t",
        "ALTER TABLE b RENAME TO a",
        "ALTER TABLE t RENAME TO b",
        "DROP TABLE gone",
        "CREATE TABLE gone (b STRING)",
        "ALTER TABLE parts PARTITION (ds='1') RENAME TO PARTITION (ds='9')",
        "ALTER TABLE parts DROP PARTITION (ds='2')",
        "ALTER TABLE parts ADD PARTITION (ds='2')",
        "TRUNCATE TABLE other",
        "DROP TABLE plain",
        "CREATE TABLE late (a INT)",
    )
    warehouse.load_data("gone", "new\n")
    warehouse.load_data("late", "late\n")
    load()
    warehouse.assert_equal()
    return warehouse, pictures


def test_a_database_goes_back_over_kills_and_forward_again(
    replica_with_history: tuple[Warehouse, dict[int, dict[str, object]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    warehouse, pictures = replica_with_history
    target, name = warehouse.connection.target, warehouse.database
    evids = sorted(pictures)
    assert [one.to_evid for one in finished_loads(target.storage, place(warehouse))] == evids
    with pytest.raises(BadRequest, match=f"nearest that can be undone to: .*{evids[0]}"):
        undo(target, name, None, evids[0] + 1)
    events = warehouse.target_events()
    planned = undo(target, name, None, evids[1], dry_run=True)
    assert (planned.loads, warehouse.target_events()) == (1, events)
    assert {step.kind for step in planned.steps} >= {"RenameTable", "DropTable", "CreateTable", "RenamePartition", "ReplaceData"}

    kills = 0
    while True:
        dying(monkeypatch, warehouse, 2 * kills)
        try:
            undo(target, name, None, evids[1])
        except Killed:
            kills += 1
        else:
            break
        finally:
            monkeypatch.undo()
    assert kills >= 5
    assert picture(warehouse) == pictures[evids[1]]

    undo(target, name, None, evids[0])
    assert picture(warehouse) == pictures[evids[0]]
    with pytest.raises(Refused, match=r"was undone to event .* --release"):
        warehouse.replicate()
    assert release(target, name)
    assert not release(target, name)
    assert warehouse.replicate().held == ()
    warehouse.assert_equal()
    undo(target, name, None, evids[0])
    assert picture(warehouse)["content"] == pictures[evids[0]]["content"]
    repair(warehouse.connection, name)
    warehouse.assert_equal()


def test_a_recovery_leaves_a_table_that_was_undone_until_it_is_released(warehouse: Warehouse) -> None:
    connection, name = warehouse.connection, warehouse.database
    source, target = connection.source, connection.target
    warehouse.sql("CREATE TABLE t (a INT)", "CREATE TABLE lost (a INT)")
    for table in ("t", "lost"):
        warehouse.load_data(table, "1\n")
    warehouse.replicate()
    first, content = warehouse.applied() or 0, warehouse.content(source=False)["t"]
    warehouse.load_data("t", "2\n")
    warehouse.replicate()
    undo(target, name, "t", first)
    for table in ("t", "lost"):
        warehouse.load_data(table, "3\n")
    _, dump = dump_recovery(connection, name, Gap(UNFINISHED, warehouse.applied() or 0, "lost"))
    assert warehouse.load(dump.directory).held == ()
    warehouse.load_data("t", "4\n")
    assert [(one.tables, one.tried) for one in warehouse.replicate().held] == [(("t",), False)]
    warehouse.assert_equal(only="lost")
    assert warehouse.content(source=False)["t"] == content
    assert find_gap(source, target, name) is None
    assert release(target, name, "t")
    found = recover(connection, name)
    assert found is not None
    assert (found.gap.kind, [one.table for one in found.different]) == (UNFINISHED, ["t"])
    assert replica_state(target.metastore.database(name)).held == {}
    warehouse.assert_equal()


def test_one_table_goes_back_and_waits(replica_with_history: tuple[Warehouse, dict[int, dict[str, object]]]) -> None:
    warehouse, pictures = replica_with_history
    target, name, first = warehouse.connection.target, warehouse.database, min(pictures)
    now = picture(warehouse)
    assert undo(target, name, "parts", first).tables == ("parts",)
    found = picture(warehouse)["content"]
    assert found["parts"] == pictures[first]["content"]["parts"]  # type: ignore[index]
    assert {**found, "parts": None} == {**now["content"], "parts": None}  # type: ignore[dict-item]
    assert warehouse.status("parts") == warehouse.status() == first
    assert undo(target, name, "a", first).tables == ("a", "b", "t")
    assert picture(warehouse)["content"]["a"] == pictures[first]["content"]["a"]  # type: ignore[index]

    warehouse.load_data("late", "later\n")
    warehouse.sql("ALTER TABLE parts ADD PARTITION (ds='7')")
    report = warehouse.load(warehouse.dump(first).directory)
    assert {(held.tables, held.reason) for held in report.held} == {
        (("parts",), f"undone to {first} by request"),
        (("a", "b", "t"), f"undone to {first} by request"),
    }
    assert warehouse.status("parts") == first
    release(target, name, "parts")
    assert {held.tables for held in warehouse.load(warehouse.dump(first).directory).held} == {("a", "b", "t")}
    warehouse.assert_equal(only="parts")
    release(target, name)
    assert warehouse.load(warehouse.dump(first).directory).held == ()
    warehouse.assert_equal()

    # One that was taken back further than the next undo goes: its loads of then, or those since, lead back to there.
    second = sorted(pictures)[1]
    for released, whole in ((True, False), (False, True)):
        undo(target, name, "parts", first)
        if released:
            release(target, name)
            assert warehouse.load(warehouse.dump(first).directory).held == ()
        undo(target, name, None if whole else "parts", second)
        assert warehouse.status("parts") == first
        assert picture(warehouse)["content"]["parts"] == pictures[first]["content"]["parts"]  # type: ignore[index]
        release(target, name)
        assert warehouse.load(warehouse.dump(first).directory).held == ()
        warehouse.assert_equal()


def test_what_was_repaired_since_stays_or_comes_whole(warehouse: Warehouse) -> None:
    """Somebody emptied or dropped replicas; the undo brought that back, and the events since were applied to it."""
    connection, name = warehouse.connection, warehouse.database
    source, target = connection.source, connection.target
    tables = "quiet", "busy", "dropped"
    for table in tables:
        warehouse.sql(f"CREATE TABLE {table} (a INT)")
        warehouse.load_data(table, "1\n")
    warehouse.replicate()
    first, good = warehouse.applied() or 0, warehouse.content(source=False)
    for table in ("busy", "dropped"):
        warehouse.load_data(table, "2\n")
    warehouse.replicate()
    for table in ("quiet", "busy"):
        for file in target.storage.files(str(target.metastore.table(name, table).sd.location)):  # type: ignore[union-attr]
            target.storage.delete(file.uri)
    target.metastore.drop_table(name, "dropped", delete_data=False)
    for table in tables:
        repair(connection, name, table)
    warehouse.assert_equal()
    repaired = warehouse.content(source=False)
    warehouse.load_data("quiet", "3\n")
    warehouse.replicate()

    assert undo(target, name, "busy", first, dry_run=True).repaired == undo(target, name, "busy", first).repaired
    done = {one.table: one.stays for one in undo(target, name, None, first).repaired}
    assert done == {"quiet": True, "dropped": True}, "the other is taken back by now"
    found = warehouse.content(source=False)
    assert (found["quiet"], found["dropped"]) == (good["quiet"], repaired["dropped"])
    assert replica_state(target.metastore.database(name)).lost == ["busy"]
    assert release(target, name)
    gap = find_gap(source, target, name)
    assert gap is not None
    assert gap.kind == UNFINISHED
    assert recover(connection, name) is not None
    warehouse.load_data("busy", "4\n")
    assert warehouse.replicate().held == ()
    warehouse.assert_equal()


@pytest.mark.long
def test_an_undo_that_is_left_unfinished_and_released_loses_nothing(
    replica_with_history: tuple[Warehouse, dict[int, dict[str, object]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed anywhere, or failed at a table that a user dropped."""
    warehouse, pictures = replica_with_history
    target, name, first = warehouse.connection.target, warehouse.database, min(pictures)
    kills = 0
    for survived in (2, 9, 16, 20, 21, 22, 27, 34, 41):
        dying(monkeypatch, warehouse, survived)
        try:
            undo(target, name, None, first)
        except Killed:
            kills += 1
        finally:
            monkeypatch.undo()
        release(target, name)
        assert warehouse.replicate().held == ()
        warehouse.assert_equal()
    assert kills >= 7

    target.metastore.drop_table(name, "other", delete_data=False)
    with pytest.raises(ReplicationError, match=r"other went away without a load: repair it instead"):
        undo(target, name, None, first)
    release(target, name)
    warehouse.replicate()
    repair(warehouse.connection, name, "other")
    warehouse.assert_equal()


@pytest.fixture
def impatient(warehouse: Warehouse) -> Warehouse:
    """Old data is moved aside at once."""
    target = warehouse.connection.target
    policy = target.policy.model_copy(update={"grace_seconds": 0})
    return replace(warehouse, connection=replace(warehouse.connection, target=replace(target, policy=policy)))


def test_retention_moves_old_data_aside_and_undo_finds_it(impatient: Warehouse) -> None:
    warehouse, target, name = impatient, impatient.connection.target, impatient.database
    warehouse.sql("CREATE TABLE plain (a INT)", "CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)")
    warehouse.load_data("plain", "1\n")
    for day in "12":
        warehouse.load_data(f"parts PARTITION (ds='{day}')", f"{day}\n")
    warehouse.replicate()
    before, first = picture(warehouse), warehouse.applied() or 0
    warehouse.load_data("plain", "2\n", overwrite=True)
    warehouse.load_data("parts PARTITION (ds='1')", "11\n")
    warehouse.sql("ALTER TABLE parts DROP PARTITION (ds='2')", "ALTER TABLE parts ADD PARTITION (ds='2')")
    warehouse.replicate()
    now, base = picture(warehouse), place(warehouse)

    patient = replace(target, policy=target.policy.model_copy(update={"grace_seconds": 600}))
    assert sweep(patient, name) == []
    planned = sweep(target, name, dry_run=True)
    assert {one.path for one in planned} == {f"{base}/plain", f"{base}/parts/ds=2"}
    assert {one.size for one in planned} == {2}
    assert target.storage.exists(f"{base}/plain")
    assert sweep(target, name) == planned
    assert not target.storage.exists(f"{base}/plain")
    assert sweep(target, name) == []
    assert picture(warehouse) == now

    # The plain path is free again, and is taken: what the journal calls an old directory is in use now, and stays.
    warehouse.sql("DROP TABLE plain", "CREATE TABLE plain (a INT)")
    warehouse.load_data("plain", "3\n")
    warehouse.replicate()
    assert target.metastore.table(name, "plain").sd.location == f"{base}/plain"  # type: ignore[union-attr]
    sweep(target, name)
    warehouse.assert_equal()

    undo(target, name, None, first)
    assert picture(warehouse) == before
    assert "/.repl/retired/" in str(target.metastore.table(name, "plain").sd.location)  # type: ignore[union-attr]
    everything = replace(target, policy=target.policy.model_copy(update={"retention_seconds": 0}))
    swept = sweep(everything, name, warehouse.connection.store)
    assert {one.what for one in swept} >= {"old data", "retired", "journal"}
    assert picture(warehouse) == before, "the data that the undo points at is in use"
    release(target, name)
    assert warehouse.replicate().held == ()
    warehouse.assert_equal()
    swept = sweep(everything, name, warehouse.connection.store)
    assert {one.what for one in swept} >= {"old data", "retired", "journal", "dump"}
    warehouse.assert_equal()
    with pytest.raises(BadRequest, match=r"no load .* ended at event"):
        undo(target, name, None, first)
    assert len(finished_loads(target.storage, base)) == 1
    assert warehouse.replicate().held == ()
    storage = target.storage
    used = {str(table.sd.location) for table in target.metastore.tables(name, ["plain", "parts"])}
    used |= {str(part.sd.location) for part in target.metastore.partitions(name, "parts")}
    kept = {status.uri for status in storage.files(base, hidden=True) if "/.repl/journal/" not in status.uri}
    assert {uri for uri in kept if not any(uri.startswith(f"{one}/") for one in used)} == set()


def test_the_retention_job(impatient: Warehouse) -> None:
    """It tells what it would do, then does it, with sizes."""
    impatient.sql("CREATE TABLE plain (a INT)")
    impatient.load_data("plain", "1\n")
    impatient.replicate()
    old = str(impatient.connection.target.metastore.table(impatient.database, "plain").sd.location)  # type: ignore[union-attr]
    impatient.load_data("plain", "2\n", overwrite=True)
    impatient.replicate()
    storage, database = impatient.connection.target.storage, impatient.database
    policy = impatient.connection.target.policy.model_copy(update={"databases": {database: database, "absent": "absent"}})
    job = build_defs(policy).resolve_job_def("retention")
    for dry_run in (True, False):
        assert bool(storage.files(old))
        config = {"ops": {"retention__sweep": {"config": {"dry_run": dry_run}}}}
        with dg.DagsterInstance.ephemeral() as instance:
            result = job.execute_in_process(run_config=config, instance=instance)
        (output,) = (event for event in result.all_events if event.event_type_value == "STEP_OUTPUT")
        metadata = output.step_output_data.metadata
        assert metadata["dry run"].value is dry_run
        assert f"| {database} | old data | 2 B | {old} |" in str(metadata["old data"].value)
        assert (metadata["moved aside"].value, "absent" in str(metadata["left for later"].value)) == ("2 B", True)
    assert not storage.files(old)
    impatient.assert_equal()


def test_an_old_directory_is_not_taken_again_while_an_undo_may_need_it(warehouse: Warehouse) -> None:
    """The same external partition comes back with a file more: its old directory stays as it was."""
    target, name = warehouse.connection.target, warehouse.database
    warehouse.sql("CREATE EXTERNAL TABLE parts (a INT) PARTITIONED BY (ds STRING)")
    warehouse.load_data("parts PARTITION (ds='1')", "1\n", name="one")
    warehouse.replicate()
    before, first = picture(warehouse), warehouse.applied() or 0
    warehouse.sql("ALTER TABLE parts DROP PARTITION (ds='1')", "ALTER TABLE parts ADD PARTITION (ds='1')")
    warehouse.load_data("parts PARTITION (ds='1')", "2\n", name="two")
    warehouse.replicate()
    warehouse.assert_equal()
    undo(target, name, None, first)
    assert picture(warehouse) == before
    base = place(warehouse)
    assert (len(Journal(target.storage, base).entries()), len(finished_loads(target.storage, base))) == (2, 1)


def test_load_up_to_an_event_of_the_dump(warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also that of an interrupted load is refused below the event that it was to bring: objects may stand there."""
    warehouse.sql("CREATE TABLE plain (a INT)")
    bootstrap = warehouse.dump()
    warehouse.load(bootstrap.directory)
    warehouse.load_data("plain", "1\n")
    middle = warehouse.connection.source.metastore.current_event_id()
    expected = warehouse.content(source=True)
    warehouse.load_data("plain", "2\n")
    warehouse.sql("CREATE TABLE late (a INT)")
    dump = warehouse.dump(bootstrap.last_evid)

    def load(directory: str, evid: int | None) -> None:
        connection = warehouse.connection
        repl_load(connection.target, ReplLoad(directory, to_evid=evid), connection.store, connection.copier)

    for wrong in (bootstrap.last_evid - 1, dump.last_evid + 1):
        with pytest.raises(BadRequest, match="outside the dump's window"):
            load(dump.directory, wrong)
    with pytest.raises(BadRequest, match="dump of objects"):
        load(bootstrap.directory, bootstrap.last_evid)
    load(dump.directory, middle)
    assert (warehouse.applied(), warehouse.content(source=False)) == (middle, expected)
    state = replica_state(warehouse.connection.target.metastore.database(warehouse.database))
    assert (state.applied_time, state.applied_hash) == warehouse.connection.source.reach(middle)
    load(dump.directory, None)
    assert warehouse.applied() == dump.last_evid
    warehouse.assert_equal()

    warehouse.load_data("plain", "3\n")
    middle = warehouse.connection.source.metastore.current_event_id()
    warehouse.load_data("plain", "4\n")
    warehouse.load_data("late", "5\n")
    later = warehouse.dump(dump.last_evid)
    alter: Callable[..., None] = Metastore.alter_table

    def dying(*args: object) -> None:
        alter(*args)
        raise Killed

    monkeypatch.setattr(Metastore, "alter_table", dying)
    with pytest.raises(Killed):
        load(later.directory, None)
    monkeypatch.undo()
    with pytest.raises(Refused, match=f"a load up to event {later.last_evid} was interrupted"):
        load(later.directory, middle)
    load(later.directory, None)
    warehouse.assert_equal()
