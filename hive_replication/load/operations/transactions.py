"""Operations on transactions and write ids of the target.

The target's metastore itself knows what was done, whatever crash came between: write ids are given out in the source's order, so
one that is not above the greatest was given out already, and a replayed transaction is forgotten in the call that ends it. Data
goes straight to directories named after write ids, which nobody reads before the commit; a base, which Hive may read, is staged
(:mod:`~hive_replication.load.operations.bases`; limits in docs/acid.md).
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Set
from dataclasses import dataclass, replace

from hive_replication.acid.directories import base_name
from hive_replication.acid.write_ids import WriteIds
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.events.name_changes import ObjectName
from hive_replication.load.operations.base import Content, CustomOperation, Operation
from hive_replication.load.operations.bases import base_files, leave_base, left_bases, show_bases, told
from hive_replication.load.replica.name_mapping import NameMapping, object_name
from hive_replication.load.replica.target import Target
from hive_replication.load.replica.target_boundary import boundary_of
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.replay_notes import snapshot_id
from hive_replication.metastore.transactions import WriteEvent

_LONGEST = 250  # characters of REPL_TXN_MAP.RTM_REPL_POLICY, which has 256, without what a further name adds


def replay_policy(mapping: NameMapping) -> str:
    """Under which name the target's metastore keeps the transactions of a replica."""
    return policy_of(mapping.source, mapping.target_database)


def policy_of(source: str, database: str) -> str:
    """The same, by the source's identity and the target database's name."""
    return _fitting(database, f"{source}>{database}")


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
class AllocateTargetWriteIds(CustomOperation):
    """Opens what stands for a source's transactions and gives them the source's write ids of a table.

    Args:
        policy: whose transactions they are (:func:`replay_policy`).
        write_ids: by source transaction, ascending.
    """

    kind = "AllocateWriteIds"
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
    if not isinstance(operation, ReplayCommit):
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
        truncates: whether it replaced the content by nothing.
        write_id_allocated: whether an earlier operation of the lane allocates the write id.
    """

    source: str
    table: str
    partition: str
    write_id: int
    content: Content
    truncates: bool = False
    write_id_allocated: bool = False

    @property
    def key(self) -> str:
        """Stands for the object among the contents of the commit."""
        return key_of(self.source, self.partition)

    @property
    def empties(self) -> bool:
        """Whether it leaves nothing: no statement after its TRUNCATE overwrote that."""
        return self.truncates and not self.overwrites

    @property
    def overwrites(self) -> bool:
        """Whether it replaced the content by files."""
        base = base_name(self.write_id)
        return any(file.subdir.partition("/")[0] == base for file in self.content.files)


@dataclass(frozen=True, slots=True)
class ReplayCommit(CustomOperation):
    """Commits what stands for a source's transaction, after its files are in place.

    Args:
        policy: whose transaction it is.
        transaction: the source's id of it.
        written: what it wrote to objects that the target has.
    """

    kind = "CommitTransaction"
    policy: str
    transaction: int
    written: tuple[Written, ...]

    @property
    def contents(self) -> Iterator[tuple[str, Content]]:
        """The files of each object, by :attr:`Written.key`."""
        return ((one.key, one.content) for one in self.written)

    @property
    def changes_data_of(self) -> tuple[ObjectName, ...]:
        """The objects that were written to."""
        return tuple((one.table, one.partition) for one in self.written)

    def with_allocated(self, write_ids: Set[tuple[str, int, int]]) -> ReplayCommit:
        """The same after an operation that allocates write ids: target tables, source transactions and theirs."""
        allocated = ((one.table, self.transaction, one.write_id) in write_ids for one in self.written)
        pairs = zip(self.written, allocated, strict=True)
        return replace(self, written=tuple(replace(one, write_id_allocated=done) for one, done in pairs))

    def carry_out(self, target: Target, database: str) -> None:
        """Commits it; write ids of which the load did not know in time are given out first."""
        written = [_write_event(target, database, one) for one in self.written]  # what cannot be told of shows no base
        for one in self.written:
            if not one.write_id_allocated:
                allocate(target, database, one.table, self.policy, ((self.transaction, one.write_id),))
            if one.empties:
                leave_base(target, database, one.table, one.partition, one.write_id)
        show_bases(target, database, [(one.table, one.partition, one.write_id) for one in self.written if one.overwrites])
        if not written and target.feeds(database):  # the log has no other word of a TRUNCATE
            left = left_bases(target, database, self.policy, self.transaction)
            written = [WriteEvent(*thing, base_files(thing[-1])) for thing, _ in left]
        target.metastore.replay_commit(self.policy, self.transaction, database, written)


def _write_event(target: Target, database: str, written: Written) -> WriteEvent:
    """What the target's metastore is told of a write; files by their names there, it finds the rest itself.

    Raises:
        ReplicationError: it cannot be told of a file, and the database is the source of another replica, which would lack that.
    """
    files = [file for file in written.content.files if file.subdir]
    names = [told(file.subdir, file.name) for file in files]
    if not all(names) and target.feeds(database):
        raise ReplicationError(
            f"{files[names.index('')].uri} has a # or ] in its name, of which Hive's log cannot tell the next replica"
        )
    left = base_files(written.write_id) if written.empties else ()
    return WriteEvent(written.table, written.partition, written.write_id, (*filter(None, names), *left))


@dataclass(frozen=True, slots=True)
class ReplayAbort(CustomOperation):
    """Aborts what stands for a source's transaction."""

    kind = "AbortTransaction"
    policy: str
    transaction: int

    def carry_out(self, target: Target, database: str) -> None:
        """Aborts it; its write ids stay taken."""
        if target.feeds(database):
            end_without_data(target, database, self.policy, self.transaction)
        else:
            target.metastore.replay_abort(self.policy, self.transaction)


@dataclass(frozen=True, slots=True)
class TruncateTransactional(CustomOperation):
    """Leaves an empty base in a table or in partitions of it, which hides what was written before once it is committed."""

    kind = "TruncateTransactional"
    names: tuple[str, ...]
    write_id: int

    def carry_out(self, target: Target, database: str) -> None:
        """Leaves them."""
        for partition in self.names:
            leave_base(target, database, self.table, partition, self.write_id)


@dataclass(frozen=True, slots=True)
class ImpressWriteIds(CustomOperation):
    """Makes the write ids of a new table those of its source, aborted ones included, which shows its data.

    Of a table with aborted write ids Hive shows no write after the lowest of them, unless it knows of a transaction that
    committed one. So where any was committed after it, a transaction commits the last one, also if the source aborted that, of
    which there is no file. Until then readers see no more than what was written before the lowest. (Of more than
    ``metastore.txn.max.open.batch`` aborted ones, the metastore takes the others for committed. There is no file of them either.)

    Args:
        policy: whose transaction that is (:func:`replay_policy`).
        write_ids: the source's.
    """

    kind = "ImpressWriteIds"
    policy: str
    write_ids: WriteIds

    def carry_out(self, target: Target, database: str) -> None:
        """Makes them so; nothing where that is done."""
        metastore, table, last = target.metastore, self.table, self.write_ids.high
        shown = replace(self.write_ids, open=frozenset())
        by_transaction = shown.sees_any(min(shown.aborted, default=last + 1), last)
        told = replace(shown, high=last - 1, aborted=shown.aborted - {last}) if by_transaction else shown
        partitions = metastore.partition_names(database, table) if shown.aborted else []
        metastore.impress_write_ids(database, table, told, partitions)
        if by_transaction:
            one = snapshot_id(table)
            allocate(target, database, table, self.policy, ((one, last),))
            # Who was killed in between may have been long ago: of what was ended since, it is told that it is not seen.
            metastore.replay_commit(self.policy, one, database, [WriteEvent(table, "", last)])


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


def end_without_data(target: Target, database: str, policy: str, transaction: int) -> None:
    """Ends what stands for an aborted transaction of a database that is a source itself: commits it, with no data.

    Readers see the same as after an abort, of which Hive's log names the source's transaction, not the one that was aborted.

    Raises:
        Refused: what a truncation has left lies outside the directories that the policy allows.
    """
    for (table, *_), base in left_bases(target, database, policy, transaction):
        boundary_of(target, database).require_within(base, object_name(database, table))
        target.storage.delete(base, recursive=True)
    target.metastore.replay_commit(policy, transaction, database, ())


def _fitting(database: str, name: str) -> str:
    """A name of which Hive takes what is before the first dot for a database, to mark it where a transaction times out.

    It has to find it there, or times out no transaction at all (``AbortTxnsFunction``).
    """
    whole = f"{database.lower()}.{name}"
    return whole if len(whole) <= _LONGEST else f"{database.lower()}.{hashlib.sha256(name.encode()).hexdigest()}"


def require_next(database: str, table: str, highest: int, write_id: int) -> None:
    """Makes sure that the target was given all write ids of a table up to one.

    Raises:
        ReplicationError: some before it never were given out, so that the table's data is not the source's.
    """
    if highest and write_id > highest + 1:
        shown = object_name(database, table)
        raise ReplicationError(f"the target's {shown} has write ids up to {highest}, the source {write_id}: repair it")
