"""Events of transactions.

The log's message of a commit does not say what was written: the dump reads it from the metastore, and keeps it beside the event.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from hive_replication.events import event_records as r
from hive_replication.events.unpack import fields, text_of, texts_of, whole

Message = Mapping[str, Any]
Head = tuple[int, int, str, str, str]

#: Event types of no database, which Hive gives to every policy.
TYPES = frozenset({"OPEN_TXN", "COMMIT_TXN", "ABORT_TXN"})
#: Those of them that end a transaction.
ENDS = frozenset({"COMMIT_TXN", "ABORT_TXN"})


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
        databases: databases that it wrote to; None if the message has none (before Hive 4.1). Where the transaction stands for
            one of another source they are wrong: Hive looks for those of its own transaction of that number.
    """

    transaction: int
    tables: tuple[str, ...] = ()
    databases: frozenset[str] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The tables, or a name that no table can have."""
        return self.tables or (r.function_name(f"transaction {self.transaction}"),)

    def concerns(self, database: str) -> bool:
        """Whether the transaction may have written to a database."""
        return self.databases is None or database in self.databases


@dataclass(frozen=True, slots=True)
class TransactionWrite:
    """What a transaction wrote to a table, or to one partition of it.

    Args:
        table: lower-case name.
        partition: partition name, "" for the table itself.
        write_id: the transaction's write id of the table.
        truncates: whether it replaced the content by nothing: a base without files.
    """

    table: str
    partition: str
    write_id: int
    truncates: bool = False


@dataclass(frozen=True, slots=True)
class CommitTransaction(TransactionEvent):
    """COMMIT_TXN, with what the transaction wrote to this database as far as it is known (:func:`with_writes`)."""

    writes: tuple[TransactionWrite, ...] = ()


@dataclass(frozen=True, slots=True)
class AbortTransaction(TransactionEvent):
    """ABORT_TXN."""


@dataclass(frozen=True, slots=True)
class Compaction(r.Event):
    """COMMIT_COMPACTION_EVENT: the end of a compaction; ``kind`` is Hive's name of what it did."""

    kind: str

    @property
    def rebalances(self) -> bool:
        """Whether rows got other ids, in other buckets."""
        return self.kind == "REBALANCE"


def with_writes(event: CommitTransaction, writes: Iterable[TransactionWrite]) -> CommitTransaction:
    """The commit with what the transaction wrote to the database of a dump."""
    written = tuple(writes)
    return replace(event, writes=written, tables=tuple(sorted({one.table for one in written})))


def opened_by(message: str) -> range:
    """Ids of the transactions that OPEN_TXN opens, by its message; none of one that cannot be read."""
    try:
        found = fields(message)
        return range(whole(found["fromTxnId"]), whole(found["toTxnId"]) + 1)
    except (ValueError, KeyError, TypeError):
        return range(0)


def _allocate(head: Head, message: Message) -> r.Event:
    pairs = zip(map(whole, message["txnIdList"]), map(whole, message["writeIdList"]), strict=True)
    return AllocateWriteIds(*head, write_ids=tuple(sorted(pairs, key=lambda pair: pair[1])))


def _commit(head: Head, message: Message) -> r.Event:
    return CommitTransaction(*head, transaction=whole(message["txnid"]), databases=_databases(message, "databases"))


def _abort(head: Head, message: Message) -> r.Event:
    return AbortTransaction(*head, transaction=whole(message["txnid"]), databases=_databases(message, "dbsUpdated"))


def _compaction(head: Head, message: Message) -> r.Event:
    return Compaction(*head, kind=text_of(message.get("type")).upper())


def _databases(message: Message, key: str) -> frozenset[str] | None:
    return frozenset(name.lower() for name in texts_of(message[key])) if message.get(key) is not None else None


DECODERS: Mapping[str, Callable[[Head, Message], r.Event]] = {
    "ALLOC_WRITE_ID_EVENT": _allocate,
    "COMMIT_TXN": _commit,
    "ABORT_TXN": _abort,
    "COMMIT_COMPACTION_EVENT": _compaction,
}
