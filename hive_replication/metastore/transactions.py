"""Calls about transactions and write ids (Hive 4 on); those of replayed ones are in ``replay``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from hive_metastore.ttypes import (
    AbortTxnsRequest,
    GetAllWriteEventInfoRequest,
    GetOpenTxnsRequest,
    GetValidWriteIdsRequest,
    MaxAllocatedTableWriteIdRequest,
    ShowLocksRequest,
    TxnType,
    WriteEventInfo,
)

from hive_replication.acid.write_ids import WriteIds
from hive_replication.metastore import tjson
from hive_replication.metastore.calls import Calls
from hive_replication.metastore.tables import batches
from hive_replication.metastore.types import Partition, Table, directory_of

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
    """Transactions and what they wrote."""

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


def _write_event(info: WriteEventInfo) -> WriteEvent:
    files = tuple(dict.fromkeys(filter(None, _NEXT_FILE.split(info.files or ""))))
    thing = tjson.loads(Partition, info.partitionObj) if info.partitionObj else None
    if thing is None and info.tableObj and not info.partition:
        thing = tjson.loads(Table, info.tableObj)
    view = '"MATERIALIZED_VIEW"' in (info.tableObj or "")
    return WriteEvent(info.table.lower(), info.partition or "", info.writeId, files, directory_of(thing), view)
