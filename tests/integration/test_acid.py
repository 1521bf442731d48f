"""Transactional tables from a metastore 4.2.0 to another, written and read by real Hive 4.2.0 on both sides."""

from __future__ import annotations

import pytest

from hive_replication.load.report import LoadReport
from repl_assets.checks.row_diff import diff_rows
from repl_assets.checks.spark_rows import count_rows
from resources.embedded.hive import HiveDriver
from resources.spark_copier import SparkCopier
from tests.warehouse import Warehouse

pytestmark = [pytest.mark.servers, pytest.mark.hive]

FULL = "STORED AS ORC TBLPROPERTIES ('transactional'='true')"
INSERT_ONLY = "STORED AS TEXTFILE TBLPROPERTIES ('transactional'='true', 'transactional_properties'='insert_only')"
#: Fails while it runs, so that its transaction is aborted.
FAILS = "INSERT INTO {db}.t SELECT a, CAST(ASSERT_TRUE(a > 100) AS STRING) FROM {db}.t"


def rows(hive: HiveDriver, database: str) -> dict[str, object]:
    """All rows of all tables, with their row ids where the table has them."""
    (shown,) = hive.execute(f"SHOW TABLES IN {database}")
    found: dict[str, object] = {}
    for name in shown.rows:
        row_id = "" if name.startswith("m") else "ROW__ID, "
        (read,) = hive.execute(f"SELECT {row_id}* FROM {database}.{name}")
        found[name] = sorted(read.rows)
    return found


def replicated(acid: Warehouse, target: HiveDriver) -> LoadReport:
    """One step of replication, after which both sides answer the same to the same queries."""
    report = acid.replicate()
    assert report.held == ()
    expected = rows(acid.hive, acid.database)
    assert rows(target, acid.database) == expected
    return report


@pytest.mark.long
def test_bootstrap_and_windows(acid: Warehouse, hive4_target: HiveDriver) -> None:
    """S149, S158, S160: full ACID and insert-only tables, partitioned or not; commits, aborts, several tables in one."""
    acid.sql(
        f"CREATE TABLE t (a INT, b STRING) {FULL}",
        f"CREATE TABLE p (a INT) PARTITIONED BY (d STRING) {FULL}",
        f"CREATE TABLE m (a INT) {INSERT_ONLY}",
        f"CREATE TABLE k (a INT) CLUSTERED BY (a) INTO 2 BUCKETS {FULL}",
        "CREATE TABLE mplain (a INT) STORED AS TEXTFILE",
        "INSERT INTO t VALUES (1, 'x'), (2, 'y')",
        "INSERT INTO k VALUES (1), (2), (3)",
        "INSERT INTO mplain VALUES (1)",
        "UPDATE t SET b = 'z' WHERE a = 2",
        "INSERT INTO p VALUES (1, '1'), (2, '2')",
    )
    aborted = acid.hive.run([FAILS.format(db=acid.database)])
    assert aborted[0].error
    replicated(acid, hive4_target)

    acid.sql("FROM t INSERT INTO m SELECT a INSERT INTO p PARTITION (d) SELECT a, '3'", "DELETE FROM t WHERE a = 1")
    assert acid.hive.run([FAILS.format(db=acid.database)])[0].error
    report = replicated(acid, hive4_target)
    assert report.applied["CommitTransaction"] == 2
    assert report.applied["AbortTransaction"] == 1
    written = {copy.task.file.subdir for copy in report.copies}
    assert written == {"delta_0000001_0000001_0000", "delta_0000002_0000002_0001", "delete_delta_0000004_0000004_0000"}
    # The target may forget aborted write ids: it has no data of them.
    high = {name: ids.high for name, ids in acid.connection.target.metastore.write_ids(acid.database, "mpt").items()}
    assert high == {"m": 1, "p": 2, "t": 5}

    acid.sql(
        "DELETE FROM k WHERE a = 2",
        "INSERT INTO mplain VALUES (2)",
        f"CREATE TABLE made {FULL} AS SELECT * FROM t",
        "TRUNCATE TABLE m",
        "ALTER TABLE p DROP PARTITION (d = '3')",
        "INSERT OVERWRITE TABLE p PARTITION (d = '2') SELECT 9",
        "INSERT OVERWRITE TABLE p PARTITION (d = '1') SELECT 9 WHERE 1 = 0",
        "ALTER TABLE t RENAME TO u",
        "INSERT INTO u VALUES (3, 'n')",
    )
    replicated(acid, hive4_target)
    rows_by_spark(acid)


def rows_by_spark(acid: Warehouse) -> None:
    """The checks of rows count what Hive reads, and find what differs."""
    source, target, database = acid.connection.source, acid.connection.target, acid.database
    spark = SparkCopier.from_settings({"spark.app.name": "rows"})
    spark.spark_context()
    session = spark.pyspark.spark_session
    for name, expected in {"p": {"d=2": 1}, "k": {"": 2}, "u": {"": 2}, "made": {"": 1}, "m": {}, "mplain": {"": 2}}.items():
        assert count_rows(session, source, database, name) == count_rows(session, target, database, name) == expected
        found = diff_rows(session, source, target, database, name)
        assert (found.source, found.target, found.partitions) == (sum(expected.values()),) * 2 + ((),)
    acid.sql("UPDATE p SET a = 8")  # as many rows as before
    found = diff_rows(session, source, target, database, "p")
    assert (found.source, found.target, found.partitions, found.rows) == (1, 1, ("d=2",), ())
