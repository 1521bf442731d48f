"""What stands on the target where a replica belongs: refused, adopted, replaced or kept aside; loops and second writers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from hive_replication.copy.thread_copier import ThreadCopier
from hive_replication.dump.command import repl_dump
from hive_replication.errors import Refused
from hive_replication.load.command import plan_load, repl_load
from hive_replication.load.replica.state import replica_state, with_state
from hive_replication.load.replica.target import Target
from hive_replication.load.report import LoadReport
from hive_replication.metastore.types import copy_of
from hive_replication.plans import plan_report
from hive_replication.repair import repair
from hive_replication.statements import ReplDump, ReplLoad
from tests.faults import dying_at
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]


@pytest.fixture
def filled(warehouse: Warehouse) -> Warehouse:
    """A source with a table and a partitioned one."""
    warehouse.sql("CREATE TABLE plain (a INT, b STRING)", "CREATE TABLE parts (a INT) PARTITIONED BY (ds STRING)")
    warehouse.load_data("plain", "1\n", name="one")
    for day in "12":
        warehouse.load_data(f"parts PARTITION (ds='{day}')", f"{day}\n", name="one")
    return warehouse


def with_policy(warehouse: Warehouse, **settings: object) -> Warehouse:
    connection = warehouse.connection
    policy = connection.target.policy.model_copy(update=settings)
    return replace(warehouse, connection=replace(connection, target=replace(connection.target, policy=policy)))


def foreign_table(warehouse: Warehouse, name: str, like: str, partitions: Sequence[str] = (), database: str = "") -> str:
    """A table on the target that nobody replicated, like one of the source, with a file of its own; answers where it is."""
    target, owner = warehouse.connection.target, database or warehouse.database
    table = copy_of(warehouse.connection.source.metastore.table(warehouse.database, like))
    assert table is not None
    table.tableName, table.dbName, table.parameters, table.sd.location = name, owner, {}, None
    target.metastore.create_table(table)
    made = target.metastore.table(owner, name)
    assert made is not None
    location = str(made.sd.location)
    for day in partitions:
        partition(warehouse, name, day, owner)
    if not partitions:
        target.storage.write(f"{location}/theirs", b"theirs\n")
    return location


def partition(warehouse: Warehouse, table: str, day: str, database: str = "") -> None:
    """A partition on the target that nobody replicated: with a file of the source's name and content, and one of its own."""
    target, owner = warehouse.connection.target, database or warehouse.database
    found = target.metastore.table(owner, table)
    assert found is not None
    part = copy_of(next(iter(warehouse.connection.source.metastore.partitions(warehouse.database, "parts"))))
    part.dbName, part.tableName, part.values, part.parameters, part.sd = owner, table, [day], {}, copy_of(found.sd)
    part.sd.location = f"{found.sd.location}/ds={day}"
    target.storage.write(f"{part.sd.location}/one", f"{day}\n".encode())
    target.storage.write(f"{part.sd.location}/theirs", b"theirs\n")
    target.metastore.add_partitions(owner, table, [part])


def foreign_database(warehouse: Warehouse) -> None:
    """The database exists on the target, with tables of the same names, and one that the source does not have."""
    found = copy_of(warehouse.connection.source.metastore.database(warehouse.database))
    assert found is not None
    found.parameters, found.locationUri = {}, None
    warehouse.connection.target.metastore.create_database(found)
    location = foreign_table(warehouse, "plain", "plain")
    warehouse.connection.target.storage.write(f"{location}/one", b"1\n")
    warehouse.connection.target.storage.delete(f"{foreign_table(warehouse, 'parts', 'parts', ['1', '9'])}/ds=1/theirs")
    foreign_table(warehouse, "mine", "plain")


def files(warehouse: Warehouse, table: str) -> list[str]:
    """Names of the files of a target's table and of its partitions."""
    metastore, storage = warehouse.connection.target.metastore, warehouse.connection.target.storage
    found = metastore.table(warehouse.database, table)
    assert found is not None
    things = list(metastore.partitions(warehouse.database, table)) if found.partitionKeys else [found]
    return sorted(status.uri.rsplit("/", 1)[1] for thing in things for status in storage.files(str(thing.sd.location)))


def assert_replicated(warehouse: Warehouse) -> None:
    """Every table of the source is as there; the target may have more."""
    source, target = warehouse.content(source=True), warehouse.content(source=False)
    assert source == {name: target.get(name) for name in source}


def outcomes(report: LoadReport, database: str) -> dict[str, str]:
    return {one.object.removeprefix(f"{database}."): one.outcome for one in report.unexpected}


@pytest.mark.parametrize("setting", ["adopt", "replace", "keep-aside"])
def test_database_and_its_tables(filled: Warehouse, setting: str) -> None:
    foreign_database(filled)
    database, metastore = filled.database, filled.connection.target.metastore
    dump = filled.dump()
    with pytest.raises(Refused, match="not a replica"):
        filled.load(dump.directory)
    assert filled.status() is None
    assert files(filled, "plain") == ["one", "theirs"]
    warehouse = with_policy(filled, conflicts=setting)
    planned = plan_load(warehouse.connection.target, ReplLoad(dump.directory), warehouse.connection.store)
    rows = plan_report(warehouse.connection.target, planned).rows
    report = warehouse.load(dump.directory)
    assert report.held == ()
    assert_replicated(warehouse)
    evid, found = dump.last_evid, outcomes(report, database)
    kinds = {row.object.removeprefix(f"{database}."): row.operation for row in rows if row.operation in _KINDS}
    if setting == "adopt":
        assert found == {"plain": "adopted", "parts": "adopted"}
        assert kinds == {"plain": "Adopt", "parts": "Adopt"}
        assert report.files_by_origin == {"present": 1, "source": 2}  # plain has a file too many: its content is replaced
        assert files(warehouse, "mine") == ["theirs"]
    elif setting == "replace":
        assert found.keys() == kinds.keys() == {"plain", "parts", "mine"}
        assert "mine" not in metastore.table_names(database)
    else:
        assert found == {name: f"kept aside as {name}_kept_{evid}" for name in ("plain", "parts", "mine")}
        assert kinds.keys() == {f"{name} -> {database}.{name}_kept_{evid}" for name in ("plain", "parts", "mine")}
        assert files(warehouse, f"plain_kept_{evid}") == ["one", "theirs"]
        assert files(warehouse, f"parts_kept_{evid}") == ["one", "one", "theirs"]
        assert files(warehouse, f"mine_kept_{evid}") == ["theirs"]
    assert warehouse.load(dump.directory).applied == {}
    filled.load_data("parts PARTITION (ds='1')", "more\n")
    assert warehouse.replicate().held == ()
    assert_replicated(warehouse)


_KINDS = ("Adopt", "DropStranger", "KeepAside", "KeepPartitionsAside")


def test_tables_and_partitions_of_a_replica(filled: Warehouse) -> None:
    """What somebody made in a replica meets new tables, partitions and renames of the source, under each setting in turn."""
    filled.replicate()
    database, metastore = filled.database, filled.connection.target.metastore
    for number, setting in enumerate(("adopt", "replace", "keep-aside")):
        fresh, days, moved = (f"{name}{number}" for name in ("fresh", "days", "moved"))
        filled.sql(f"CREATE TABLE {fresh} (a INT, b STRING)", f"CREATE TABLE {days} (a INT) PARTITIONED BY (ds STRING)")
        filled.load_data(fresh, "1\n", name="one")
        filled.load_data(f"{days} PARTITION (ds='1')", "1\n", name="one")
        filled.load_data(f"parts PARTITION (ds='7{number}')", f"7{number}\n", name="one")
        foreign_table(filled, fresh, "plain")
        foreign_table(filled, days, "parts", ["1", "9"])
        partition(filled, "parts", f"7{number}")
        refused = filled.replicate()
        assert [(held.tables, held.refused) for held in sorted(refused.held, key=lambda held: held.tables)] == [
            ((days,), True),
            ((fresh,), True),
            (("parts",), True),
        ]
        warehouse = with_policy(filled, conflicts=setting)
        report = warehouse.load(warehouse.dump(min(held.after for held in refused.held)).directory)
        assert report.held == ()
        assert_replicated(warehouse)
        shown = "|".join(f"{name} {outcome}" for name, outcome in sorted(outcomes(report, database).items()))
        if setting == "adopt":
            assert shown == f"{days} adopted|{fresh} adopted"
        elif setting == "keep-aside":
            (aside,) = metastore.table_names(database, "parts_kept_*")
            assert files(warehouse, aside) == ["one", "theirs"]
            (aside,) = metastore.table_names(database, f"{days}_kept_*")
            assert files(warehouse, aside) == ["one", "one", "theirs", "theirs"]
        filled.sql(f"ALTER TABLE {fresh} RENAME TO {moved}")
        foreign_table(filled, moved, "plain")
        renamed = warehouse.replicate()
        if setting == "adopt":
            assert [held.refused for held in renamed.held] == [True]
            metastore.drop_table(database, moved)
            renamed = warehouse.load(warehouse.dump(renamed.held[0].after).directory)
        assert renamed.held == ()
        assert_replicated(warehouse)


@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("setting", ["refuse", "adopt"])
def test_a_partition_that_was_added_to_a_replica_stays(filled: Warehouse, setting: str, *, whole: bool) -> None:
    """A repair of its table was blocked by it, or dropped it."""
    filled.replicate()
    database, connection = filled.database, with_policy(filled, conflicts=setting).connection
    partition(filled, "parts", "9")
    before, added = filled.content(source=False)["parts"], connection.target.metastore.partitions(database, "parts", ["ds=9"])
    (mine,) = added
    (one,) = connection.target.metastore.partitions(database, "parts", ["ds=1"])
    connection.target.storage.write(f"{one.sd.location}/one", b"broken\n")
    report = repair(connection, database, None if whole else "parts").load
    assert report.held == ()
    told = [skipped.reason for skipped in report.skipped if skipped.what == f"{database}.parts"]
    assert told == ["partitions of the target's own, which the source does not have, stay: ds=9"]
    assert filled.content(source=False)["parts"] == before
    assert list(connection.target.metastore.partitions(database, "parts", ["ds=9"])) == [mine]


def test_another_schema_is_not_adopted(filled: Warehouse) -> None:
    filled.replicate()
    filled.sql("CREATE TABLE fresh (a INT)")
    foreign_table(filled, "fresh", "plain")
    (held,) = with_policy(filled, conflicts="adopt").replicate().held
    assert held.refused
    assert "its columns are a int, b string, the source's a int" in held.reason


def test_a_killed_adoption_goes_on(filled: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    filled.replicate()
    warehouse = with_policy(filled, conflicts="adopt")
    filled.sql("CREATE TABLE days (a INT) PARTITIONED BY (ds STRING)")
    filled.load_data("days PARTITION (ds='1')", "1\n", name="one")
    foreign_table(filled, "days", "parts", ["1", "9"])
    dump = filled.dump(filled.applied())

    def killed(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(type(filled.connection.target.metastore), "drop_partitions", killed)
    with pytest.raises(KeyboardInterrupt):
        warehouse.load(dump.directory)
    monkeypatch.undo()
    table = filled.connection.target.metastore.table(filled.database, "days")
    assert table is not None
    assert table.parameters["repl.last.id"] == "0"
    assert warehouse.load(dump.directory).held == ()
    assert_replicated(warehouse)


@pytest.mark.parametrize(
    ("setting", "what", "call", "after"),
    [
        ("replace", "fresh", "create_table", False),
        ("keep-aside", "fresh", "create_table", False),
        ("replace", "days", "create_table", False),
        ("keep-aside", "days", "create_table", False),
        ("keep-aside", "parts", "drop_partitions", True),
    ],
)
@pytest.mark.parametrize("bootstrap", [False, pytest.param(True, marks=pytest.mark.long)])
def test_a_killed_load_goes_on_with_what_it_copied(
    filled: Warehouse, setting: str, what: str, call: str, *, after: bool, bootstrap: bool
) -> None:
    """Its files were staged, since something was in the way; that is gone when the next load looks at the plain path."""
    filled.replicate()
    if bootstrap:  # one that is not finished
        database = copy_of(filled.connection.target.metastore.database(filled.database))
        assert database is not None
        database.parameters = with_state(database.parameters, replace(replica_state(database), applied=None))
        filled.connection.target.metastore.alter_database(filled.database, database)
    if what == "parts":
        filled.load_data("parts PARTITION (ds='7')", "7\n", name="one")
        partition(filled, "parts", "7")
    elif what == "days":
        filled.sql("CREATE TABLE days (a INT) PARTITIONED BY (ds STRING)")
        filled.load_data("days PARTITION (ds='7')", "7\n", name="one")
        foreign_table(filled, "days", "parts", ["7", "9"])
    else:
        filled.sql("CREATE TABLE fresh (a INT, b STRING)")
        filled.load_data("fresh", "7\n", name="one")
        foreign_table(filled, "fresh", "plain")
    warehouse = with_policy(filled, conflicts=setting)
    dump = warehouse.dump(filled.applied())
    with dying_at(call, 1, after=after):
        warehouse.load(dump.directory)
    report = warehouse.load(dump.directory)
    assert (report.held, set(report.files_by_origin)) == ((), {"present"})
    assert_replicated(warehouse)


def test_what_others_replicate_is_never_touched(filled: Warehouse) -> None:
    """Neither another source's replica nor one of Hive's own, a second policy's, nor the source of the source."""
    filled.replicate()
    warehouse, database = with_policy(filled, conflicts="replace"), filled.database
    connection, metastore = warehouse.connection, warehouse.connection.target.metastore
    other = with_policy(filled, conflicts="replace", name="second")
    with pytest.raises(Refused, match="written by the policy 'default'"):
        other.load(filled.dump(filled.applied()).directory)
    # The target's database is the source of another one, and that one's load back into the first source is a loop.
    back = replace(connection.source, metastore=metastore, storage=connection.target.storage)
    dump = repl_dump(back, ReplDump(database), connection.store)
    policy = connection.target.policy
    home = Target(
        connection.source.metastore,
        connection.source.storage,
        policy.model_copy(update={"source": policy.target, "target": policy.source}),
        connection.target.storage,
    )
    copier = ThreadCopier(connection.target.storage, connection.source.storage)
    with pytest.raises(Refused, match="a loop"):
        repl_load(home, ReplLoad(dump.directory), connection.store, copier)
    copy = f"{database}_copy"
    repl_load(home, ReplLoad(dump.directory, copy), connection.store, copier)
    chain = repl_dump(connection.source, ReplDump(copy), connection.store)
    with pytest.raises(Refused, match="a loop"):
        repl_load(connection.target, ReplLoad(chain.directory, database), connection.store, connection.copier)
    assert filled.replicate().held == ()
    mark = metastore.database(database)
    assert mark is not None
    assert mark.parameters["repl.source.for"] == "default"
    filled.sql("CREATE TABLE fresh (a INT, b STRING)")
    foreign_table(filled, "fresh", "plain")
    theirs = copy_of(metastore.table(database, "fresh"))
    assert theirs is not None
    theirs.parameters = {"repl.last.id": "7"}
    metastore.alter_table(database, "fresh", theirs)
    (held,) = warehouse.replicate().held
    assert held.refused
    assert "a replica of Hive's own replication" in held.reason


def test_changes_on_the_target_are_noticed_at_the_next_touch(filled: Warehouse) -> None:
    """An altered table, a moved partition, files added and removed by hand; statistics that an engine writes are none."""
    filled.sql("CREATE TABLE counted (a INT)", "CREATE TABLE dropped (a INT)")
    filled.replicate()
    filled.load_data("parts PARTITION (ds='1')", "more\n", name="two")
    assert filled.replicate().changed_on_target == ()
    database, connection = filled.database, filled.connection
    metastore, storage = connection.target.metastore, connection.target.storage
    for name, properties in (("plain", {"colour": "blue"}), ("counted", {"numRows": "7", "spark.sql.statistics.numRows": "7"})):
        table = metastore.table(database, name)
        assert table is not None
        table.parameters |= properties
        metastore.alter_table(database, name, table)
    one, two = sorted(metastore.partitions(database, "parts"), key=lambda part: part.values)
    storage.delete(f"{one.sd.location}/two")
    moved = f"{two.sd.location}-moved"
    storage.rename(str(two.sd.location), moved)
    two.sd.location = moved
    metastore.alter_partitions(database, "parts", [two])
    metastore.drop_table(database, "dropped")
    filled.load_data("plain", "2\n")
    filled.load_data("counted", "2\n")
    filled.load_data("dropped", "2\n")
    filled.load_data("parts PARTITION (ds='1')", "3\n", overwrite=True)
    filled.load_data("parts PARTITION (ds='2')", "3\n", overwrite=True)
    report = filled.replicate()
    assert {(one.object.removeprefix(f"{database}."), one.outcome) for one in report.changed_on_target} == {
        ("plain", "properties altered"),
        ("parts/ds=1", "files added or removed"),
        ("parts/ds=2", "location altered"),
    }
    (held,) = report.held
    assert (held.tables, "the target lacks" in held.reason) == (("dropped",), True)
    filled.load_data("plain", "3\n", overwrite=True)
    assert filled.replicate().changed_on_target == ()
