"""Transactions that a metastore 4.2.0 loses: it takes some back, since it took too long to open them, but goes on to map the
source's to them; and it hides the writes of some that are committed."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from hive_metastore.ttypes import GetValidWriteIdsRequest

from hive_replication.acid.write_ids import WriteIds
from hive_replication.connect import connect
from hive_replication.errors import Refused
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.replicated_transactions import Replayed
from resources.embedded.cluster import Cluster, Side
from resources.embedded.policy import policy
from tests.ledger import Ledger, make

pytestmark = [pytest.mark.servers, pytest.mark.long]

_SIDE = "target-impatient4"
_STRICT = "target-strict4"
_TIDY = "source-tidy4"
_TRANSACTIONS = 80
#: Makes the database take 5 ms for each transaction, on any machine: 400 ms for all at once.
_SLOW = """
CREATE OR REPLACE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(0.005); RETURN NULL; END';
CREATE OR REPLACE TRIGGER slow AFTER INSERT ON "TXNS" FOR EACH ROW EXECUTE FUNCTION slow();
"""


@pytest.fixture
def ledger(cluster: Cluster, source4: Side, unique: str) -> Iterator[Ledger]:
    """A target that has 200 ms to open transactions, which many at once take longer than, and one does not."""
    impatient = Cluster(cluster.directory, {_SIDE: {"metastore.txn.opentxn.timeout": "200ms"}})
    impatient.up([_SIDE])
    impatient.database(_SIDE).run(_SLOW, _SIDE)
    connection = connect(policy(impatient, {unique: unique}, source4.name, _SIDE))
    yield make(connection, unique)
    connection.source.metastore.close()
    connection.target.metastore.close()
    impatient.down([f"{_SIDE}.metastore"])


def test_lost_transactions_are_opened_under_a_further_name(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[int, Replayed] = {}
    real = Metastore.replay_open

    def replay_open(*args: Any) -> dict[int, Replayed]:
        found.update(opened := real(*args))
        return opened

    monkeypatch.setattr(Metastore, "replay_open", replay_open)
    assert ledger.replicate().held == ()
    for number in range(_TRANSACTIONS):
        writer = ledger.begin()
        writer.insert("a", f"{number}\n")
        (writer.abort if number % 10 == 3 else writer.commit)()
    dump = ledger.dump(ledger.applied())
    report = ledger.load(dump.directory)
    assert report.held == ()
    assert any(one.name.endswith("#2") for one in found.values()), "none was lost"
    seen = ledger.write_ids(source=False)
    assert seen.high == _TRANSACTIONS
    committed = [number for number in range(1, _TRANSACTIONS + 1) if number % 10 != 4]
    assert all(map(seen.sees, committed))
    assert len(report.copies) == len(committed)
    assert dict(ledger.load(dump.directory).applied) == {}


@pytest.fixture
def strict(cluster: Cluster, source4: Side, unique: str) -> Iterator[Ledger]:
    """A target that aborts replicated transactions after half a minute, instead of 11 days."""
    timeouts = dict.fromkeys(("metastore.repl.txn.timeout", "metastore.txn.timeout"), "30s")  # Hive goes by both
    settings = timeouts | {"metastore.acid.housekeeper.interval": "1s"}
    cluster = Cluster(cluster.directory, {_STRICT: settings})
    cluster.up([_STRICT])
    connection = connect(policy(cluster, {unique: unique}, source4.name, _STRICT))
    yield make(connection, unique)
    connection.source.metastore.close()
    connection.target.metastore.close()
    cluster.down([f"{_STRICT}.metastore"])


def test_a_replicated_transaction_that_is_open_for_too_long_is_aborted(strict: Ledger) -> None:
    """Hive marks its database, which the policy's name begins with; it would abort none at all if it did not find that."""
    target = strict.connection.target.metastore
    assert strict.replicate().held == ()
    before = target.open_transactions()
    writer = strict.begin()
    writer.write_id("a")
    assert strict.replicate().held == ()
    assert len(target.open_transactions() - before) == 1
    until = time.monotonic() + 120
    while target.open_transactions() - before and time.monotonic() < until:
        time.sleep(0.5)
    assert target.open_transactions() <= before
    writer.insert("a", "1\n")
    writer.commit()
    with pytest.raises(Refused, match=r"repl\.incompatible=true"):
        strict.replicate()


@pytest.fixture
def tidy(cluster: Cluster, target4: Side, unique: str) -> Iterator[Ledger]:
    """A source whose housekeeper removes the write ids of ended transactions every second, instead of every minute."""
    cluster = Cluster(cluster.directory, {_TIDY: {"metastore.acid.housekeeper.interval": "1s"}})
    cluster.up([_TIDY])
    connection = connect(policy(cluster, {unique: unique}, _TIDY, target4.name))
    left = connection.source.metastore.unfinished_transactions()  # of an earlier session: nothing younger would be removed
    if left:
        connection.source.metastore.abort(left)
    yield make(connection, unique)
    connection.source.metastore.close()
    connection.target.metastore.close()
    cluster.down([f"{_TIDY}.metastore"])


def test_committed_writes_that_hive_hides_are_seen_and_replicated(tidy: Ledger) -> None:
    """Of two transactions the younger one got the smaller write id, and an open one stands between them."""
    older, between, younger = (tidy.begin() for _ in range(3))
    younger.insert("a", "younger\n")
    older.insert("a", "older\n")
    older.commit()
    younger.commit()
    _wait_until_hidden(tidy, "a")
    assert tidy.write_ids(source=True) == WriteIds(2)
    assert tidy.replicate().held == ()
    assert tidy.files(source=False) == tidy.files(source=True)
    assert len(tidy.files(source=False)) == 2
    later = tidy.begin()
    later.insert("a", "later\n")
    later.commit()
    assert tidy.replicate().held == ()
    assert tidy.files(source=False) == tidy.files(source=True)
    between.abort()


def test_the_write_ids_of_open_transactions_are_told_from_those_that_hive_hides(tidy: Ledger) -> None:
    """Of a table whose committed transactions it has removed, Hive tells the lowest of the others only."""
    first, left, last = (tidy.begin() for _ in range(3))
    first_open, hidden = left.write_id("a"), first.write_id("a")
    assert (first_open, hidden, last.write_id("a")) == (1, 2, 3)
    first.commit()
    _wait_until_hidden(tidy, "a")
    assert tidy.write_ids(source=True) == WriteIds(3, frozenset({1, 3}))
    last.commit()
    left.commit()


def _wait_until_hidden(ledger: Ledger, table: str) -> None:
    """Waits until the metastore itself answers less than it has given out, for good: a while after the last commit."""
    request = GetValidWriteIdsRequest([f"{ledger.database}.{table}"])
    until = time.monotonic() + 30
    while time.monotonic() < until:
        answer = ledger.connection.source.metastore.call("ids", lambda client: client.get_valid_write_ids(request))
        seen = answer.tblValidWriteIds[0]
        if seen.writeIdHighWaterMark < ledger.highest(source=True, table=table):
            return
        time.sleep(0.2)
    pytest.fail("Hive hides nothing any more: WriteIds need no second look")
