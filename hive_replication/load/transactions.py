"""Operations on transactions and write ids of the target.

The target's metastore itself knows what was done, whatever crash came between: write ids are given out in the source's order, so
one that is not above the greatest was given out already, and a replayed transaction is forgotten in the call that ends it. Data
lies in directories named after write ids, which nobody reads before the transaction is committed: it goes straight to its place.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from hive_replication.acid.directories import base_name
from hive_replication.acid.write_ids import WriteIds
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.events.files import FileRef
from hive_replication.load.mapping import NameMapping
from hive_replication.load.operations import (
    AddPartitions,
    Content,
    CreateTable,
    CustomOperation,
    DropTable,
    Operation,
    RenamePartition,
    RenameTable,
    object_name,
)
from hive_replication.load.target import Target
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.transactions import WriteEvent
from hive_replication.metastore.types import directory_of

_LONGEST = 250  # characters of REPL_TXN_MAP.RTM_REPL_POLICY, which has 256, without what a further name adds
_SHOWN = 1  # the one transaction of a snapshot_policy
#: What Hive's TRUNCATE writes into the base that it leaves (AcidUtils.MetaDataFile).
_TRUNCATED = b'{"thisFileVersion":"0","dataFormat":"truncated"}'


def replay_policy(mapping: NameMapping) -> str:
    """Under which name the target's metastore keeps the transactions of a replica."""
    return _fitting(f"{mapping.source}>{mapping.target_database}")


def snapshot_policy(mapping: NameMapping, table: str) -> str:
    """Under which name the target's metastore keeps the one transaction by which a new table of a replica is shown."""
    return _fitting(f"{replay_policy(mapping)}/{table}")


def why_unable(metastore: Metastore) -> str:
    """Why a target cannot hold transactional tables, or "".

    What ``hive.txn.manager`` its readers use, the metastore does not know.
    """
    version = metastore.features
    if version.major < 4:
        why = f"is of Hive {version.version}, and transactional tables need Hive 4 there"
    else:
        try:
            metastore.unfinished_transactions()
            return ""
        except Unreachable:
            raise
        except ReplicationError as error:
            why = f"keeps no transactions (make its tables with schematool -initSchema): {error}"
    return f"the target's metastore {metastore.uri} {why}: leave them out with acid: {{replicate: false}} in the policy"


@dataclass(frozen=True, slots=True)
class AllocateWriteIds(CustomOperation):
    """Opens what stands for a source's transactions and gives them the source's write ids of a table.

    Args:
        policy: whose transactions they are (:func:`replay_policy`).
        write_ids: by source transaction, ascending.
    """

    policy: str
    write_ids: tuple[tuple[int, int], ...]

    def carry_out(self, target: Target, database: str) -> None:
        """Gives out those that are not given out yet."""
        allocate(target, database, self.table, self.policy, self.write_ids)


def key_of(table: str, partition: str) -> str:
    """What stands for a source table or partition among the contents of a commit."""
    return f"{table}/{partition}" if partition else table


def object_of(operation: Operation, key: str, table: str) -> tuple[str, str]:
    """Source table and partition of one of an operation's contents; ``table`` is the table of its event."""
    if not isinstance(operation, CommitTransaction):
        return table, key
    name, _, partition = key.partition("/")
    return name, partition


@dataclass(frozen=True, slots=True)
class Written:
    """What a transaction wrote to a table or partition ("" for the table itself) of the target.

    Args:
        source: source table name.
        table: target table name.
        partition: partition name, "" for the table itself.
        write_id: of the table.
        content: its files.
        emptied: whether it replaced the content by nothing.
        given: whether the lane gives the write id out before.
    """

    source: str
    table: str
    partition: str
    write_id: int
    content: Content
    emptied: bool = False
    given: bool = False

    @property
    def key(self) -> str:
        """Stands for the object among the contents of the commit."""
        return key_of(self.source, self.partition)


@dataclass(frozen=True, slots=True)
class CommitTransaction(CustomOperation):
    """Commits what stands for a source's transaction, after its files are in place.

    Args:
        policy: whose transaction it is.
        transaction: the source's id of it.
        written: what it wrote to objects that the target has.
    """

    policy: str
    transaction: int
    written: tuple[Written, ...]

    @property
    def contents(self) -> Iterator[tuple[str, Content]]:
        """The files of each object, by :attr:`Written.key`."""
        return ((one.key, one.content) for one in self.written)

    def given(self, write_ids: Mapping[str, Mapping[int, int]]) -> CommitTransaction:
        """The same after an operation that gives out write ids, by target table and source transaction."""
        told = (one.write_id == write_ids.get(one.table, {}).get(self.transaction) for one in self.written)
        return replace(self, written=tuple(replace(one, given=given) for one, given in zip(self.written, told, strict=True)))

    def carry_out(self, target: Target, database: str) -> None:
        """Commits it; write ids of which the load did not know in time are given out first."""
        for one in self.written:
            if not one.given:
                allocate(target, database, one.table, self.policy, ((self.transaction, one.write_id),))
            if one.emptied:
                leave_base(target, database, one.table, one.partition, one.write_id)
        target.metastore.replay_commit(self.policy, self.transaction, database, [_told(one) for one in self.written])


def _told(written: Written) -> WriteEvent:
    """What the target's metastore is told of a write; files by their names there, it finds the rest itself."""
    files = tuple(FileRef(file.uri, "", "", file.subdir).encode() for file in written.content.files if file.subdir)
    return WriteEvent(written.table, written.partition, written.write_id, files)


@dataclass(frozen=True, slots=True)
class AbortTransaction(CustomOperation):
    """Aborts what stands for a source's transaction."""

    policy: str
    transaction: int

    def carry_out(self, target: Target, database: str) -> None:  # noqa: ARG002 - transactions are of no database
        """Aborts it; its write ids stay taken."""
        target.metastore.replay_abort(self.policy, self.transaction)


@dataclass(frozen=True, slots=True)
class TruncateTransactional(CustomOperation):
    """Leaves an empty base in a table or in partitions of it, which hides what was written before once it is committed."""

    partitions: tuple[str, ...]
    write_id: int

    def carry_out(self, target: Target, database: str) -> None:
        """Leaves them."""
        for partition in self.partitions:
            leave_base(target, database, self.table, partition, self.write_id)


@dataclass(frozen=True, slots=True)
class ImpressWriteIds(CustomOperation):
    """Makes the write ids of a new table those of its source, aborted ones included, which shows its data.

    Of a table with aborted write ids Hive shows no write after the greatest of them, unless a transaction wrote it. So the last
    write, where it was not aborted, is shown by a transaction: until its commit readers see all but what that wrote.

    Args:
        policy: whose transaction that is (:func:`snapshot_policy`).
        write_ids: the source's.
    """

    policy: str
    write_ids: WriteIds

    def carry_out(self, target: Target, database: str) -> None:
        """Makes them so; nothing where that is done."""
        metastore, table, last = target.metastore, self.table, self.write_ids.high
        shown = replace(self.write_ids, open=frozenset())
        by_transaction = bool(shown.aborted) and last not in shown.aborted
        partitions = metastore.partition_names(database, table) if shown.aborted else []
        metastore.impress_write_ids(database, table, replace(shown, high=last - 1) if by_transaction else shown, partitions)
        if by_transaction:
            allocate(target, database, table, self.policy, ((_SHOWN, last),))
            metastore.replay_commit(self.policy, _SHOWN, database, ())


def allocate(target: Target, database: str, table: str, policy: str, write_ids: tuple[tuple[int, int], ...]) -> None:
    """Gives out write ids that are not given out yet, each with its transaction.

    Raises:
        ReplicationError: some before them never were, so that the table's data is not the source's.
    """
    highest = target.metastore.max_write_id(database, table)
    for transaction, write_id in write_ids:
        if write_id <= highest:
            continue
        require_next(database, table, highest, write_id)
        opened = target.metastore.replay_open(policy, [transaction])
        target.metastore.replay_write_ids(opened[transaction].name, database, table, {transaction: write_id})
        highest = write_id


def _fitting(name: str) -> str:
    return name if len(name) <= _LONGEST else hashlib.sha256(name.encode()).hexdigest()


def require_next(database: str, table: str, highest: int, write_id: int) -> None:
    """Makes sure that the target was given all write ids of a table up to one.

    Raises:
        ReplicationError: some before it never were given out, so that the table's data is not the source's.
    """
    if highest and write_id > highest + 1:
        shown = object_name(database, table)
        raise ReplicationError(f"the target's {shown} has write ids up to {highest}, the source {write_id}: repair it")


def made_in_lane(operations: Sequence[Operation], directories: Mapping[tuple[int, str], str], table: str, partition: str) -> str:
    """Where a table or partition will lie that operations make; "" where they do not make it (pure).

    Args:
        operations: those before, in order.
        directories: where their contents go, by number of the operation and partition name.
        table: its name after them.
        partition: its name after them, "" for the table itself.
    """
    for number, one in reversed(list(enumerate(operations))):
        match one:
            case RenameTable() if one.image.tableName == table:
                table = one.table
            case RenamePartition() if (one.table, one.new) == (table, partition):
                partition = one.old
            case CreateTable() if one.table == table:
                return directories.get((number, ""), "") if not partition else ""
            case AddPartitions() if one.table == table and (number, partition) in directories:
                return directories[number, partition]
            case DropTable() if one.table == table:
                return ""
            case _:
                pass
    return ""


def written_to(operations: Iterable[Operation], table: str, partition: str | None = None) -> dict[str, FileRef]:
    """Files that commits add to a new table's directory, or to a new partition's, by their paths in it (pure).

    Args:
        operations: in order.
        table: name of the table before them.
        partition: name of the partition before them, None for the table with all of its partitions.
    """
    found: dict[str, FileRef] = {}
    for one in operations:
        match one:
            case RenameTable() if one.table == table:
                table = one.image.tableName
            case RenamePartition() if (one.table, one.old) == (table, partition):
                partition = one.new
            case CommitTransaction():
                for write in one.written:
                    if write.table == table and partition in (None, write.partition):
                        below = f"{write.partition}/" if partition is None and write.partition else ""
                        found |= {f"{below}{file.relative}": file for file in write.content.files}
            case _:
                pass
    return found


def leave_base(target: Target, database: str, table: str, partition: str, write_id: int) -> None:
    """Writes an empty base for a write id, as TRUNCATE does; nothing in an object that went away."""
    metastore = target.metastore
    thing = next(metastore.partitions(database, table, [partition]), None) if partition else metastore.table(database, table)
    if thing is not None:
        target.storage.write(f"{directory_of(thing)}/{base_name(write_id)}/_metadata_acid", _TRUNCATED)
