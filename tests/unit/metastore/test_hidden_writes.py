"""Write ids of a table as Hive 4 answers them once its housekeeper has removed those of ended transactions."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from hive_replication.acid.write_ids import WriteIds
from hive_replication.metastore.client import Metastore


class Server:
    """A metastore with the table ``db.t``.

    Args:
        kept: write ids by transaction, but for those that the housekeeper has removed.
        highest: the greatest one that was given out.
        opened: transactions that are.
    """

    def __init__(self, kept: dict[int, int], highest: int, *opened: int) -> None:
        self.kept, self.highest, self.open = kept, highest, set(opened)
        self.begins: tuple[int, int] | None = None  # a transaction and its write id, after the next call

    def call(self, _: str, do: Callable[[Any], Any]) -> Any:
        answer = do(self)
        if self.begins:
            (transaction, self.highest), self.begins = self.begins, None
            self.kept[transaction] = self.highest
            self.open.add(transaction)
        return answer

    def get_max_allocated_table_write_id(self, _: Any) -> Any:
        return SimpleNamespace(maxWriteId=self.highest)

    def get_open_txns_req(self, _: Any) -> Any:
        return SimpleNamespace(open_txns=sorted(self.open), abortedBits=b"", txn_high_water_mark=max(self.open, default=0))

    def get_valid_write_ids(self, request: Any) -> Any:
        """As Hive: up to the greatest that it keeps, or to the lowest open one where it keeps no other."""
        hidden = {int(request.validTxnList.split(":")[2])} if request.validTxnList else self.open
        unseen = sorted(write_id for transaction, write_id in self.kept.items() if transaction in hidden)
        high = max(self.kept.values()) if len(unseen) < len(self.kept) else unseen[0]
        invalid = [one for one in unseen if one <= high]
        of_table = SimpleNamespace(fullTableName="db.t", writeIdHighWaterMark=high, invalidWriteIds=invalid, abortedBits=b"")
        return SimpleNamespace(tblValidWriteIds=[of_table])


def seen(monkeypatch: pytest.MonkeyPatch, server: Server) -> WriteIds:
    metastore = Metastore("thrift://t:1")
    monkeypatch.setattr(metastore, "call", server.call)
    return metastore.write_ids("db", ["t"])["t"]


def test_a_committed_write_that_hive_hides_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """A25: of two committed transactions the older one got the greater write id; its own is removed, the other's is not."""
    assert seen(monkeypatch, Server({3: 1}, 2, 2)) == WriteIds(2)


def test_of_a_table_with_no_other_than_open_writes_all_of_these_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hive tells the lowest alone: the greater one would be taken for committed."""
    assert seen(monkeypatch, Server({2: 1, 3: 3}, 3, 2, 3)) == WriteIds(3, frozenset({1, 3}))


def test_a_write_that_begins_while_hive_is_asked_is_not_taken_for_one_that_it_hides(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its rows would be seen before their commit."""
    server = Server({1: 1}, 1)
    server.begins = (2, 2)
    assert not seen(monkeypatch, server).sees(2)
