"""What a load did, for the terminal, for Dagster's metadata and for tests."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from hive_replication.copy.tasks import CopyFailure
from hive_replication.errors import Refused
from hive_replication.load.copied_files import Copies
from hive_replication.units import count, size

_OBJECT = re.compile(r"(?P<table>.*?)(?:/(?P<partition>[^/=]+=.*))?", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Skipped:
    """An event or object that the load left alone, and why."""

    evid: int
    what: str
    reason: str


@dataclass(frozen=True, slots=True)
class Held:
    """A lane that failed: the others went on, this one is tried again from ``after`` on.

    Args:
        tables: target table names of the lane.
        after: last event id that the lane's tables stand at.
        evid: event id that failed.
        reason: one sentence.
        refused: whether going on would lose data (exit code 3) rather than having failed (1).
        tried: whether this load tried it; False where it is held from before and waits for a load from where it stands.
        table: which of them the reason is of, "" where it is of all.
    """

    tables: tuple[str, ...]
    after: int
    evid: int
    reason: str
    refused: bool = False
    tried: bool = True
    table: str = ""


@dataclass(frozen=True, slots=True)
class Commit:
    """A transaction that wrote to a table or partition.

    Args:
        partition: its name, "" for the table itself.
        write_id: of the table, on both sides.
        transaction: the source's id of it.
        evid: event id of its commit.
    """

    partition: str
    write_id: int
    transaction: int
    evid: int


@dataclass(frozen=True, slots=True)
class Touched:
    """A target table that the load changed.

    Args:
        table: name on the target.
        source_table: name on the source.
        evid: event id of its last change.
        partitions: partitions created or changed that exist now.
        dropped_partitions: partitions dropped.
        dropped: whether the table itself is gone.
        commits: of a transactional table, what was written to it, in order.
    """

    table: str
    source_table: str
    evid: int
    partitions: tuple[str, ...] = ()
    dropped_partitions: tuple[str, ...] = ()
    dropped: bool = False
    commits: tuple[Commit, ...] = ()


@dataclass(frozen=True, slots=True)
class Collapsed:
    """Events that were carried out together (policy ``collapse``).

    Args:
        events: how many.
        operations: how many operations they became.
        files: number of files that did not have to be copied.
        bytes: their size, -1 where unknown.
    """

    events: int = 0
    operations: int = 0
    files: int = 0
    bytes: int = 0

    def __str__(self) -> str:
        known = f" ({size(self.bytes)})" if self.bytes >= 0 else ""
        spared = f"; not copied: {count(self.files, 'file')}{known} that later events replace or drop" if self.files else ""
        return f"{count(self.events, 'event')} applied by {count(self.operations, 'operation')}{spared}"


@dataclass(frozen=True, slots=True)
class SlowOperation:
    """An operation, or several that were carried out in one call, and how long the target's metastore and storage took.

    Args:
        kind: e.g. ``AddPartitions``.
        table: name on the target.
        evid: event id of the last one.
        operations: how many they are.
        seconds: wall seconds, without the copying of files.
    """

    kind: str
    table: str
    evid: int
    operations: int
    seconds: float


@dataclass(frozen=True, slots=True)
class UnexpectedObject:
    """An object of the target that is not as a load left it, or was in the way.

    Args:
        object: e.g. ``sales.orders/ds=1``.
        outcome: what was found, or became of it.
    """

    object: str
    outcome: str


@dataclass(frozen=True)
class LoadReport:
    """What REPL LOAD did.

    Args:
        directory: the dump.
        database: target database.
        from_evid: where the dump begins.
        to_evid: where the database stands now, or the one table that was loaded (held lanes excepted).
        applied: number of operations done, by kind (``AddPartitions``: 3).
        copies: one result per file, with its proof; only the first ones are in memory.
        skipped: events and objects left alone.
        held: lanes that failed.
        touched: tables changed.
        translated: those of them that a Hive 4 metastore keeps as external tables though they are managed ones at the source.
        unexpected: what was in the way and no replica, with what became of it (policy ``conflicts``).
        changed_on_target: replicas that somebody changed on the target since the last load that touched them.
        seconds: wall seconds of each phase (``plan``, ``copy``, ``apply``).
        slowest: the slowest operations, up to five of each kind, the slowest first.
        collapsed: what collapsing spared.
        kept: URI of the whole report as Parquet, "" where it could not be kept.
        window: what ``hive-repl report`` calls the load, e.g. ``170-1400`` or ``repair-1400``.
        broken_views: views among the tables changed that read the database by the name that it has at the source only.
        privileges: how many privileges and roles were granted, revoked and created (policy ``privileges``).
    """

    directory: str
    database: str
    from_evid: int
    to_evid: int
    applied: Mapping[str, int] = field(default_factory=dict[str, int])
    copies: Copies = field(default_factory=Copies)
    skipped: tuple[Skipped, ...] = ()
    held: tuple[Held, ...] = ()
    touched: tuple[Touched, ...] = ()
    translated: tuple[str, ...] = ()
    unexpected: tuple[UnexpectedObject, ...] = ()
    changed_on_target: tuple[UnexpectedObject, ...] = ()
    seconds: Mapping[str, float] = field(default_factory=dict[str, float])
    slowest: tuple[SlowOperation, ...] = ()
    collapsed: Collapsed = Collapsed()
    kept: str = ""
    window: str = ""
    broken_views: tuple[str, ...] = ()
    privileges: Mapping[str, int] = field(default_factory=dict[str, int])

    @property
    def unproven(self) -> list[CopyFailure]:
        """Files that could not be copied or proven, of the tables that are held for it."""
        held = {table for one in self.held for table in one.tables}
        return [one for one in self.copies.failures if _is_of(one.task.object_name, held)]

    @property
    def bytes_copied(self) -> int:
        """Bytes of the files that were copied (not of those found present)."""
        return self.copies.bytes

    @property
    def files_by_origin(self) -> Mapping[str, int]:
        """Numbers of files from ``source``, from ``cmroot`` and found ``present``."""
        return self.copies.origins

    @property
    def files_by_executor(self) -> Mapping[str, int]:
        """Numbers of files copied in driver ``threads`` and by ``spark`` executors."""
        return self.copies.executors

    @property
    def exit_code(self) -> int:
        """0 done, 1 a lane failed, 3 a lane was refused."""
        if not self.held:
            return 0
        return Refused.exit_code if any(held.refused for held in self.held) else 1


def object_of(name: str) -> tuple[str, str | None]:
    """Table and partition of ``db.table/ds=1``; no partition where the name has none."""
    found = _OBJECT.fullmatch(name.partition(".")[2] or name)
    return (found["table"], found["partition"]) if found else (name, None)


def _is_of(shown: str, tables: Collection[str]) -> bool:
    """Whether ``db.table`` or ``db.table/partition`` is of one of some tables; names of tables may hold a slash."""
    name = shown.partition(".")[2]
    return any(name == table or name.startswith(f"{table}/") for table in tables)
