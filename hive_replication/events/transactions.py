"""Events of transactions.

The log's message of a commit does not say what was written: a dump adds it (:func:`claimed`), as Hive's own dumps have it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hive_replication.events import records as r

Message = Mapping[str, Any]
Head = tuple[int, int, str, str, str]

#: Event types of no database, which Hive gives to every policy.
TYPES = frozenset({"OPEN_TXN", "COMMIT_TXN", "ABORT_TXN"})
_WRITES = "writes"


@dataclass(frozen=True, slots=True)
class AllocateWriteIds(r.Event):
    """ALLOC_WRITE_ID_EVENT: transactions are about to write to a table.

    Args:
        write_ids: by transaction, ascending.
        others: other tables of this database that they write to, as far as they are known.
    """

    write_ids: tuple[tuple[int, int], ...]
    others: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The table first."""
        return (self.table, *self.others)


@dataclass(frozen=True, slots=True)
class TransactionEvent(r.Event):
    """The end of a transaction.

    Args:
        transaction: the source's id of it.
        tables: names of the tables of this database that it wrote to, as far as they are known.
    """

    transaction: int
    tables: tuple[str, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The tables, or a name that no table can have."""
        return self.tables or (r.function_name(f"transaction {self.transaction}"),)


@dataclass(frozen=True, slots=True)
class TransactionWrite:
    """What a transaction wrote to a table, or to one partition of it.

    Args:
        table: lower-case name.
        partition: partition name, "" for the table itself.
        write_id: the transaction's write id of the table.
        emptied: whether it replaced the content by nothing: a base without files.
    """

    table: str
    partition: str
    write_id: int
    emptied: bool = False


@dataclass(frozen=True, slots=True)
class CommitTransaction(TransactionEvent):
    """COMMIT_TXN, with what the transaction wrote to this database."""

    writes: tuple[TransactionWrite, ...]


@dataclass(frozen=True, slots=True)
class AbortTransaction(TransactionEvent):
    """ABORT_TXN."""


def concerns(row: r.Notification, database: str) -> bool:
    """Whether a transaction that ends may have written to a database.

    The messages of Hive 4.1 on name the databases; those of 4.0 do not, and are taken for any database's.
    """
    if row.type == "OPEN_TXN":
        return False
    message = json.loads(row.message)
    names = message.get("databases" if row.type == "COMMIT_TXN" else "dbsUpdated")
    return names is None or database in {str(name).lower() for name in names}


def transaction_of(row: r.Notification) -> int:
    """The source's id of the transaction that an event ends."""
    return int(json.loads(row.message)["txnid"])


def claimed(row: r.Notification, database: str, writes: Iterable[TransactionWrite] = ()) -> r.Notification:
    """The event as one of a database, with what the transaction wrote to it."""
    written = [[one.table, one.partition, one.write_id, one.emptied] for one in writes]
    return replace(row, database=database, message=json.dumps(json.loads(row.message) | {_WRITES: written}))


def _allocate(head: Head, message: Message) -> r.Event:
    pairs = zip(message["txnIdList"], message["writeIdList"], strict=True)
    return AllocateWriteIds(*head, write_ids=tuple(sorted(pairs, key=lambda pair: pair[1])))


def _commit(head: Head, message: Message) -> r.Event:
    writes = tuple(TransactionWrite(*one) for one in message.get(_WRITES, ()))
    tables = tuple(sorted({one.table for one in writes}))
    return CommitTransaction(*head, transaction=int(message["txnid"]), tables=tables, writes=writes)


def _abort(head: Head, message: Message) -> r.Event:
    return AbortTransaction(*head, transaction=int(message["txnid"]), tables=())


DECODERS: Mapping[str, Callable[[Head, Message], r.Event]] = {
    "ALLOC_WRITE_ID_EVENT": _allocate,
    "COMMIT_TXN": _commit,
    "ABORT_TXN": _abort,
}
