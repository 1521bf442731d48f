"""Databases with transactional tables that their source, a metastore 4.2.0, drops, with transactions that end after that."""

from __future__ import annotations

import pytest

from hive_replication.events import transactions
from hive_replication.metastore.types import copy_of
from resources.embedded.hive import HiveDriver
from tests.integration.test_acid import FULL, rows
from tests.ledger import Ledger, make
from tests.warehouse import Warehouse
from tests.writers import create

pytestmark = pytest.mark.servers

GOES = ("ALTER DATABASE {} SET DBPROPERTIES ('repl.source.for'='')", "DROP DATABASE {} CASCADE")


def nowhere(*_: object) -> None:
    """Databases of a message that names none."""


def drop(ledger: Ledger) -> None:
    metastore = ledger.connection.source.metastore
    found = metastore.database(ledger.database)
    assert found is not None
    unmarked = copy_of(found)
    unmarked.parameters = {}
    metastore.alter_database(ledger.database, unmarked, found)
    for table in metastore.table_names(ledger.database):
        metastore.drop_table(ledger.database, table, delete_data=True)
    metastore.drop_database(ledger.database, delete_data=True)


@pytest.mark.hive
@pytest.mark.timeout(900)
def test_a_database_that_hive_drops_is_dropped(acid: Warehouse, hive4_target: HiveDriver) -> None:
    """The drop's own transaction ends after it: the window's report had a lane of it that was held."""
    acid.sql(f"CREATE TABLE t (a INT) {FULL}", "INSERT INTO t VALUES (1)")
    assert acid.replicate().held == ()
    acid.sql("INSERT INTO t VALUES (2)", "UPDATE t SET a = 3 WHERE a = 2")
    assert acid.replicate().held == ()
    since = acid.applied()
    acid.hive.execute(*(one.format(acid.database) for one in GOES))
    dump = acid.dump(since)
    report = acid.load(dump.directory)
    assert (report.held, report.applied["DropDatabase"]) == ((), 1)
    assert acid.connection.target.metastore.database(acid.database) is None

    acid.hive.execute(f"CREATE DATABASE {acid.database}")
    acid.sql(f"CREATE TABLE t (a INT) {FULL}", "INSERT INTO t VALUES (1)")
    assert acid.replicate().held == ()
    acid.hive.execute(*(one.format(acid.database) for one in GOES), f"CREATE DATABASE {acid.database}")
    acid.sql(f"CREATE TABLE t (a INT, b INT) {FULL}", "INSERT INTO t VALUES (4, 4)")
    end = acid.connection.source.metastore.current_event_id()
    assert acid.replicate().held == ()
    assert (acid.applied(), acid.status()) == (end, end)
    assert rows(hive4_target, acid.database) == rows(acid.hive, acid.database)


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.parametrize("windows", [1, 2])
@pytest.mark.parametrize("named", [False, True])
def test_transactions_that_are_open_at_the_drop(
    ledger: Ledger, monkeypatch: pytest.MonkeyPatch, windows: int, *, named: bool, again: bool
) -> None:
    """They end when their database is gone, or there is another of its name with tables of the same names.

    Hive 4.0 names no databases with their ends.
    """
    if not named:
        monkeypatch.setattr(transactions, "_databases", nowhere)
    source, target = ledger.connection.source.metastore, ledger.connection.target.metastore
    before = target.open_transactions()
    ledger.write("a", "1")
    assert ledger.replicate().held == ()
    ledger.write("a", "2")
    committed, aborted, last = writers = [ledger.begin() for _ in range(3)]
    for writer in writers:
        writer.insert("a", "3\n")
        writer.insert("b", "3\n")
    if windows == 2:
        assert ledger.replicate().held == ()
        assert len(target.open_transactions() - before) == 3
    since = ledger.applied()
    drop(ledger)
    committed.commit()
    aborted.abort()
    if again:
        make(ledger.connection, ledger.database)
        ledger.write("a", "5")
    last.abort()
    if again:
        ledger.write("a", "6")
        ledger.write("b", "7")
    end = source.current_event_id()
    assert ledger.load(ledger.dump(since).directory).held == ()
    assert target.open_transactions() <= before
    if not again:
        assert target.database(ledger.database) is None
        return
    assert (ledger.applied(), ledger.status()) == (end, end)
    for table in "ab":
        assert ledger.files(source=False, table=table) == ledger.files(source=True, table=table) != {}
        assert ledger.write_ids(source=False, table=table) == ledger.write_ids(source=True, table=table)


def test_a_table_that_is_dropped_without_a_lock_and_made_again_has_nothing_of_the_former(ledger: Ledger) -> None:
    """A transaction goes on that has written to the former, and is committed when there is the next."""
    source, target = ledger.connection.source, ledger.connection.target.metastore
    before = target.open_transactions()
    ledger.write("a", "1")
    assert ledger.replicate().held == ()
    writer = ledger.begin()
    writer.insert("a", "2\n")
    writer.insert("b", "2\n")
    source.metastore.drop_table(ledger.database, "a", delete_data=True)
    create(source.metastore, source.storage, ledger.database, "a")
    ledger.write("a", "3")
    writer.commit()
    ledger.write("a", "4")
    assert ledger.replicate().held == ()
    for table in "ab":
        assert ledger.files(source=False, table=table) == ledger.files(source=True, table=table) != {}
    assert target.open_transactions() <= before
