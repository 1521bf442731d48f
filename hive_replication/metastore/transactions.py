"""Calls about transactions and write ids (Hive 4 on).

Of transactions that replication replays the metastore keeps a map, by policy: for a source transaction it opens one of its own,
at most once, gives it the source's write ids, and forgets it with its end. Ending one that it does not know does nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hive_metastore.ttypes import (
    AbortTxnRequest,
    AbortTxnsRequest,
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    GetAllWriteEventInfoRequest,
    GetOpenTxnsRequest,
    GetValidWriteIdsRequest,
    MaxAllocatedTableWriteIdRequest,
    OpenTxnRequest,
    ReplTblWriteIdStateRequest,
    ShowLocksRequest,
    TxnToWriteId,
    TxnType,
    WriteEventInfo,
)

from hive_replication.acid.write_ids import WriteIds
from hive_replication.metastore import tjson
from hive_replication.metastore.calls import Calls
from hive_replication.metastore.tables import batches
from hive_replication.metastore.types import Partition, Table, directory_of
from hive_replication.process import machine

_USER = "hive-replication"
_NEXT_FILE = re.compile(r"\](?=[a-z][a-z0-9+.-]*:/)")


@dataclass(frozen=True, slots=True)
class WriteEvent:
    """What a transaction wrote to one table or partition.

    Args:
        table: lower-case name.
        partition: partition name, "" for the table itself.
        write_id: the transaction's write id of the table.
        files: as event messages have them: ``uri#checksum#cmroot#subdirectory``.
        location: directory of the table or partition at that time, "" where it is not told.
        view: whether it is a materialized view.
    """

    table: str
    partition: str
    write_id: int
    files: tuple[str, ...] = ()
    location: str = ""
    view: bool = False


class Transactions(Calls):
    """Transactions of a source, and replayed ones of a target."""

    def write_ids(self, db: str, tables: Iterable[str]) -> dict[str, WriteIds]:
        """What a reader who began now would see of each table."""
        found: dict[str, WriteIds] = {}
        for names in batches(tables, self._batch):
            request = GetValidWriteIdsRequest(fullTableNames=[f"{db}.{name}" for name in names])
            answer = self.call(f"get_valid_write_ids {db}", lambda client, r=request: client.get_valid_write_ids(r))
            found |= {
                one.fullTableName.partition(".")[2]: WriteIds.of(
                    one.writeIdHighWaterMark, one.invalidWriteIds or [], one.abortedBits or b""
                )
                for one in answer.tblValidWriteIds
            }
        return found

    def max_write_id(self, db: str, table: str) -> int:
        """Greatest write id of a table that was given out; 0 where none was."""
        request = MaxAllocatedTableWriteIdRequest(dbName=db, tableName=table)
        what = f"get_max_allocated_table_write_id {db}.{table}"
        return self.call(what, lambda client: client.get_max_allocated_table_write_id(request).maxWriteId)

    def write_events(self, transaction: int, db: str) -> list[WriteEvent]:
        """What a transaction wrote to tables of a database, as long as the notification log lasts."""
        request = GetAllWriteEventInfoRequest(txnId=transaction, dbName=db)
        what = f"get_all_write_event_info {transaction}"
        found = self.call(what, lambda client: client.get_all_write_event_info(request)) or []
        return [_write_event(one) for one in found]

    def unfinished_transactions(self) -> frozenset[int]:
        """Transactions that are open or aborted, those that only read left out."""
        request = GetOpenTxnsRequest(excludeTxnTypes=[TxnType.READ_ONLY])
        return frozenset(self.call("get_open_txns", lambda client: client.get_open_txns_req(request).open_txns))

    def writers(self, db: str) -> frozenset[int]:
        """Open transactions that hold or want locks in a database, those that only read left out."""
        request = ShowLocksRequest(dbname=db)
        locks = self.call(f"show_locks {db}", lambda client: client.show_locks(request).locks) or []
        return frozenset(one.txnid for one in locks if one.txnid) & self.unfinished_transactions()

    def abort(self, transactions: Iterable[int]) -> None:
        """Aborts transactions; those that ended meanwhile stay as they are."""
        request = AbortTxnsRequest(txn_ids=sorted(transactions))
        self.call(f"abort_txns {request.txn_ids}", lambda client: client.abort_txns(request))

    def replay_open(self, policy: str, transactions: Sequence[int]) -> list[int]:
        """Opens a transaction for each of a source's, unless that is done for all of them; answers their ids.

        Of several, all are done or none: of those that are in part the metastore answers that part.
        """
        request = OpenTxnRequest(
            num_txns=len(transactions),
            user=_USER,
            hostname=machine(),
            replPolicy=policy,
            replSrcTxnIds=list(transactions),
            txn_type=TxnType.REPL_CREATED,
        )
        return self.call(f"open_txns of {policy}", lambda client: client.open_txns(request).txn_ids)

    def replay_open_all(self, policy: str, transactions: Sequence[int]) -> dict[int, int]:
        """Opens a transaction for each of a source's that has none; answers the target's ids by the source's."""
        before = self.call("get_open_txns", lambda client: client.get_open_txns().txn_high_water_mark)
        opened = self.replay_open(policy, transactions)
        if len(opened) == len(transactions) and min(opened) > before:
            return dict(zip(transactions, opened, strict=True))
        return {one: self.replay_open(policy, [one])[0] for one in transactions}  # some are from before

    def replay_write_ids(self, policy: str, db: str, table: str, write_ids: Mapping[int, int]) -> None:
        """Gives replayed transactions, which are open, their write ids of a table.

        Args:
            policy: whose transactions they are.
            db: target database.
            table: target table.
            write_ids: by source transaction, ascending without a gap.
        """
        pairs = [TxnToWriteId(txnId=transaction, writeId=one) for transaction, one in write_ids.items()]
        request = AllocateTableWriteIdsRequest(dbName=db, tableName=table, replPolicy=policy, srcTxnToWriteIdList=pairs)
        self.call(f"allocate_table_write_ids {db}.{table}", lambda client: client.allocate_table_write_ids(request))

    def replay_commit(self, policy: str, transaction: int, db: str, written: Iterable[WriteEvent]) -> None:
        """Commits what stands for a source's transaction; one that is not known was committed already.

        Args:
            policy: whose transaction it is.
            transaction: the source's id of it.
            db: target database.
            written: what it wrote, which the target's compaction and its own notification log go by; the metastore looks for
                the files in the directories of its own tables and partitions.
        """
        places = [
            WriteEventInfo(one.write_id, db, one.table, "]".join(one.files), one.partition or None)
            for one in written
            if one.files
        ]
        request = CommitTxnRequest(
            txnid=transaction, replPolicy=policy, writeEventInfos=places or None, txn_type=TxnType.REPL_CREATED
        )
        self.call(f"commit_txn {transaction} of {policy}", lambda client: client.commit_txn(request))

    def replay_abort(self, policy: str, transaction: int) -> None:
        """Aborts what stands for a source's transaction; one that is not known was aborted already."""
        request = AbortTxnRequest(txnid=transaction, replPolicy=policy, txn_type=TxnType.REPL_CREATED)
        self.call(f"abort_txn {transaction} of {policy}", lambda client: client.abort_txn(request))

    def impress_write_ids(self, db: str, table: str, write_ids: WriteIds, partitions: Iterable[str]) -> None:
        """Makes a new table's write ids those of its source; nothing where the table has some already.

        Where some were aborted, Hive queues compactions of the partitions, or of the table where none are named.
        """
        request = ReplTblWriteIdStateRequest(
            validWriteIdlist=write_ids.encode(f"{db}.{table}"),
            user=_USER,
            hostName=machine(),
            dbName=db,
            tableName=table,
            partNames=list(partitions) or None,
        )
        self.call(f"repl_tbl_writeid_state {db}.{table}", lambda client: client.repl_tbl_writeid_state(request))


def _write_event(info: WriteEventInfo) -> WriteEvent:
    files = tuple(dict.fromkeys(filter(None, _NEXT_FILE.split(info.files or ""))))
    thing = tjson.loads(Partition, info.partitionObj) if info.partitionObj else None
    if thing is None and info.tableObj and not info.partition:
        thing = tjson.loads(Table, info.tableObj)
    view = '"MATERIALIZED_VIEW"' in (info.tableObj or "")
    return WriteEvent(info.table.lower(), info.partition or "", info.writeId, files, directory_of(thing), view)
