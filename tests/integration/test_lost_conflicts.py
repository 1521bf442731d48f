"""Transactions of a source that lose a write conflict at their commit: Hive aborts them, and its log says nothing of that."""

from __future__ import annotations

import time

import pytest
from hive_metastore import ttypes as t

from hive_replication.acid.write_ids import WriteIds
from hive_replication.metastore.faults import TransactionGone
from resources.embedded.cluster import Cluster, Side
from tests.ledger import Ledger
from tests.writers import Writer

pytestmark = [pytest.mark.servers]


def updating(ledger: Ledger, table: str = "a") -> Writer:
    """Begins what an UPDATE with ``hive.txn.write.xlock=false`` does, whose lock others share, and writes."""
    writer = ledger.begin()
    component = t.LockComponent(t.LockType.SHARED_READ, t.LockLevel.TABLE, ledger.database, table)
    component.operationType, component.isTransactional = t.DataOperationType.UPDATE, True
    request = t.LockRequest([component], txnid=writer.transaction, user="test", hostname="localhost")
    writer.metastore.call("lock", lambda client: client.lock(request))
    writer.insert(table, f"{writer.transaction}\n")
    return writer


def commit(writer: Writer) -> None:
    """The commit that looks for conflicts."""
    request = t.CommitTxnRequest(writer.transaction, exclWriteEnabled=False)
    writer.metastore.call("commit", lambda client: client.commit_txn(request))


def lose(writer: Writer) -> None:
    with pytest.raises(TransactionGone, match="due to a write conflict"):
        commit(writer)


def ends(ledger: Ledger, after: int) -> list[str]:
    metastore = ledger.connection.source.metastore
    found = metastore.events(after, metastore.current_event_id())
    return [one.eventType for one in found if one.eventType in ("COMMIT_TXN", "ABORT_TXN")]


@pytest.fixture
def opened(ledger: Ledger) -> frozenset[int]:
    """What stands for transactions of other tests."""
    return ledger.connection.target.metastore.open_replayed()


def standing(ledger: Ledger, opened: frozenset[int]) -> int:
    return len(ledger.connection.target.metastore.open_replayed() - opened)


def test_what_loses_a_conflict_is_ended_on_the_replica(ledger: Ledger, opened: frozenset[int]) -> None:
    assert ledger.replicate().held == ()
    source, start = ledger.connection.source.metastore, ledger.connection.source.metastore.current_event_id()
    loser, winner, other = updating(ledger), updating(ledger), ledger.begin()
    other.insert("b", "open\n")
    commit(winner)
    lose(loser)
    assert ends(ledger, start) == ["COMMIT_TXN"], "Hive tells of the abort by now"
    assert loser.transaction in source.transactions_now().aborted
    assert ledger.replicate().held == ()
    assert standing(ledger, opened) == 1, "of the one that is open"
    assert ledger.write_ids(source=False) == WriteIds(2, aborted=frozenset({1}))
    other.commit()
    assert ledger.replicate().held == ()
    assert standing(ledger, opened) == 0
    assert len(ledger.files(source=False, table="b")) == len(ledger.files(source=False)) == 1


def test_what_was_open_at_the_end_of_an_earlier_window_is_ended_by_one_without_events(
    ledger: Ledger, opened: frozenset[int]
) -> None:
    assert ledger.replicate().held == ()
    loser, winner = updating(ledger), updating(ledger)
    commit(winner)
    assert ledger.replicate().held == ()
    assert standing(ledger, opened) == 1
    lose(loser)
    assert ledger.replicate().held == ()
    assert standing(ledger, opened) == 0


def test_what_the_source_has_forgotten_is_ended_too(
    ledger: Ledger, opened: frozenset[int], cluster: Cluster, source4: Side
) -> None:
    """A compaction of the table removes all that is known of an aborted transaction."""
    assert ledger.replicate().held == ()
    loser, winner, long = updating(ledger), updating(ledger), ledger.begin()
    long.insert("b", "open\n")
    commit(winner)
    lose(loser)
    tables = {"TXN_COMPONENTS": "TC_TXNID", "TXN_TO_WRITE_ID": "T2W_TXNID", "TXNS": "TXN_ID"}
    for table, column in tables.items():
        sql = f'DELETE FROM "{table}" WHERE "{column}" = {loser.transaction}'
        cluster.database(source4.name).run(sql, source4.name)
    _wait_until_forgotten(ledger, loser.transaction)
    assert ledger.replicate().held == ()
    assert standing(ledger, opened) == 1
    long.commit()
    assert ledger.replicate().held == ()
    assert standing(ledger, opened) == 0
    assert len(ledger.files(source=False, table="b")) == 1


def _wait_until_forgotten(ledger: Ledger, transaction: int) -> None:
    """Waits while Hive takes an id that it has no transaction of for one that is being opened."""
    until = time.monotonic() + 60
    while not ledger.connection.source.metastore.transactions_now().sees(transaction):
        assert time.monotonic() < until
        ledger.begin().abort()
        time.sleep(0.5)
