"""Calls about transactions and write ids (Hive 4 on); those of replayed ones are in ``replicated_transactions``."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

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

from hive_replication.acid.write_ids import Hidden, WriteIds
from hive_replication.metastore import thrift_json as tjson
from hive_replication.metastore.materialized_views import MATERIALIZED_VIEW, is_materialized
from hive_replication.metastore.server import Calls
from hive_replication.metastore.tables import batches
from hive_replication.metastore.types import Partition, Table, directory_of

_ALL = 2**63 - 1  # as high watermark: all transactions that there are
_NEXT_FILE = re.compile(r"\](?=[a-z][a-z0-9+.-]*:/)")
#: Types of transactions that stand for none of a source.
_OWN = (TxnType.DEFAULT, TxnType.READ_ONLY, TxnType.COMPACTION, TxnType.MATER_VIEW_REBUILD, TxnType.SOFT_DELETE)


@dataclass(frozen=True, slots=True)
class WriteEvent:
    """What a transaction wrote to one table or partition.

    Args:
        table: lower-case name.
        partition: partition name, "" for the table itself.
        write_id: the transaction's write id of the table.
        files: as event messages have them: ``uri#checksum#cmroot#subdirectory``.
        location: directory of the table or partition at that time, "" if unknown.
        view: whether it is a materialized view.
        problem: why it is not known what was written, or "".
        database: lower-case name.
    """

    table: str
    partition: str
    write_id: int
    files: tuple[str, ...] = ()
    location: str = ""
    view: bool = False
    problem: str = ""
    database: str = ""


class Transactions(Calls):
    """Transactions and what they wrote."""

    def write_ids(self, db: str, tables: Iterable[str]) -> dict[str, WriteIds]:
        """What a reader who began now would see of each table, were nothing hidden from him that is committed.

        Hive 4 does hide writes for a while. It takes the greatest write id in TXN_TO_WRITE_ID for the greatest given out, and its
        housekeeper removes those of ended transactions older than all that are open. A transaction may have got a write id
        after a younger one did: its own goes, the younger one's smaller one stays. So the greatest is asked for as well.
        """
        names = list(tables)
        highest = {name: self.max_write_id(db, name) for name in names}  # first: no younger one can be taken for hidden
        found = self._answered(db, names)
        cut = {name: highest[name] for name, seen in found.items() if seen.high < highest[name]}
        # Where no committed one is left there, Hive answers the lowest that is open or aborted, instead of the greatest.
        unknown = [name for name in cut if frozenset({found[name].high}) == found[name].open | found[name].aborted]
        unseen = self._unseen(db, unknown) if unknown else {}
        return found | {name: replace(unseen.get(name, found[name]), high=high) for name, high in cut.items()}

    def _answered(self, db: str, tables: Iterable[str], transactions: str | None = None) -> dict[str, WriteIds]:
        """What the metastore says that a reader sees; ``transactions`` replaces the state of transactions."""
        found: dict[str, WriteIds] = {}
        for names in batches(tables, self._batch):
            request = GetValidWriteIdsRequest([f"{db}.{name}" for name in names], transactions)
            answer = self.call(f"get_valid_write_ids {db}", lambda client, r=request: client.get_valid_write_ids(r))
            found |= {
                one.fullTableName.partition(".")[2]: WriteIds.of(
                    one.writeIdHighWaterMark, one.invalidWriteIds or [], one.abortedBits or b""
                )
                for one in answer.tblValidWriteIds
            }
        return found

    def _unseen(self, db: str, tables: Sequence[str]) -> dict[str, WriteIds]:
        """Write ids of tables that are open or aborted, by asking for one transaction after another."""
        found = dict.fromkeys(tables, WriteIds())
        unfinished = self._unfinished()
        for transaction in sorted(unfinished.open | unfinished.aborted):
            for name, seen in self._answered(db, tables, _alone(transaction)).items():
                kind = "open" if transaction in unfinished.open else "aborted"
                found[name] = replace(found[name], **{kind: getattr(found[name], kind) | seen.open})
        return found

    def max_write_id(self, db: str, table: str) -> int:
        """Greatest write id of a table that was given out; 0 where none was."""
        request = MaxAllocatedTableWriteIdRequest(dbName=db, tableName=table)
        what = f"get_max_allocated_table_write_id {db}.{table}"
        return self.call(what, lambda client: client.get_max_allocated_table_write_id(request).maxWriteId)

    def write_events(self, transaction: int, db: str = "*") -> list[WriteEvent]:
        """What a transaction wrote to tables of a database, or of all, as long as the notification log lasts."""
        request = GetAllWriteEventInfoRequest(txnId=transaction, dbName=db)
        what = f"get_all_write_event_info {transaction}"
        found = self.call(what, lambda client: client.get_all_write_event_info(request)) or []
        return [write for write in map(_write_event, found) if write is not None]

    def unfinished_transactions(self) -> frozenset[int]:
        """Transactions that are open or aborted, those that only read left out."""
        found = self._unfinished()
        return found.open | found.aborted

    def open_transactions(self) -> frozenset[int]:
        """Transactions that are open, those that only read left out."""
        return self._unfinished().open

    def transactions_now(self) -> WriteIds:
        """All transactions that are open or aborted, and the greatest that there is."""
        return self._unfinished(())

    def open_replayed(self) -> frozenset[int]:
        """Transactions that are open and stand for those of a source."""
        return self._unfinished(_OWN).open

    def hidden_transactions(self) -> Hidden:
        """Transactions whose compactions a reader who began now would not see."""
        found = self._unfinished()
        return Hidden(found.high, found.open | found.aborted)

    def _unfinished(self, without: Sequence[int] = (TxnType.READ_ONLY,)) -> WriteIds:
        """Transactions that are open or aborted, but for some types, and the greatest that there is."""
        request = GetOpenTxnsRequest(excludeTxnTypes=list(without))
        answer = self.call("get_open_txns", lambda client: client.get_open_txns_req(request))
        return WriteIds.of(answer.txn_high_water_mark, answer.open_txns, answer.abortedBits or b"")

    def writers(self, db: str, tables: Iterable[str]) -> frozenset[int]:
        """Open transactions that have a write id of any of these tables, and hold or want a lock of one.

        The lock alone does not tell: Hive takes the same one to read a table and to insert into it.
        """
        names = frozenset(tables)
        request = ShowLocksRequest(dbname=db)
        locks = self.call(f"show_locks {db}", lambda client: client.show_locks(request).locks) or []
        locking = {one.txnid for one in locks if one.txnid and (one.tablename or "").lower() in names}
        return frozenset(one for one in locking & self.unfinished_transactions() if any(self.write_ids_of(one, db, names)))

    def write_ids_of(self, transaction: int, db: str, tables: Iterable[str]) -> Iterator[tuple[str, int]]:
        """The write ids that a transaction has of some tables: those that are hidden if it alone is taken for open."""
        for name, seen in self._answered(db, tables, _alone(transaction)).items():
            yield from ((name, write_id) for write_id in sorted(seen.open))

    def open_writes(self, db: str, tables: Iterable[str]) -> frozenset[tuple[str, int]]:
        """Open write ids of tables; of a table whose committed ones the metastore has removed, it may tell the lowest alone."""
        return frozenset((name, write_id) for name, seen in self._answered(db, tables).items() for write_id in seen.open)

    def abort(self, transactions: Iterable[int]) -> None:
        """Aborts transactions; those that ended meanwhile stay as they are."""
        request = AbortTxnsRequest(txn_ids=sorted(transactions))
        self.call(f"abort_txns {request.txn_ids}", lambda client: client.abort_txns(request))


def _alone(transaction: int) -> str:
    """The state of all transactions where one alone is open (Hive's ``ValidReadTxnList``)."""
    return f"{_ALL}:{transaction}:{transaction}:"


def _write_event(info: WriteEventInfo) -> WriteEvent | None:
    """What was written; None where it was to a table of another catalog, which the request cannot leave out."""
    files = tuple(dict.fromkeys(filter(None, _NEXT_FILE.split(info.files or ""))))
    database = info.database.lower()
    try:
        thing = tjson.loads(Partition, info.partitionObj) if info.partitionObj else None
        # Of a commit with many partitions each write has the table's text, too.
        text = info.tableObj or ""
        table = tjson.loads(Table, text) if text and (not info.partition or MATERIALIZED_VIEW in text) else None
        if any(one is not None and one.sd is None for one in (thing, table)):  # pyright: ignore[reportUnnecessaryComparison]
            raise ValueError("what was written has no storage descriptor")  # noqa: TRY301
    except ValueError as error:
        return WriteEvent(info.table.lower(), info.partition or "", info.writeId, problem=str(error), database=database)
    thing = thing or (None if info.partition else table)
    if thing is not None and (thing.catName or "hive").lower() != "hive":
        return None
    view, location = table is not None and is_materialized(table), directory_of(thing)
    return WriteEvent(info.table.lower(), info.partition or "", info.writeId, files, location, view, database=database)
