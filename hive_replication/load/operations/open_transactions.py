"""Giving out the write ids of many transactions with few calls (pure, but for carrying it out).

What transactions write to tables is theirs alone until they commit, so all of a stretch of a lane that nothing but transactions
is in can begin at its start.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from itertools import chain

from hive_replication.load.operations.kinds import CustomOperation, Operation
from hive_replication.load.operations.transactions import AllocateTargetWriteIds, ReplayAbort, ReplayCommit, require_next
from hive_replication.load.replica.target import Target
from hive_replication.metastore.replicated_transactions import Replayed

WriteIdPairs = tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class OpenReplayed(CustomOperation):
    """Opens what stands for a source's transactions and gives them the source's write ids of some tables.

    Args:
        policy: whose transactions they are (:func:`hive_replication.load.operations.transactions.replay_policy`).
        write_ids: by target table; of each by source transaction, ascending.
    """

    kind = "OpenTransactions"
    policy: str
    write_ids: tuple[tuple[str, WriteIdPairs], ...]

    def carry_out(self, target: Target, database: str) -> None:
        """Gives out those that are not given out yet."""
        wanted = {table: _missing(target, database, table, pairs) for table, pairs in self.write_ids}
        transactions = {transaction for pairs in wanted.values() for transaction, _ in pairs}
        if not transactions:
            return
        opened = target.metastore.replay_open(self.policy, transactions)
        for table, pairs in wanted.items():
            for name, run in ascending(pairs, opened):
                target.metastore.replay_write_ids(name, database, table, run)


#: Operations on transactions alone, which the target's metastore carries out once, however often it is asked.
Transactional = OpenReplayed | AllocateTargetWriteIds | ReplayCommit | ReplayAbort


def batch_opens(operations: Iterable[Operation]) -> Iterator[Operation]:
    """The operations of a lane, where transactions that begin between other operations begin together."""
    stretch: list[Operation] = []
    for one in operations:
        if isinstance(one, Transactional):
            stretch.append(one)
            continue
        yield from _begun_together(stretch)
        stretch = []
        yield one
    yield from _begun_together(stretch)


def ascending(pairs: WriteIdPairs, opened: Mapping[int, Replayed]) -> Iterator[tuple[str, dict[int, int]]]:
    """Write ids in runs of ascending target transactions of one name: of one call the metastore gives them out in that order.

    A transaction that gets a second write id, instead of the first, begins a run.

    Args:
        pairs: source transactions with their write ids, ascending.
        opened: what stands for the source's transactions.
    """
    run: dict[int, int] = {}
    last = Replayed(0, "")
    for transaction, write_id in pairs:
        this = opened[transaction]
        if run and (this.id < last.id or this.name != last.name or transaction in run):
            yield last.name, run
            run = {}
        run[transaction], last = write_id, this
    if run:
        yield last.name, run


def _begun_together(stretch: list[Operation]) -> Iterator[Operation]:
    given = {(one.table, *pair) for one in stretch if isinstance(one, AllocateTargetWriteIds) for pair in one.write_ids}
    return chain.from_iterable(_opened(part, given) for part in _parts(stretch, given))


def _parts(stretch: list[Operation], given: Set[tuple[str, int, int]]) -> Iterator[list[Operation]]:
    """Cuts a stretch after a commit that gives out a write id itself, as of a table that its transaction made.

    Later write ids of the table, given out before it, would say that this one was, too: its transaction would never be opened.
    """
    last = {one.table: n for n, one in enumerate(stretch) if isinstance(one, AllocateTargetWriteIds)}
    part: list[Operation] = []
    for n, one in enumerate(stretch):
        part.append(one)
        keys = [(each.table, one.transaction, each.write_id) for each in one.written] if isinstance(one, ReplayCommit) else []
        if any(last.get(key[0], n) > n and key not in given for key in keys):
            yield part
            part = []
    yield part


def _opened(stretch: list[Operation], given: Set[tuple[str, int, int]]) -> Iterator[Operation]:
    begun = [one for one in stretch if isinstance(one, AllocateTargetWriteIds)]
    tables: dict[str, list[tuple[int, int]]] = {}
    for one in begun:
        tables.setdefault(one.table, []).extend(one.write_ids)
    write_ids = tuple((table, tuple(pairs)) for table, pairs in tables.items())
    evids = tuple(evid for one in begun for evid in one.evids)
    together = len(begun) > 1
    if together:
        yield OpenReplayed(begun[0].evid, begun[0].table, begun[0].policy, write_ids, parts=evids)
    for one in stretch:
        if isinstance(one, ReplayCommit):
            yield one.with_allocated(given)
        elif not (together and isinstance(one, AllocateTargetWriteIds)):
            yield one


def _missing(target: Target, database: str, table: str, pairs: WriteIdPairs) -> WriteIdPairs:
    highest = target.metastore.max_write_id(database, table)
    missing = tuple(pair for pair in pairs if pair[1] > highest)
    for _, write_id in missing:
        require_next(database, table, highest, write_id)
        highest = write_id
    return missing
