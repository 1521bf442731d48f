"""What a target's metastore notes of transactions that stand for a source's: it does not tell its map of them.

They are opened by a user of their own, and the host's name tells for which of the source's.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from functools import cached_property
from itertools import groupby

from hive_metastore.ttypes import HeartbeatTxnRangeRequest

from hive_replication.metastore.transactions import Transactions

USER = "hive-replication"
#: Before the ids of the source's, where the metastore has the host's name.
FOR = "transactions of the source"
_EARLIER = "source transactions"  # the same of a version whose policies' names began after the first dot of today's
_SOURCES = re.compile(rf"({FOR}|{_EARLIER}) ([0-9]{{1,19}})-([0-9]{{1,19}})")
#: Ids of a source's that are tried for one transaction.
SPREAD = 10_000
_SNAPSHOTS = 1 << 61  # ids from here on are of no source's transaction


def snapshot_id(table: str) -> int:
    """The id that the transaction has in place of a source's by which a new table of a replica is shown.

    It is made of the table's name, so that each one is found by what is noted of it, and ended as those are.
    """
    return _SNAPSHOTS | int.from_bytes(hashlib.sha256(table.encode()).digest()[:8]) >> 3


class ReplayNotes(Transactions):
    """Notes of replayed transactions."""

    def replayed_among(self, transactions: Collection[int]) -> list[int]:
        """Those transactions of this metastore that stand for a source's, by what is noted of them, ascending."""
        return sorted({this for this, *_ in self.notes() if this in transactions})

    def notes(self) -> Iterator[tuple[int, str, int, int]]:
        """Transactions of replication that are not committed, each with what is noted: the kind, and a range of the source's.

        Those that were opened together have one range, in which others may lie that were opened before or later.
        """
        for one in self.call("get_open_txns_info", lambda client: client.get_open_txns_info()).open_txns:
            noted = _SOURCES.fullmatch(one.hostname or "") if one.user == USER else None
            if noted:
                yield one.id, noted[1], int(noted[2]), int(noted[3])

    def snapshots(self) -> frozenset[int]:
        """Transactions of this metastore by which new tables of replicas are shown, and that are not committed."""
        return frozenset(this for this, _, first, last in self.notes() if _SNAPSHOTS <= first == last)

    @cached_property
    def _earlier(self) -> frozenset[tuple[int, int]]:
        """Ranges of source transactions that an earlier version may have opened; asked once."""
        return frozenset((first, last) for _, kind, first, last in self.notes() if kind == _EARLIER)

    def ended(self, ids: Iterable[int]) -> set[int]:
        """Which of some transactions are not open."""
        found: set[int] = set()
        for first, last in _ranges(sorted(ids)):
            request = HeartbeatTxnRangeRequest(first, last)
            answer = self.call("heartbeat_txn_range", lambda client, r=request: client.heartbeat_txn_range(r))
            found |= answer.aborted | answer.nosuch
        return found


def _ranges(numbers: Sequence[int]) -> Iterator[tuple[int, int]]:
    """First and last of each run of numbers without a gap."""
    for _, run in groupby(enumerate(numbers), key=lambda pair: pair[1] - pair[0]):
        found = [number for _, number in run]
        yield found[0], found[-1]
