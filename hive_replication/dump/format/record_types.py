"""What a dump holds: a header, objects (bootstrap) and events (incremental), as frozen records; no paths inside the dump."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from hive_replication.acid.write_ids import WriteIds
from hive_replication.events.event_records import Notification
from hive_replication.events.files import FileRef
from hive_replication.events.transactions import TransactionWrite
from hive_replication.metastore.constraints import Constraint
from hive_replication.metastore.types import Database, Function, Partition, Table
from hive_replication.policy import Policy
from hive_replication.policy.scope import PartitionFilters

#: In place of the directory of a dump: the source has no table of the name, and no event tells of one.
GONE = "gone"


@dataclass(frozen=True, slots=True)
class Scope:
    """What a dump is of.

    Args:
        database: source database.
        table: one table, or None for the whole database.
        partitions: names of single partitions of ``table`` (repair), or None for all.
    """

    database: str
    table: str | None = None
    partitions: tuple[str, ...] | None = None

    def __str__(self) -> str:
        return f"{self.database}.{self.table}" if self.table else self.database


@dataclass(frozen=True, slots=True)
class DumpHeader:
    """Facts about a whole dump, written last.

    Args:
        kind: ``bootstrap`` (objects as of ``to_evid``) or ``incremental`` (events of ``(from_evid, to_evid]``).
        scope: what it is of.
        source: identity of the source metastore (its database uuid).
        source_database: the database object at the time of the dump; its location is what paths are mapped from.
        from_evid: event id before the first event; of a bootstrap the id at which reading objects began.
        to_evid: event id at which a replica stands after the load.
        to_time: commit time of the event ``to_evid``, seconds since the epoch; 0 where unknown.
        to_hash: hash of that event's message, to recognise another history later; "" where unknown.
        created: seconds since the epoch.
        skipped: tables left out, or partitions of tables, each with the reason.
        from_hash: hash of the message of the event ``from_evid``, which the replica has to have applied; "" where unknown.
        equal: tables left out since those of the replica are equal to them; only of a recovery's dump.
        recovery: token of the recovery that the dump is for, "" for any other dump. It is of use for the one replica that was
            compared, as long as that bears the token.
        metadata_only: whether it has neither data nor partitions.
        acid: whether it has transactional tables and transactions.
        taken: of a database, which tables its policy takes (:class:`hive_replication.policy.PolicyScope`); "" where unknown.
        before: of events, which tables the replica was made with that the dump was made for; "" where unknown.
        joined: tables that were taken into the policy, with the directories of their dumps; "" where one cannot be dumped yet,
            :data:`GONE` where it is no more.
        read: directories beside the database's own that the policy let it read; None of dumps that did not look.
        filters: which partitions of its tables it has.
        unshown: tables of a database that the metastore did not show, each with its words: nobody knows what they hold.
        policy: name of the policy that it was made for; "" of dumps of earlier versions.
        target: the target's metastore of that policy, as it names it.
    """

    kind: Literal["bootstrap", "incremental"]
    scope: Scope
    source: str
    source_database: Database
    from_evid: int
    to_evid: int
    to_time: int
    to_hash: str
    created: float
    skipped: Mapping[str, str] = field(default_factory=dict[str, str])
    from_hash: str = ""
    equal: tuple[str, ...] = ()
    recovery: str = ""
    metadata_only: bool = False
    acid: bool = False
    taken: str = ""
    before: str = ""
    joined: Mapping[str, str] = field(default_factory=dict[str, str])
    read: tuple[str, ...] | None = None
    filters: PartitionFilters = field(default_factory=PartitionFilters)
    unshown: Mapping[str, str] = field(default_factory=dict[str, str])
    policy: str = ""
    target: str = ""

    def made_for(self, policy: Policy) -> DumpHeader:
        """The same, for a policy: retention deletes the dumps of its own one."""
        return replace(self, policy=policy.name, target=policy.target.metastore)

    @property
    def left_out(self) -> dict[str, str]:
        """What people are told that it lacks, each with the reason."""
        return {**self.skipped, **{name: f"the metastore did not show it: {words}" for name, words in self.unshown.items()}}


@dataclass(frozen=True, slots=True)
class MadeWith:
    """What the replica that a dump of events is for was made with.

    Args:
        scope: which tables (:class:`hive_replication.policy.PolicyScope`), "" where that is not known.
        coming: names that belong to the policy and that the replica does not have, or no longer has up to date.
        there: where the scope is not known, the tables that the replica has; else None.
    """

    scope: str = ""
    coming: tuple[str, ...] = ()
    there: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class Known:
    """Tables that a bootstrap may leave out, since their replicas are equal to them.

    Args:
        evid: event id noted before the tables were compared: whatever event came later may concern them.
        tables: their names.
        recovery: token of the recovery that compared them.
    """

    evid: int
    tables: frozenset[str]
    recovery: str


@dataclass(frozen=True, slots=True)
class TableRecord:
    """A table or view of a bootstrap, its column statistics in ``table.colStats``.

    Args:
        table: the metastore's object.
        files: only of an unpartitioned table.
        constraints: its own.
        write_ids: of a transactional table, what a reader sees of it at the dump's end; None of any other.
    """

    table: Table
    files: tuple[FileRef, ...] = ()
    constraints: tuple[Constraint, ...] = ()
    write_ids: WriteIds | None = None

    @property
    def name(self) -> str:
        """Lower-case table name."""
        return self.table.tableName.lower()


@dataclass(frozen=True, slots=True)
class PartitionRecord:
    """A partition of a bootstrap, its column statistics in ``partition.colStats``."""

    table: str
    name: str
    partition: Partition
    files: tuple[FileRef, ...] = ()


@dataclass(frozen=True, slots=True)
class FunctionRecord:
    """A permanent function of a bootstrap; ``files`` are those of its resources that have to be copied."""

    function: Function
    files: tuple[FileRef, ...] = ()

    @property
    def name(self) -> str:
        """Lower-case name."""
        return self.function.functionName.lower()


@dataclass(frozen=True, slots=True)
class FileGroup:
    """Files of one event for one object.

    Args:
        partition: partition name, "" for the table itself.
        files: the files.
        listed: True where the event named no files and the location was listed at the dump: the object's whole present
            content. False: exactly the files of the event.
        table: the object's table, where it is not the event's own (COMMIT_TXN), else "".

    Groups of an ALTER_TABLE's partitions have no files: they name those that have the table's new columns.
    """

    partition: str
    files: tuple[FileRef, ...]
    listed: bool = False
    table: str = ""


@dataclass(frozen=True, slots=True)
class EventRecord:
    """An event of an incremental dump with its files.

    Args:
        notification: the event.
        groups: its files, object by object.
        hash: hash of its message as it stands in the log, to recognise another history; "" where unknown.
        writes: of a commit, what the transaction wrote to the database.
        redump: directory of the dump from which the event's table is rebuilt, "" where there is none.
        shared: other partitions of the table at the directories of the event's, "" for none.
    """

    notification: Notification
    groups: tuple[FileGroup, ...] = ()
    hash: str = ""
    writes: tuple[TransactionWrite, ...] = ()
    redump: str = ""
    shared: str = ""


@dataclass(frozen=True, slots=True)
class DumpResult:
    """What REPL DUMP answers, with figures for reports.

    Args:
        directory: the seeds' ``dir-name``.
        last_evid: the seeds' ``last-evid``.
        header: the dump's header.
        tables, partitions, events, files: numbers of records written.
    """

    directory: str
    last_evid: int
    header: DumpHeader
    tables: int
    partitions: int
    events: int
    files: int
