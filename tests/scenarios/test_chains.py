"""Chains: a replica is the source of another one (A14). What arrives at the second by windows arrives at the third."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from hive_replication.connect import Connection, connect
from hive_replication.dump.command import repl_dump
from hive_replication.dump.listing import Lister
from hive_replication.errors import Unreachable
from hive_replication.failover.changes import changes
from hive_replication.load.command import repl_load
from hive_replication.load.replica.state import replica_state
from hive_replication.load.report import LoadReport
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.names import partition_name
from hive_replication.repair import repair
from hive_replication.statements import ReplDump, ReplLoad
from hive_replication.verify.acid import Seen
from hive_replication.verify.witness import witness
from resources.embedded.cluster import Cluster, Side
from resources.embedded.policy import policy
from tests.ledger import Ledger, make, partition_of
from tests.warehouse import Warehouse
from tests.writers import create

pytestmark = pytest.mark.servers


@dataclass(frozen=True)
class Hop:
    """Replication of one database to another."""

    connection: Connection
    database: str
    replica: str

    def replicate(self) -> LoadReport:
        """One window, or the bootstrap; nothing is held."""
        sides = self.connection
        applied = replica_state(sides.target.metastore.database(self.replica)).applied
        dump = repl_dump(sides.source, ReplDump(self.database, None, applied), sides.store)
        report = repl_load(
            sides.target, ReplLoad(dump.directory, self.replica), sides.store, sides.copier, source=sides.source.metastore
        )
        assert report.held == ()
        return report

    @classmethod
    def beyond(cls, cluster: Cluster, database: str, source: str, target: str) -> Hop:
        """From the replica back to the first metastore, under another name."""
        name = f"{database}c"
        return cls(connect(policy(cluster, {database: name}, source, target)), database, name)


@pytest.fixture(scope="module")
def ledger(cluster: Cluster, source4: Side, target4: Side) -> Iterator[Ledger]:
    """Transactional tables."""
    name = f"h{uuid.uuid4().hex[:10]}"
    made = make(connect(policy(cluster, {name: name}, source4.name, target4.name)), name)
    yield made
    made.connection.source.metastore.close()
    made.connection.target.metastore.close()


@pytest.fixture(scope="module")
def last(cluster: Cluster, ledger: Ledger) -> Hop:
    """From the second metastore to the third; all three stand where the first does."""
    ledger.write("a", "1")
    assert ledger.replicate().held == ()
    hop = Hop.beyond(cluster, ledger.database, "target4", "source4")
    hop.replicate()
    return hop


def _assert_same(ledger: Ledger, last: Hop, *tables: str) -> None:
    """The files, and what a reader sees of them, are the same at all three."""
    target = last.connection.target
    third = Ledger(last.connection, None, last.replica)  # type: ignore[arg-type]
    for name in tables:
        expected = ledger.files(source=True, table=name)
        seen = ledger.write_ids(source=True, table=name)
        assert ledger.files(source=False, table=name) == expected
        assert third.files(source=False, table=name) == expected
        theirs = target.metastore.write_ids(last.replica, [name])[name]
        assert (theirs.high, theirs.open) == (seen.high, seen.open)


def _open(last: Hop) -> frozenset[int]:
    """Transactions of replication that are open at the third."""
    metastore = last.connection.target.metastore
    unfinished = metastore.unfinished_transactions()
    return unfinished - metastore.ended(unfinished)


def test_transactions(ledger: Ledger, last: Hop) -> None:
    """Commits, aborts and commits without rows; no transaction stays open at the third."""
    before = _open(last)
    ledger.write("a", "2", "3")
    several = ledger.begin()
    several.insert("a", "4\n")
    several.insert("b", "1\n")
    aborted = ledger.begin()
    aborted.insert("b", "never\n")
    aborted.lock("b")
    empty = ledger.begin()
    empty.write_id("a")
    assert ledger.replicate().held == ()
    last.replicate()
    several.commit()
    aborted.abort()
    empty.commit()
    assert ledger.replicate().held == ()
    report = last.replicate()
    assert report.applied["CommitTransaction"] >= 2  # and those of other databases, which its log does not tell apart
    _assert_same(ledger, last, "a")
    assert _open(last) == before
    third = Ledger(last.connection, None, last.replica)  # type: ignore[arg-type]
    assert list(third.files(source=False, table="b").values()) == [b"1\n"]
    assert third.write_ids(source=False, table="b").open == frozenset()


@pytest.mark.parametrize("name", ["000000_0", "50 %25.csv", "line\u2028 é+"])
def test_odd_names_of_files_and_partitions(ledger: Ledger, last: Hop, name: str) -> None:
    """LOAD DATA keeps a file's name in insert-only tables. Hive's notes of replicated commits have URIs, with spaces encoded."""
    source, day = ledger.connection.source.metastore, f"a b:{name.encode().hex()}"
    source.add_partitions(ledger.database, "p", [partition_of(ledger, day)])
    (part,) = [one for one in source.partitions(ledger.database, "p") if one.values == [day]]
    writer = ledger.begin()
    writer.insert("p", "1\n", partition_name(["ds"], part.values), name=name)
    writer.insert("b", f"{name}\n", name=name)
    writer.commit()
    assert ledger.replicate().held == ()
    last.replicate()
    _assert_same(ledger, last, "p")


#: As Hive's own tables have it: a TRUNCATE changes it elsewhere, for which a load would need a transaction.
ACCURATE = {"COLUMN_STATS_ACCURATE": '{"BASIC_STATS":"true"}'}


@pytest.mark.parametrize("windows", [1, 2])
def test_truncations(ledger: Ledger, last: Hop, windows: int) -> None:
    """Of a table and of a partition, and one that is aborted; the second's log has no other word of them than their commits."""
    source, name, unseen = ledger.connection.source.metastore, f"t{windows}", f"u{windows}"
    for one in (name, unseen):
        create(source, ledger.connection.source.storage, ledger.database, one, parameters=ACCURATE)
        ledger.write(one, "1")
    parts = [partition_of(ledger, f"{windows}{day}") for day in "12"]
    for part in parts:
        part.parameters = dict(ACCURATE)
    source.add_partitions(ledger.database, "p", parts)
    for day in "12":
        writer = ledger.begin()
        writer.insert("p", "1\n", f"ds={windows}{day}")
        writer.commit()
    of_table, of_partition, aborted = (ledger.begin() for _ in range(3))
    aborted.truncate(unseen)
    of_table.truncate(name)
    of_partition.truncate("p", f"ds={windows}1")
    if windows == 2:
        assert ledger.replicate().held == ()
        last.replicate()
    of_table.commit()
    of_partition.commit()
    aborted.abort()
    assert ledger.replicate().held == ()
    last.replicate()
    for side, database in ((ledger.connection.target, ledger.database), (last.connection.target, last.replica)):
        found = {
            table.tableName: Seen.now(side.metastore, side.storage, Lister(side.storage), database, table)
            for table in side.metastore.tables(database, [unseen, name, "p"])
        }
        (truncated,) = side.metastore.tables(database, [name])
        parts = side.metastore.partitions(database, "p", [f"ds={windows}{day}" for day in "12"])
        assert found[name].files(truncated) == ()
        assert sorted(len(files) for files in found["p"].many(parts)) == [0, 1]
        assert found[unseen].files(*side.metastore.tables(database, [unseen])) != ()


def test_the_witness_knows_of_commits_that_wait(ledger: Ledger, last: Hop, monkeypatch: pytest.MonkeyPatch) -> None:
    """While the second is loaded its log has a commit without the right databases, and no event of the database yet."""
    writer = ledger.begin()
    writer.insert("a", "waits\n")
    assert ledger.replicate().held == ()
    last.replicate()
    writer.commit()
    dump = ledger.dump(ledger.applied())
    _kill_at(monkeypatch, "alter_database")
    with pytest.raises(Unreachable, match="the load ends here"):
        ledger.load(dump.directory)
    monkeypatch.undo()
    stands = replica_state(last.connection.target.metastore.database(last.replica)).applied or 0
    assert [one.tables for one in changes(last.connection.source, ledger.database, stands) if one.tables] == [("a",)]
    found = witness(last.connection.source, last.connection.target, ledger.database)
    assert (found.wrong, {one.table for one in found.waiting}) == ([], {"a"})
    assert ledger.load(dump.directory).held == ()
    last.replicate()
    _assert_same(ledger, last, "a")


def test_rebuilt_by_a_repair(ledger: Ledger, last: Hop) -> None:
    """A repair at the second makes a table with its data in no transaction: the third gets all of it."""
    create(ledger.connection.source.metastore, ledger.connection.source.storage, ledger.database, "r")
    ledger.write("r", "1", "2")
    assert ledger.replicate().held == ()
    last.replicate()
    connection = ledger.connection
    connection.target.metastore.drop_table(ledger.database, "r", delete_data=False)
    ledger.write("r", "3")
    assert repair(connection, ledger.database, "r").load.held == ()
    ledger.write("r", "4")
    assert ledger.replicate().held == ()
    last.replicate()
    _assert_same(ledger, last, "r")
    ledger.write("r", "5")
    assert ledger.replicate().held == ()
    last.replicate()
    _assert_same(ledger, last, "r")


def test_dropped_and_renamed(ledger: Ledger, last: Hop) -> None:
    """Names are used again, and drops at the second look like drops to the third."""
    metastore = ledger.connection.source.metastore
    for name in ("old", "new"):
        create(metastore, ledger.connection.source.storage, ledger.database, name)
        ledger.write(name, name, name)
    assert ledger.replicate().held == ()
    last.replicate()
    metastore.drop_table(ledger.database, "old", delete_data=True)
    ledger.rename("new", "old")
    ledger.write("old", "x")
    assert ledger.replicate().held == ()
    last.replicate()
    _assert_same(ledger, last, "old")
    assert last.connection.target.metastore.table(last.replica, "new") is None


def test_plain_tables(cluster: Cluster, warehouse: Warehouse, monkeypatch: pytest.MonkeyPatch) -> None:
    """An INSERT into what exists reaches the third, also where the load at the second was killed after it moved the files."""
    warehouse.sql("CREATE TABLE t (a INT)", "CREATE TABLE p (a INT) PARTITIONED BY (d STRING)")
    warehouse.load_data("t", "1\n")
    warehouse.load_data("p PARTITION (d='1')", "1\n")
    warehouse.load_data("p PARTITION (d='2')", "1\n")
    assert warehouse.replicate().held == ()
    last = Hop.beyond(cluster, warehouse.database, "target", "source")
    last.replicate()
    for number, ends in enumerate(("", "alter_table", "alter_partitions", "fire_insert_event")):
        for into in ("t", "p PARTITION (d='1')", "p PARTITION (d='2')"):
            warehouse.load_data(into, f"{number}\n")
        dump = warehouse.dump(warehouse.applied())
        if ends:
            _kill_at(monkeypatch, ends)
            with pytest.raises(Unreachable):
                warehouse.load(dump.directory)
            monkeypatch.undo()
        assert warehouse.load(dump.directory).held == ()
        last.replicate()
        third = Warehouse(last.connection, None, last.replica)  # type: ignore[arg-type]
        ours, theirs = warehouse.content(source=True), third.content(source=False)
        for name, key in (("t", "files"), ("p", "partition ['1']"), ("p", "partition ['2']")):
            assert theirs[name][key] == ours[name][key]  # type: ignore[index]


def _kill_at(monkeypatch: pytest.MonkeyPatch, call: str) -> None:
    def ending(*_: object, **__: object) -> None:
        raise Unreachable("the load ends here")

    monkeypatch.setattr(Metastore, call, ending)
