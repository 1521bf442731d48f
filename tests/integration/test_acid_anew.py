"""What no transaction tells of a transactional table, done by real Hive 4.2.0 and read by it on both sides."""

from __future__ import annotations

import pytest

from hive_replication.dump.command import repl_dump
from hive_replication.load.replica.held_reasons import TAKEN_IN_REASON
from hive_replication.load.replica.policy_scope import made_with
from hive_replication.load.replica.state import replica_state
from hive_replication.repair import repair
from hive_replication.statements import ReplDump
from resources.embedded.hive import HiveDriver
from tests.integration.test_acid import FULL, rows
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive, pytest.mark.long]

PLAIN = "TBLPROPERTIES ('transactional'='false')"
NAMES = ("t", "n", "x", "y", "z")
MADE = (
    *(f"CREATE TABLE {name} (a INT, b STRING) {FULL}" for name in NAMES),
    *(f"INSERT INTO {name} VALUES ({row}, '{name}')" for name in ("t", "n", "x", "z") for row in (1, 2)),
    "INSERT INTO y VALUES (1, 'y')",
    "UPDATE n SET b = 'new' WHERE a = 2",
)
#: A table is dropped and another one renamed to its name, two are swapped, one is dropped and made again.
USED_AGAIN = (
    "DROP TABLE t",
    "ALTER TABLE n RENAME TO t",
    "DELETE FROM t WHERE a = 1",
    *(f"ALTER TABLE {old} RENAME TO {new}" for old, new in (("x", "aside"), ("y", "x"), ("aside", "y"))),
    "INSERT INTO x VALUES (3, 'x')",
    "DROP TABLE z",
    f"CREATE TABLE z (a INT, b STRING) {FULL}",
    "INSERT INTO z VALUES (9, 'again')",
)


@pytest.mark.timeout(900)
def test_conversion_truncation_and_names(acid: Warehouse, hive4_target: HiveDriver) -> None:
    """Plain tables made transactional in a window; TRUNCATE without a base; partitions and tables added, renamed, dropped.

    One is made transactional and renamed, one gets the name of another that is.
    """
    acid.sql(
        f"CREATE TABLE c (a INT, b STRING) STORED AS ORC {PLAIN}",
        f"CREATE TABLE p (a INT) PARTITIONED BY (d STRING) STORED AS ORC {PLAIN}",
        f"CREATE TABLE m (a INT) STORED AS TEXTFILE {PLAIN}",
        *(f"CREATE TABLE {name} (a INT) STORED AS ORC {PLAIN}" for name in ("gone", "w", "x")),
        # Hive 4 keeps plain tables as external ones, and makes no external table transactional.
        *(f"ALTER TABLE {name} SET TBLPROPERTIES ('EXTERNAL'='FALSE')" for name in ("c", "p", "m", "gone", "w", "x")),
        f"CREATE TABLE t (a INT, b STRING) {FULL}",
        "INSERT INTO c VALUES (1, 'x'), (2, 'y')",
        "INSERT INTO p VALUES (1, '1'), (2, '2')",
        "INSERT INTO m VALUES (5)",
        "INSERT INTO w VALUES (6)",
        "INSERT INTO x VALUES (7)",
        "INSERT INTO t VALUES (1, 'x')",
    )
    assert acid.replicate().held == ()
    acid.sql(
        "INSERT INTO c VALUES (3, 'plain')",
        "ALTER DATABASE {db} SET DBPROPERTIES ('repl.source.for'='')",  # Hive refuses it in a source of replication
        *(f"ALTER TABLE {name} SET TBLPROPERTIES ('transactional'='true')" for name in ("c", "p", "gone", "w")),
        "ALTER TABLE m SET TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')",
        "FROM c INSERT INTO t SELECT * INSERT INTO p PARTITION (d) SELECT a, '3'",
        "UPDATE c SET b = 'z' WHERE a = 2",
        "INSERT INTO gone VALUES (1)",
        "DROP TABLE gone",
        "INSERT INTO w VALUES (8)",
        "ALTER TABLE w RENAME TO v",
        "INSERT INTO v VALUES (9)",
        "ALTER TABLE x RENAME TO w",
        "INSERT INTO w VALUES (10)",
        "ALTER TABLE p PARTITION (d = '1') RENAME TO PARTITION (d = '11')",
        "ALTER TABLE p ADD PARTITION (d = '4')",
    )
    report = acid.replicate()
    assert report.held == ()
    assert report.applied["ImpressWriteIds"] == 4
    _assert_same(acid, hive4_target)

    acid.sql(
        "SET hive.acid.truncate.usebase=false",
        "TRUNCATE TABLE t",
        "TRUNCATE TABLE p PARTITION (d = '2')",
        "SET hive.acid.truncate.usebase=true",
        "INSERT INTO t VALUES (9, 'after')",
        "INSERT INTO p VALUES (9, '4')",
        "ALTER TABLE p PARTITION (d = '11') RENAME TO PARTITION (d = '12')",
        "INSERT INTO p VALUES (10, '12')",
        "ALTER TABLE p DROP PARTITION (d = '3')",
        "ALTER TABLE p RENAME TO q",
        "UPDATE q SET a = 11 WHERE a = 10",
        "CREATE TABLE n LIKE t",
        "INSERT INTO n VALUES (1, 'n')",
        "DROP TABLE c",
    )
    assert acid.replicate().held == ()
    _assert_same(acid, hive4_target)
    acid.sql("INSERT INTO t VALUES (10, 'last')", "DELETE FROM q WHERE a = 9")
    report = acid.replicate()
    assert (report.held, report.applied["CommitTransaction"]) == ((), 2)
    _assert_same(acid, hive4_target)


def test_a_conversion_whose_table_is_renamed_before_its_window_is_dumped(acid: Warehouse, hive4_target: HiveDriver) -> None:
    """It is held under its old name; when that is tried again, with the rename, it goes, and the new one comes whole."""
    acid.sql(
        f"CREATE TABLE c (a INT) STORED AS ORC {PLAIN}",
        "ALTER TABLE c SET TBLPROPERTIES ('EXTERNAL'='FALSE')",
        f"CREATE TABLE t (a INT) {FULL}",
        "INSERT INTO c VALUES (1)",
    )
    assert acid.replicate().held == ()
    start = acid.applied()
    acid.sql(
        "ALTER DATABASE {db} SET DBPROPERTIES ('repl.source.for'='')", "ALTER TABLE c SET TBLPROPERTIES ('transactional'='true')"
    )
    end = acid.connection.source.metastore.current_event_id()
    acid.sql("ALTER TABLE c RENAME TO d", "INSERT INTO d VALUES (2)", "INSERT INTO t VALUES (3)")
    assert [one.tables for one in acid.load(acid.dump(start, to_evid=end).directory).held] == [("c",)]
    assert [one.tables for one in acid.replicate().held] == [("c", "d")]
    held = acid.load(acid.dump(acid.status("c")).directory, only="c").held
    assert [(one.tables, one.reason.startswith(TAKEN_IN_REASON)) for one in held] == [(("d",), True)]
    acid.sql("INSERT INTO d VALUES (4)")
    connection, names = acid.connection, acid.connection.target.metastore.table_names
    state = replica_state(connection.target.metastore.database(acid.database))
    made = made_with(state, connection.source, acid.database, lambda: names(acid.database))
    dumped = repl_dump(connection.source, ReplDump(acid.database, None, state.applied), connection.store, made_with=made)
    assert acid.load(dumped.directory).held == ()
    _assert_same(acid, hive4_target)


@pytest.mark.timeout(900)
def test_names_used_again(acid: Warehouse, hive4_target: HiveDriver) -> None:
    """A20: tables dropped, made again, swapped and renamed over each other; a replica dropped on the target and repaired."""
    acid.sql(*MADE)
    assert acid.replicate().held == ()
    acid.sql(*USED_AGAIN)
    assert acid.replicate().held == ()
    _assert_same(acid, hive4_target)

    connection = acid.connection
    connection.target.metastore.drop_table(acid.database, "z", delete_data=False)
    acid.sql("INSERT INTO z VALUES (10, 'later')", "UPDATE z SET b = 'changed' WHERE a = 9")
    assert repair(connection, acid.database, "z").load.held == ()
    acid.sql("INSERT INTO z VALUES (11, 'last')")
    assert acid.replicate().held == ()
    _assert_same(acid, hive4_target)


def _assert_same(acid: Warehouse, target: HiveDriver) -> None:
    assert rows(target, acid.database) == rows(acid.hive, acid.database)


@pytest.mark.timeout(900)
def test_what_hive_does_with_a_write_id_and_without_rows_holds_nothing(acid: Warehouse, hive4_target: HiveDriver) -> None:
    """Commits without a note of a write are looked at in the tables' directories: only other clients leave files there."""
    insert_only = "TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"
    acid.sql(
        f"CREATE TABLE t (a INT, b STRING) {FULL}",
        f"CREATE TABLE u (a INT, b STRING) {FULL}",
        f"CREATE TABLE p (a INT, b STRING) PARTITIONED BY (d STRING) {FULL}",
        f"CREATE TABLE m (a INT, b STRING) STORED AS TEXTFILE {insert_only}",
        f"CREATE TABLE mp (a INT) PARTITIONED BY (d STRING) STORED AS TEXTFILE {insert_only}",
        "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
        "INSERT INTO u VALUES (1, 'x'), (2, 'y')",
        "INSERT INTO p VALUES (1, 'x', '1'), (2, 'y', '2')",
        "INSERT INTO m VALUES (1, 'x')",
    )
    assert acid.replicate().held == ()
    nothing = "SELECT a, b FROM u WHERE a > 100"
    acid.sql(
        f"CREATE TABLE c {FULL} AS SELECT * FROM u",
        f"CREATE TABLE cnone {FULL} AS {nothing}",
        f"CREATE TABLE cp PARTITIONED BY (b) {FULL} AS SELECT a, b FROM u",
        f"CREATE TABLE mc STORED AS TEXTFILE {insert_only} AS SELECT * FROM u",
        f"CREATE TABLE mcnone STORED AS TEXTFILE {insert_only} AS {nothing}",
        f"INSERT INTO t {nothing}",
        f"INSERT INTO m {nothing}",
        f"INSERT INTO p PARTITION (d = '1') {nothing}",
        f"INSERT INTO p PARTITION (d = '3') {nothing}",
        f"INSERT OVERWRITE TABLE p PARTITION (d = '2') {nothing}",
        "INSERT INTO p PARTITION (d) SELECT a, b, b FROM u",
        "INSERT INTO mp PARTITION (d) SELECT a, b FROM u",
        "UPDATE t SET b = 'q' WHERE a > 100",
        "DELETE FROM t WHERE a > 100",
        "FROM u INSERT INTO t SELECT a, b WHERE a > 1 INSERT INTO m SELECT a, b WHERE a > 100",
        "SET hive.merge.cardinality.check=false",  # which leaves a table that is the session's alone
        "MERGE INTO t USING (SELECT 2 AS a) s ON t.a = s.a WHEN MATCHED THEN UPDATE SET b = 'merged'",
        "MERGE INTO t USING (SELECT 200 AS a) s ON t.a = s.a WHEN MATCHED THEN DELETE",
        "ALTER TABLE t ADD COLUMNS (c INT)",
        "ALTER TABLE p ADD PARTITION (d = '9')",
        "ALTER TABLE p PARTITION (d = '9') RENAME TO PARTITION (d = '10')",
        "ANALYZE TABLE t COMPUTE STATISTICS FOR COLUMNS",
        "CREATE TABLE n LIKE t",
        "TRUNCATE TABLE u",
        "INSERT OVERWRITE TABLE t SELECT a, b, 1 FROM c",
        f"INSERT OVERWRITE TABLE m {nothing}",
    )
    assert acid.replicate().held == ()
    _assert_same(acid, hive4_target)
