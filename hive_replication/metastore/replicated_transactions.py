"""Calls about transactions that stand for a source's (Hive 4 on).

The metastore keeps a map of them, by policy: for a source transaction it opens one of its own, at most once, gives it the
source's write ids, and forgets it with its end. Ending one that it does not know does nothing.

It may lose one that the map goes on naming: Hive 4 takes back transactions whose opening took longer than
``metastore.txn.opentxn.timeout`` (1 s), but not their place in the map. Then another is opened, under a further name.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from hive_metastore.ThriftHiveMetastore import Client, allocate_table_write_ids_args
from hive_metastore.ttypes import (
    AbortTxnRequest,
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    MaxAllocatedTableWriteIdRequest,
    OpenTxnRequest,
    ReplTblWriteIdStateRequest,
    TxnToWriteId,
    TxnType,
    WriteEventInfo,
)
from thrift.Thrift import TType

from hive_replication.acid.write_ids import WriteIds
from hive_replication.metastore.faults import TransactionGone
from hive_replication.metastore.replay_notes import FOR, SPREAD, USER, ReplayNotes
from hive_replication.metastore.transactions import WriteEvent
from hive_replication.process import machine

_LOG = logging.getLogger(__name__)

_MOST = 100  # transactions opened by one call: the metastore has a second for it
_NAMES = 4  # of one policy


@dataclass(frozen=True, slots=True)
class Replayed:
    """What stands for a source's transaction.

    Args:
        id: of the target's transaction.
        name: under which the metastore maps the source's to it.
    """

    id: int
    name: str


class Replay(ReplayNotes):
    """Replayed transactions of a target."""

    def replay_open(self, policy: str, transactions: Iterable[int]) -> dict[int, Replayed]:
        """Opens a transaction for each of a source's that has none; answers them by the source's.

        Raises:
            TransactionGone: what was opened is gone at once, again and again.
        """
        found: dict[int, Replayed] = {}
        left, most = sorted(transactions), _MOST
        for name in _names(policy):
            for some in _near(left, most):
                opened = self._opened(name, some)
                gone = self.ended(opened.values())
                found |= {one: Replayed(this, name) for one, this in opened.items() if this not in gone}
            left, most = [one for one in left if one not in found], 1
            if not left:
                return found
        raise TransactionGone(f"open_txns of {policy} at {self.uri}: transactions are gone as soon as they are open")

    def replay_write_ids(self, name: str, db: str, table: str, write_ids: Mapping[int, int]) -> None:
        """Gives replayed transactions, which are open, their write ids of a table; those that they had belong to nobody then.

        Hive does the same where a query had to wait for another and is compiled again. Without ``reallocate`` it would answer
        the write id that a transaction has. (Were a call repeated whose answer was lost, it would forget all open write ids
        of the table, so that readers would see them.)

        Args:
            name: :attr:`Replayed.name` of all of them.
            db: target database.
            table: target table.
            write_ids: by source transaction, ascending without a gap; greater than all that were given out.

        Raises:
            TransactionGone: the metastore knows one of them no longer, and gave none of the write ids.
        """
        pairs = [TxnToWriteId(txnId=transaction, writeId=one) for transaction, one in write_ids.items()]
        request = AllocateTableWriteIdsRequest(dbName=db, tableName=table, replPolicy=name, srcTxnToWriteIdList=pairs)
        request.reallocate = True
        highest = MaxAllocatedTableWriteIdRequest(dbName=db, tableName=table)
        tries = list[Client]()

        def give(client: Client) -> list[TxnToWriteId]:
            tries.append(client)
            if len(tries) > 1 and client.get_max_allocated_table_write_id(highest).maxWriteId >= max(write_ids.values()):
                return pairs
            return client.allocate_table_write_ids(request).txnToWriteIds

        what = f"allocate_table_write_ids {db}.{table}"
        given = {pair.writeId for pair in self.call(what, give) or []}
        if given != set(write_ids.values()):  # without one of the transactions it does nothing, and answers well
            raise TransactionGone(f"{what} at {self.uri}: write ids {sorted(given)} are given instead of {write_ids}")
        for transaction, one in write_ids.items() if len(tries) == 1 else ():  # else somebody else may have been given them
            self._given.setdefault(transaction, set()).add((db, table, one))

    def replay_commit(self, policy: str, transaction: int, db: str, written: Collection[WriteEvent]) -> None:
        """Commits what stands for a source's transaction; one that is not known was committed already.

        Where somebody else took its write id, it is not known either: so what was written has to be seen then. Nobody did where
        this very object gave it out, which saves a call for each transaction.

        Args:
            policy: whose transaction it is.
            transaction: the source's id of it.
            db: target database.
            written: what it wrote, which the target's compaction and its own notification log go by; the metastore looks for
                the files in the directories of its own tables and partitions.

        Raises:
            TransactionGone: it was aborted on the target, or the write id is another transaction's, which did not commit.
        """
        places = [
            WriteEventInfo(one.write_id, db, one.table, "]".join(one.files), one.partition or None)
            for one in written
            if one.files
        ]

        def commit(name: str) -> None:
            request = CommitTxnRequest(
                txnid=transaction, replPolicy=name, writeEventInfos=places or None, txn_type=TxnType.REPL_CREATED
            )
            self.call(f"commit_txn {transaction} of {name}", lambda client: client.commit_txn(request))

        gone = self._end(policy, transaction, commit)
        given = self._given.pop(transaction, set())
        if lost := self._unseen_of(db, [one for one in written if gone or (db, one.table, one.write_id) not in given]):
            taken = (
                f"write id {lost.write_id} of {db}.{lost.table} at {self.uri} is that of another transaction than the source's"
            )
            raise TransactionGone(
                f"{gone or taken}; so what the source's transaction wrote is missing: repair its tables"
            ) from gone

    def _unseen_of(self, db: str, written: Collection[WriteEvent]) -> WriteEvent | None:
        """One of some writes that a reader does not see; None where he sees them all."""
        tables, left = {one.table for one in written}, list(written)
        for ask in (self._answered, self.write_ids) if written else ():  # the one call may hide what is committed
            shown = ask(db, tables)
            left = [one for one in left if not shown[one.table].sees(one.write_id)]
            if not left:
                return None
        return next(iter(left), None)

    def replay_abort(self, policy: str, transaction: int) -> None:
        """Aborts what stands for a source's transaction; one that is not known was aborted already."""
        self._given.pop(transaction, None)

        def abort(name: str) -> None:
            request = AbortTxnRequest(txnid=transaction, replPolicy=name, txn_type=TxnType.REPL_CREATED)
            self.call(f"abort_txn {transaction} of {name}", lambda client: client.abort_txn(request))

        self._end(policy, transaction, abort)

    def abort_replayed(
        self, policy: str, transactions: Collection[int], check: Callable[[], None], stay: Collection[int] = ()
    ) -> None:
        """Aborts transactions of this metastore that stand for a source's, which nobody is going to end any more.

        Hive takes no end of them by their own ids. Those of a version that did not note the source's stay open.

        Args:
            policy: whose transactions they are.
            transactions: ids on this metastore.
            check: raises if the lock is lost, under which nobody else opens any of them; called before each.
            stay: ids on this metastore of those of the policy that stay open.
        """
        for one in self.sources_of(policy, transactions, check, stay):
            self.replay_abort(policy, one)

    def sources_of(
        self, policy: str, transactions: Collection[int], check: Callable[[], None], stay: Collection[int] = ()
    ) -> Iterator[int]:
        """Those of a source that transactions of this metastore may stand for, by what is noted of them.

        Where some that stay open may stand for some of these, the metastore is asked which one does for which, by opening each.
        What that opened before a kill stands in no ``stay`` of the next try, which ends it.

        Args:
            policy: whose transactions they are; those of other policies are of other names.
            transactions: ids on this metastore.
            check: raises if the lock is lost, under which nobody else opens any of them; called before each.
            stay: ids on this metastore of those of the policy that stay open.
        """
        noted = list(self.notes())
        for kind, first, last in sorted({(kind, first, last) for this, kind, first, last in noted if this in transactions}):
            sources = range(first, min(last, first + SPREAD) + 1)
            near = {this for this, _, low, high in noted if low <= last and first <= high}.intersection(stay)
            if near and len(sources) > 1:
                wanted = {this for this, *note in noted if note == [kind, first, last]}.intersection(transactions)
                name = policy if kind == FOR else policy.partition(".")[2]
                yield from self._standing_for(name, sources, wanted, near, check)
                continue
            for one in sources:
                check()
                yield one

    def _standing_for(
        self, policy: str, sources: Iterable[int], wanted: set[int], stay: set[int], check: Callable[[], None]
    ) -> Iterator[int]:
        """Those of a source for which none of ``stay`` stands; what is opened by asking is to be ended with the wanted."""
        for one in sources:
            check()
            found = self.replay_open(policy, [one])[one].id
            if found not in stay:
                yield one
            wanted.discard(found)
            if not wanted:
                return

    @cached_property
    def _given(self) -> dict[int, set[tuple[str, str, int]]]:
        """Write ids that this object gave out, by source transaction: database, table and the id of each."""
        return {}

    def _end(self, policy: str, transaction: int, end: Callable[[str], None]) -> TransactionGone | None:
        """Ends what stands for a source's transaction, under all names under which it may be open."""
        gone = _ended(policy, end)
        if any(first <= transaction <= last for first, last in self._earlier):
            gone = _ended(policy.partition(".")[2], end) or gone
        return gone

    def impress_write_ids(self, db: str, table: str, write_ids: WriteIds, partitions: Iterable[str]) -> None:
        """Makes a new table's write ids those of its source; nothing where the table has some already.

        Where some were aborted, Hive queues compactions of the partitions, or of the table where none are named.
        """
        request = ReplTblWriteIdStateRequest(
            validWriteIdlist=write_ids.encode(f"{db}.{table}"),
            user=USER,
            hostName=machine(),
            dbName=db,
            tableName=table,
            partNames=list(partitions) or None,
        )
        self.call(f"repl_tbl_writeid_state {db}.{table}", lambda client: client.repl_tbl_writeid_state(request))

    def _opened(self, name: str, transactions: Sequence[int]) -> dict[int, int]:
        if len(transactions) > 1:
            before = self.call("get_open_txns", lambda client: client.get_open_txns().txn_high_water_mark)
            opened = self._open_txns(name, transactions)
            if len(opened) == len(transactions) and min(opened) > before:
                return dict(zip(transactions, opened, strict=True))  # none is from before
        return {one: self._open_txns(name, [one])[0] for one in transactions}

    def _open_txns(self, name: str, transactions: Sequence[int]) -> list[int]:
        """Of several, all are opened or none: of those that are in part the metastore answers that part."""
        request = OpenTxnRequest(
            num_txns=len(transactions),
            user=USER,
            hostname=f"{FOR} {min(transactions)}-{max(transactions)}",
            replPolicy=name,
            replSrcTxnIds=list(transactions),
            txn_type=TxnType.REPL_CREATED,
        )
        return self.call(f"open_txns of {name}", lambda client: client.open_txns(request).txn_ids)


def _near(transactions: Iterable[int], most: int) -> Iterator[list[int]]:
    """Batches of which the noted range is tried whole when they have to be ended."""
    batch: list[int] = []
    for one in transactions:
        if batch and (len(batch) == most or one - batch[0] > SPREAD):
            yield batch
            batch = []
        batch.append(one)
    if batch:
        yield batch


def _names(policy: str) -> Iterator[str]:
    yield policy
    yield from (f"{policy}#{number}" for number in range(2, _NAMES + 1))


def _ended(policy: str, end: Callable[[str], None]) -> TransactionGone | None:
    """Ends a transaction under the first name of which the metastore has not lost it; tells of a name of which it has.

    Raises:
        TransactionGone: it has, of all of them.
    """
    *names, last = _names(policy)
    gone: TransactionGone | None = None
    for name in names:
        try:
            end(name)
        except TransactionGone as error:
            _LOG.info("a replicated transaction has ended already: %s", error)
            gone = error
        else:
            return gone
    end(last)
    return gone


def _know_reallocation() -> None:
    """Adds Hive 4's field to the generated request; the description of the call's arguments holds that of the request."""
    spec = (*AllocateTableWriteIdsRequest.thrift_spec, (6, TType.BOOL, "reallocate", None, None))
    AllocateTableWriteIdsRequest.thrift_spec, AllocateTableWriteIdsRequest.reallocate = spec, None
    allocate_table_write_ids_args.thrift_spec[1][3][1] = spec


_know_reallocation()
