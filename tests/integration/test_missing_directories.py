"""Directories of tables and partitions that the source lacks at the dump: never an emptied replica, on real servers."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import pytest

from hive_replication.connect import Connection
from hive_replication.load.report import LoadReport
from hive_replication.metastore.types import copy_of
from hive_replication.operate import repair
from tests.origin import Origin
from tests.warehouse import Warehouse

pytestmark = pytest.mark.servers

_TOLD = "was missing at the source when it was dumped"


@dataclass
class Pair:
    """A source database with a table, a partitioned one and their neighbour, and its replica."""

    connection: Connection
    database: str
    origin: Origin

    @property
    def warehouse(self) -> Warehouse:
        return Warehouse(self.connection, None, self.database)  # type: ignore[arg-type]

    def fill(self) -> None:
        self.origin.create_database()
        for name in ("plain", "neighbour"):
            self.origin.create(name)
            self.origin.insert(name, "1\n")
        self.origin.create("parts", "1", "2")
        self.origin.insert("parts", "1\n", "1")
        self.origin.insert("parts", "2\n", "2")

    def remove(self, table: str, day: str = "") -> str:
        """Removes a directory of the source behind Hive's back."""
        location = self.origin.location(table, day)
        assert self.connection.source.storage.delete(location, recursive=True)
        return location

    def rows(self, table: str, day: str = "") -> list[bytes]:
        """What the replica has."""
        target = self.connection.target
        found = target.metastore.table(self.database, table)
        assert found is not None
        location = found.sd.location
        if day:
            (part,) = target.metastore.partitions(self.database, table, [f"ds={day}"])
            location = part.sd.location
        return [target.storage.read(file.uri) for file in target.storage.files(str(location))]

    def in_policy(self, missing: Literal["hold", "empty"], packed_above: int = 0) -> Pair:
        made = self.warehouse.with_policy(missing_directories=missing, packed_above=packed_above)
        return replace(self, connection=replace(made.connection, store=self.connection.store))


@pytest.fixture
def pair(connection: Connection, unique: str) -> Pair:
    made = Pair(connection, unique, Origin(connection, unique))
    made.fill()
    return made


def held(report: LoadReport) -> dict[str, str]:
    return {name: one.reason for one in report.held for name in one.tables}


@pytest.mark.parametrize("packed_above", [0, 10_000], ids=["packed", "tree"])
def test_a_bootstrap_holds_what_has_no_directory(pair: Pair, packed_above: int) -> None:
    """A18: they were dumped as empty without a word."""
    pair = pair.in_policy("hold", packed_above)
    gone = {"plain": pair.remove("plain"), "parts": pair.remove("parts", "2")}
    found = held(pair.warehouse.replicate())
    assert found.keys() == gone.keys()
    assert all(_TOLD in found[name] and directory in found[name] for name, directory in gone.items())
    pair.warehouse.assert_equal(only="neighbour")
    storage = pair.connection.source.storage
    storage.mkdirs(gone["plain"])
    storage.write(f"{gone['parts']}/again", b"3\n")
    for name in gone:
        assert repair(pair.connection, f"{pair.database}.{name}").left == ()
    assert pair.warehouse.replicate().held == ()
    pair.warehouse.assert_equal()
    assert (pair.rows("plain"), pair.rows("parts", "2")) == ([], [b"3\n"])


def test_a_repair_empties_no_replica(pair: Pair) -> None:
    """As where the source's mount is gone, and drift has repairs made."""
    assert pair.warehouse.replicate().held == ()
    pair.remove("plain")
    pair.remove("parts", "1")
    for name, day in (("plain", ""), ("parts", "1")):
        before = pair.rows(name, day)
        assert before == [b"1\n"]
        made = repair(pair.connection, f"{pair.database}.{name}")
        assert made.repaired is not None
        assert _TOLD in held(made.repaired)[name]
        assert [one.table for one in made.left] == [name]
        assert pair.rows(name, day) == before


def test_the_policy_may_have_them_replicated_as_empty(pair: Pair) -> None:
    pair.remove("plain")
    pair.remove("parts", "2")
    dump = pair.warehouse.dump()
    assert held(pair.warehouse.load(dump.directory)).keys() == {"plain", "parts"}
    report = pair.in_policy("empty").warehouse.load(dump.directory, repair=True)
    assert report.held == ()
    told = {one.what for one in report.skipped if one.reason.endswith("is missing at the source: replicated as empty")}
    assert told == {f"{pair.database}.plain", f"{pair.database}.parts/ds=2"}
    pair.warehouse.assert_equal()


def test_a_window_holds_what_has_no_directory(pair: Pair) -> None:
    """An INSERT without a list of its files, as of other engines: the dump lists the directory, which is gone."""
    pair.warehouse.replicate()
    metastore = pair.connection.source.metastore
    for table, values in (("plain", None), ("parts", ["1"])):
        metastore.fire_insert_event(pair.database, table, values=values, files=[], checksums=[], replace=False)
    pair.origin.insert("neighbour", "2\n")
    pair.remove("plain")
    pair.remove("parts", "1")
    found = held(pair.warehouse.replicate())
    assert found.keys() == {"plain", "parts"}
    assert all(_TOLD in reason for reason in found.values())
    assert (pair.rows("plain"), pair.rows("parts", "1")) == ([b"1\n"], [b"1\n"])
    pair.warehouse.assert_equal(only="neighbour")
    for name in ("plain", "parts"):
        metastore.drop_table(pair.database, name, delete_data=True)
    report = pair.warehouse.load(pair.warehouse.dump(pair.warehouse.status()).directory)
    assert report.held == ()
    pair.warehouse.assert_equal()


def test_what_has_moved_away_since_is_not_missed(pair: Pair) -> None:
    """The directory that an event names was left by a later one, and removed then."""
    pair.warehouse.replicate()
    metastore, storage = pair.connection.source.metastore, pair.connection.source.storage
    old = pair.origin.location("plain")
    metastore.fire_insert_event(pair.database, "plain", values=None, files=[], checksums=[], replace=False)
    table = metastore.table(pair.database, "plain")
    assert table is not None
    moved = copy_of(table)
    moved.sd = copy_of(table.sd)
    moved.sd.location = f"{old}_elsewhere"
    storage.write(f"{moved.sd.location}/f", b"5\n")
    metastore.alter_table(pair.database, "plain", moved)
    storage.delete(old, recursive=True)
    report = pair.warehouse.replicate()
    assert report.held == ()
    assert pair.rows("plain") == [b"5\n"]


def test_a_transactional_table_without_its_directory_is_held(acid: Warehouse) -> None:
    acid.sql("CREATE TABLE plain (a INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')", "INSERT INTO plain VALUES (1)")
    acid.sql("CREATE TABLE neighbour (a INT) STORED AS ORC TBLPROPERTIES ('transactional'='true')")
    found = acid.connection.source.metastore.table(acid.database, "plain")
    assert found is not None
    acid.connection.source.storage.delete(str(found.sd.location), recursive=True)
    (only,) = acid.replicate().held
    assert only.tables == ("plain",)
    assert _TOLD in only.reason
