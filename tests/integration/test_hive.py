"""Real Hive 3.1.3 and 4.2.0 drivers run statements on the embedded servers, REPL DUMP and LOAD included."""

from __future__ import annotations

from pathlib import Path

import pytest

from hive_replication.errors import ReplicationError
from resources.embedded.hive import HiveDriver

pytestmark = [pytest.mark.servers, pytest.mark.hive]


def test_hive3_replicates_what_it_loaded(hive3: HiveDriver, hive3_target: HiveDriver, unique: str, tmp_path: Path) -> None:
    rows = tmp_path / "rows.txt"
    rows.write_text("1\n2\n3\n")
    hive3.execute(
        f"create database {unique} with dbproperties ('repl.source.for'='test')",
        f"alter database {unique} set owner user hive",
        f"create table {unique}.t (a int) partitioned by (ds string) stored as textfile",
        f"load data local inpath '{rows}' into table {unique}.t partition (ds='é 1')",
    )
    (dumped,) = hive3.execute(f"repl dump {unique}")
    directory, evid = dumped.rows[0].split("\t")
    assert dumped.seconds > 0
    hive3_target.execute(f"repl load {unique} from '{directory}'")
    (status, partitions, found) = hive3_target.execute(
        f"repl status {unique}", f"show partitions {unique}.t", f"select * from {unique}.t"
    )
    assert status.rows == (evid,)
    assert partitions.rows == ("ds=é 1",)
    assert [row.split("\t")[0] for row in found.rows] == ["1", "2", "3"]


@pytest.mark.long
def test_hive4_writes_acid_and_replicates(hive4: HiveDriver, hive4_target: HiveDriver, unique: str) -> None:
    acid = "stored as orc tblproperties ('transactional'='true')"
    hive4.execute(
        f"create database {unique} with dbproperties ('repl.source.for'='test')",
        f"create table {unique}.t (a int, b string) {acid}",
        f"insert into {unique}.t values (1, 'x'), (2, 'y')",
        f"update {unique}.t set b = 'z' where a = 2",
        f"repl dump {unique}",
    )
    hive4_target.execute(f"repl load {unique} into {unique}")
    (found,) = hive4_target.execute(f"select a, b from {unique}.t order by a")
    assert found.rows == ("1\tx", "2\tz")


def test_hive3_drops_partitions_by_expression(hive3: HiveDriver, unique: str) -> None:
    # The expression goes to the metastore in a form that Hive 3.1.3 by itself can write on Java 8 only.
    days = " ".join(f"partition (ds='{day}', n={day})" for day in range(1, 7))
    *_, shown = hive3.execute(
        f"create database {unique}",
        f"create table {unique}.t (a int) partitioned by (ds string, n int)",
        f"alter table {unique}.t add {days}",
        f"alter table {unique}.t drop partition (ds='1')",
        f"alter table {unique}.t drop partition (ds='2', n=2), partition (n>5)",
        f"show partitions {unique}.t",
    )
    assert shown.rows == ("ds=3/n=3", "ds=4/n=4", "ds=5/n=5")


def test_errors_are_answers_and_settings_last(hive3: HiveDriver, unique: str) -> None:
    missing, after = hive3.run([f"show tables in {unique}", "show databases"])
    assert unique in missing.error
    assert missing.rows == ()
    assert after.error == ""
    assert "default" in after.rows
    with pytest.raises(ReplicationError, match=f"does not exist: {unique}"):
        hive3.execute(f"use {unique}")
