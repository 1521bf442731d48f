"""Transactions that a metastore 4.2.0 takes back, since it took too long to open them, but goes on to map the source's to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from hive_replication.connect import connect
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.replay import Replayed
from resources.embedded.cluster import Cluster, Side
from resources.embedded.policy import policy
from tests.ledger import Ledger, make

pytestmark = pytest.mark.servers

_SIDE = "target-impatient4"
_TRANSACTIONS = 80


@pytest.fixture
def ledger(cluster: Cluster, source4: Side, unique: str) -> Iterator[Ledger]:
    """A target that has 40 ms to open transactions, which many at once take longer than, and one does not."""
    impatient = Cluster(cluster.directory, {_SIDE: {"metastore.txn.opentxn.timeout": "40ms"}})
    impatient.up([_SIDE])
    connection = connect(policy(impatient, {unique: unique}, source4.name, _SIDE))
    yield make(connection, unique)
    connection.source.metastore.close()
    connection.target.metastore.close()
    impatient.down([f"{_SIDE}.metastore"])


def test_lost_transactions_are_opened_under_a_further_name(ledger: Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    found: dict[int, Replayed] = {}
    real = Metastore.replay_open

    def told(*args: Any) -> dict[int, Replayed]:
        found.update(opened := real(*args))
        return opened

    monkeypatch.setattr(Metastore, "replay_open", told)
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
