"""Policies that change, and tables renamed into what a policy takes and out of it: the replica is the source's, or it is told."""

from __future__ import annotations

from contextlib import suppress

import dagster as dg
import pytest

import hive_replication
from hive_replication.errors import BadRequest
from hive_replication.lag import lag
from hive_replication.load.journal.journal import Journal
from hive_replication.load.replica.fingerprint import FINGERPRINT
from hive_replication.load.replica.policy_scope import changed
from hive_replication.load.replica.state import LEFT_MARK, ReplicaState, replica_state
from hive_replication.load.report import LoadReport
from hive_replication.metastore.types import copy_of
from hive_replication.policy.acid import Acid
from repl_assets.checks.up_to_date import is_up_to_date
from resources.embedded.hive import HiveDriver
from sensors.notification_log.decision import RETRY_DELAY
from tests.faults import dying_at
from tests.integration.test_acid import FULL
from tests.policy_sensor import Sensor
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]

_PART = "ALTER TABLE {t} ADD PARTITION (p='{p}')"


def state(warehouse: Warehouse) -> ReplicaState:
    return replica_state(warehouse.connection.target.metastore.database(warehouse.database))


def step(warehouse: Warehouse, *, behind: bool = False) -> LoadReport:
    """A dump and a load of events, as the command line and Dagster do; ``behind``: from where the lowest name stands."""
    start = warehouse.status() if behind else warehouse.applied()
    dump = hive_replication.dump(warehouse.connection, warehouse.database, from_evid=start)
    return hive_replication.load(warehouse.connection, dump.directory)


def make(warehouse: Warehouse, *tables: str) -> None:
    """Tables with a partition and a row each."""
    for table in tables:
        warehouse.sql(f"CREATE TABLE {table} (a STRING) PARTITIONED BY (p STRING)", _PART.format(t=table, p=1))
        warehouse.load_data(f"{table} PARTITION (p='1')", f"{table}\n")


def test_a_table_renamed_into_the_policy_comes_whole(warehouse: Warehouse) -> None:
    """A1: with what it held before, whatever is done to it in the same window."""
    make(warehouse, "stranger", "orders")
    inside = warehouse.with_policy(exclude=("stranger*",))
    inside.replicate()
    warehouse.sql("ALTER TABLE stranger RENAME TO guest", _PART.format(t="guest", p=2), "ALTER TABLE guest RENAME TO friend")
    warehouse.load_data("friend PARTITION (p='2')", "later\n")
    report = step(inside)
    assert report.held == ()
    inside.assert_equal_in_policy()
    assert (state(inside).held, state(inside).at.keys()) == ({}, state(inside).at.keys() & {"friend"})
    warehouse.load_data("friend PARTITION (p='1')", "more\n")
    assert step(inside).held == ()
    inside.assert_equal_in_policy()


def test_a_table_renamed_in_is_not_forgotten_where_its_load_is_killed(warehouse: Warehouse) -> None:
    """After the window's state is written, and before the table is there."""
    make(warehouse, "stranger", "orders")
    inside = warehouse.with_policy(exclude=("stranger*",))
    inside.replicate()
    warehouse.sql("ALTER TABLE stranger RENAME TO guest")
    dump = hive_replication.dump(inside.connection, inside.database, from_evid=inside.applied())
    with dying_at("create_table", 1, after=False):
        hive_replication.load(inside.connection, dump.directory)
    assert state(inside).coming == {"guest"}
    warehouse.load_data("orders PARTITION (p='1')", "other\n")
    window = inside.dump(inside.applied())  # whoever makes it knows nothing of the replica
    assert inside.load(window.directory).held == ()  # it does what was killed first
    assert state(inside).held == {}
    inside.assert_equal_in_policy()


def test_tables_that_a_policy_takes_in_leaves_and_takes_in_again(warehouse: Warehouse) -> None:
    """A3: without any event of them, and with some."""
    make(warehouse, "orders", "facts", "stray")
    first = warehouse.with_policy(tables=("orders",))
    first.replicate()
    both = warehouse.with_policy(tables=("ORDERS", "F*"))
    assert changed(state(both), both.connection.source, both.database)
    assert step(both).held == ()  # no event at all
    both.assert_equal_in_policy()
    assert not changed(state(both), both.connection.source, both.database)
    assert step(first).held == ()  # facts leaves
    first.assert_equal_in_policy(kept=("facts",))
    left = first.connection.target.metastore.table(first.database, "facts")
    assert left is not None
    assert (list(state(first).left), left.parameters[LEFT_MARK]) == (["facts"], str(state(first).left["facts"]))
    assert left.parameters[FINGERPRINT].startswith("location:")  # the mark takes nothing away
    warehouse.sql("ALTER TABLE facts DROP PARTITION (p='1')", _PART.format(t="facts", p=7))
    warehouse.load_data("orders PARTITION (p='1')", "other\n")
    assert step(first).held == ()
    warehouse.load_data("facts PARTITION (p='7')", "seven\n")
    assert step(both).held == ()  # facts comes again
    both.assert_equal_in_policy()
    again = both.connection.target.metastore.table(both.database, "facts")
    database = both.connection.target.metastore.database(both.database)
    assert database is not None
    journal = Journal(both.connection.target.storage, str(database.locationUri))
    assert all(lane.record.steps for _, lanes in journal.lanes_of(journal.entries()) for lane in lanes)  # all can be read
    assert (state(both).left, again is not None and LEFT_MARK in again.parameters) == ({}, False)
    assert again is not None
    assert again.parameters[FINGERPRINT].startswith("location:")
    warehouse.sql("CREATE TABLE passing (a INT)")
    assert step(warehouse.with_policy()).held == ()
    assert step(both).held == ()
    warehouse.sql("DROP TABLE passing")
    assert step(warehouse.with_policy()).held == ()  # taken in again, and dropped at the source meanwhile
    warehouse.with_policy().assert_equal_in_policy()
    assert step(both).held == ()
    dropping = warehouse.with_policy(tables=("orders",), excluded="drop")
    assert step(dropping).applied["DropTable"] == 2
    dropping.assert_equal_in_policy()
    assert state(dropping).left == {}


def test_a_replica_of_an_earlier_version(warehouse: Warehouse) -> None:
    """It does not say what it was made with: what it lacks comes whole all the same."""
    make(warehouse, "orders", "facts")
    first, every = warehouse.with_policy(tables=("orders",)), warehouse.with_policy()
    first.replicate()
    metastore = first.connection.target.metastore
    database = copy_of(metastore.database(first.database))
    assert database is not None
    database.parameters = {key: value for key, value in database.parameters.items() if ".scope." not in key}
    metastore.alter_database(first.database, database)
    warehouse.load_data("facts PARTITION (p='1')", "more\n")
    warehouse.sql("CREATE TABLE made (a INT)")
    report = step(every)
    source = every.connection.source
    assert (report.held, state(every).scope) == ((), source.policy.scope(every.database, acid=source.acid).text)
    every.assert_equal_in_policy()


def test_a_name_that_left_is_taken_by_another_table(warehouse: Warehouse) -> None:
    """The stale replica under it, or under the name that another comes from, never counts for what the source has."""
    make(warehouse, "a", "b", "c")
    every = warehouse.with_policy()
    every.replicate()
    some = warehouse.with_policy(exclude=("b",))
    assert step(some).held == ()
    warehouse.load_data("b PARTITION (p='1')", "unseen\n")
    warehouse.sql("DROP TABLE c", "ALTER TABLE b RENAME TO c")  # from under the excluded name into the policy
    assert step(some).held == ()
    some.assert_equal_in_policy(kept=("b",))
    warehouse.sql("ALTER TABLE a RENAME TO b")  # out of it: the replica of a goes
    assert step(some).held == ()
    some.assert_equal_in_policy(kept=("b",))
    warehouse.sql("ALTER TABLE c RENAME TO d")
    assert step(every).held == ()
    every.assert_equal_in_policy()


def test_a_load_of_a_changed_policy_is_killed_anywhere(warehouse: Warehouse) -> None:
    make(warehouse, "a", "b", "c", "d")
    first = warehouse.with_policy(tables=("a", "b"))
    first.replicate()
    other = warehouse.with_policy(tables=("b", "c", "d"))
    warehouse.sql("ALTER TABLE b RENAME TO x", "ALTER TABLE a RENAME TO b", _PART.format(t="c", p=3))
    dump = hive_replication.dump(other.connection, other.database, from_evid=other.applied())
    for call in ("create_table", "alter_database", "alter_table", "add_partitions", "drop_table"):
        with suppress(pytest.fail.Exception), dying_at(call, 1, after=call != "alter_database"):  # or it has nothing left to do
            hive_replication.load(other.connection, dump.directory)
    for _ in range(2):
        report = step(other, behind=True)
    assert (report.held, state(other).held) == ((), {})
    other.assert_equal_in_policy(kept=("a",))  # the policy left it under that name


def test_the_sensor_and_the_lag_notice_a_policy_that_changes(sensor: Sensor) -> None:
    """No event comes: the change alone is work, tried again with a delay where its run failed; then there is none."""
    warehouse = sensor.warehouse
    make(warehouse, "other")
    sensor.set_policy(exclude=("other",))
    sensor.replicate()
    sensor.set_policy(exclude=("PLAIN",))
    found = lag(sensor.connection.source, sensor.connection.target, warehouse.database)
    assert (bool(found.changed), is_up_to_date(found, 900.0)) == (True, False)
    failed = sensor.request()
    sensor.record(failed, dg.DagsterRunStatus.FAILURE)
    assert "attempt 2" in sensor.reason()
    request = sensor.request(later=RETRY_DELAY[0] + 1)
    assert (request.partition_key, request.tags["hive_replication/attempt"]) == (failed.partition_key, "2")
    assert sensor.run(request).success
    assert isinstance(sensor.tick(later=RETRY_DELAY[0] + 2), dg.SkipReason)
    warehouse.with_policy(exclude=("plain",)).assert_equal_in_policy(kept=("plain",))
    found = lag(sensor.connection.source, sensor.connection.target, warehouse.database)
    assert (found.changed, found.left, found.held, is_up_to_date(found, 900.0)) == ("", ("plain",), (), True)


def test_regular_expressions_in_statements(warehouse: Warehouse) -> None:
    """In any case, what is excluded wins; what a later statement takes in comes whole, what it leaves out is dropped."""
    make(warehouse, "t1", "t2", "t30", "other")
    owner = warehouse.connection.source.metastore.table(warehouse.database, "t1").owner  # type: ignore[union-attr]
    some = warehouse.with_policy(excluded="drop", owners={"hive": "ops", owner: "loader"})
    connection, metastore = some.connection, some.connection.target.metastore
    first = hive_replication.dump(connection, f"{some.database}.'T[0-9]+'.'t3.*'")
    assert hive_replication.load(connection, first.directory).held == ()
    assert set(metastore.table_names(some.database)) == {"t1", "t2"}
    assert (metastore.database(some.database).ownerName, metastore.table(some.database, "t1").owner) == ("ops", "loader")  # type: ignore[union-attr]
    make(warehouse, "t31", "t4")
    warehouse.load_data("t1 PARTITION (p='1')", "more\n")
    evid, wanted = first.last_evid, f"{some.database}.'t[13].*|other'"
    with pytest.raises(BadRequest, match=r"was made with tables \['/T\[0-9\]\+/'\]"):
        hive_replication.dump(connection, wanted, from_evid=evid, replaces=some.database)
    second = hive_replication.dump(connection, wanted, from_evid=evid, replaces=f"{some.database}.'T[0-9]+'.'t3.*'")
    assert hive_replication.load(connection, second.directory).held == ()
    assert set(metastore.table_names(some.database)) == {"t1", "t30", "t31", "other"}
    assert step(some).held == ()
    assert state(some).held == {}
    some.assert_equal_in_policy()


def test_views_that_name_a_database_of_another_name(warehouse: Warehouse, hive3_target: HiveDriver) -> None:
    """A12: a view that reads a database which is another one there, or none, is told, or held, or rewritten."""
    make(warehouse, "orders")
    warehouse.sql("CREATE VIEW seen AS SELECT a FROM orders")
    other = f"{warehouse.database}_copy"
    renamed = warehouse.with_policy(databases={warehouse.database: other}, renamed_views="warn")
    dump = hive_replication.dump(renamed.connection, warehouse.database)
    report = hive_replication.load(renamed.connection, dump.directory, other)
    assert (report.held, report.broken_views) == ((), ("seen",))
    found = {one.table: one for one in hive_replication.verify(renamed.connection, warehouse.database)}
    assert found["orders"].differences == ()
    assert (found["seen"].differences, found["seen"].keeps_text) == ((), True)
    holding = warehouse.with_policy(databases={warehouse.database: other}, renamed_views="hold")
    warehouse.sql("CREATE VIEW later AS SELECT a FROM orders")
    evid = replica_state(renamed.connection.target.metastore.database(other)).applied
    dump = hive_replication.dump(holding.connection, warehouse.database, from_evid=evid)
    (held,) = hive_replication.load(holding.connection, dump.directory, other).held
    assert (held.tables, held.refused, f"reads {warehouse.database}.orders" in held.reason) == (("later",), True, True)
    rewriting = warehouse.with_policy(databases={warehouse.database: other}).connection
    warehouse.sql(
        "ALTER VIEW seen AS SELECT orders.a, '{db}.orders' AS db FROM {db}.orders /* of {db}.orders */ WHERE p = '1'",
        "CREATE VIEW `{db}` AS SELECT * FROM {db}.seen `{db}`",
    )
    dump = hive_replication.dump(rewriting, warehouse.database, from_evid=evid)
    report = hive_replication.load(rewriting, dump.directory, other)
    assert (report.held, report.broken_views) == ((), ())
    assert {one.table: one.differences for one in hive_replication.verify(rewriting, warehouse.database)} == dict.fromkeys(
        ("orders", "seen", "later", warehouse.database), ()
    )
    written = rewriting.target.metastore.table(other, "seen")
    assert written is not None
    text = "SELECT orders.a, '{db}.orders' AS db FROM `{other}`.orders /* of {db}.orders */ WHERE p = '1'"
    assert written.viewOriginalText == text.format(db=warehouse.database, other=other)
    *_, rows = hive3_target.execute(f"USE {other}", f"SELECT * FROM {warehouse.database}")
    assert rows.rows == (f"orders\t{warehouse.database}.orders",)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_transactional_tables_that_come_into_the_policy(acid: Warehouse) -> None:
    """By a rename, by a pattern, by ``acid.replicate``, and again: with their write ids, and what is written afterwards."""
    acid.sql(
        f"CREATE TABLE stranger (a INT, b STRING) {FULL}",
        f"CREATE TABLE t (a INT, b STRING) {FULL}",
        "INSERT INTO stranger VALUES (1, 'x')",
        "INSERT INTO t VALUES (1, 'x')",
    )
    some, every = acid.with_policy(exclude=("stranger",)), acid.with_policy()
    some.replicate()
    acid.sql("UPDATE stranger SET b = 'y' WHERE a = 1", "ALTER TABLE stranger RENAME TO s")
    acid.sql("FROM t INSERT INTO s SELECT a, b INSERT INTO t SELECT 2, b")
    steps = [some]
    for change, wanted in (
        ("INSERT INTO s VALUES (3, 'later')", some),
        ("DELETE FROM t WHERE a = 1", acid.with_policy(exclude=("t",))),
        ("INSERT INTO t VALUES (4, 'unseen')", every),
        ("INSERT INTO t VALUES (5, 'no acid')", acid.with_policy(acid=Acid(replicate=False))),
        ("INSERT INTO s VALUES (6, 'unseen')", every),
    ):
        report = step(steps[-1])
        assert report.held == ()
        acid.sql(change)
        steps.append(wanted)
    assert step(every).held == ()
    acid.sql("INSERT INTO s VALUES (7, 'last')", "INSERT INTO t VALUES (7, 'last')")
    assert step(every).held == ()
    found = {one.table: one.differences for one in hive_replication.verify(every.connection, acid.database)}
    assert found == {"s": (), "t": ()}
