"""What a scan looks at and finds."""

from __future__ import annotations

from dataclasses import dataclass

from hive_replication.errors import BadRequest

#: How :attr:`TableDrift.waiting` begins of a table that cannot be read, or of which partitions cannot.
UNREAD = "it cannot be read: "


class NoReplica(BadRequest):
    """The target database is no replica any more, as after a failover: no other table of it is scanned either."""


@dataclass(frozen=True, slots=True)
class Scanned:
    """A table or partition that both sides have: its directories, and the replica's state id."""

    source: str
    target: str
    evid: int


@dataclass(frozen=True, slots=True)
class Unread:
    """An object that cannot be read now while others can.

    Args:
        why: for what reason.
    """

    why: str


@dataclass(frozen=True, slots=True)
class Drifted:
    """An object whose files have drifted.

    Args:
        partition: its name, "" for the table itself.
        digest: of the listing that was found.
        reason: how many files are new, gone or changed.
    """

    partition: str
    digest: str
    reason: str


@dataclass(frozen=True, slots=True)
class TableDrift:
    """What was found of a table.

    Args:
        table: source name.
        looked: number of partitions scanned (1 for an unpartitioned table).
        drifted: partitions to replicate again.
        writing: partitions that a job seems to write to.
        waiting: why drift is not known now, e.g. because events wait; else "".
        listings: directories listed, at the source and at the target.
        seconds: it took.
        spared: partitions that were not listed, since snapshots tell of no change in their directories.
        whole: where the policy asks for snapshots, why they spared nothing; else "".
    """

    table: str
    looked: int
    drifted: tuple[Drifted, ...] = ()
    writing: tuple[str, ...] = ()
    waiting: str = ""
    listings: int = 0
    seconds: float = 0.0
    spared: int = 0
    whole: str = ""

    @property
    def is_unread(self) -> bool:
        """Whether the table, or partitions of it, could not be read, for a reason that need not concern others."""
        return self.waiting.startswith(UNREAD)


def unread(table: str, why: Exception) -> TableDrift:
    """What is found of a table that cannot be read.

    Args:
        table: source name.
        why: for what reason.
    """
    return TableDrift(table, 0, waiting=f"{UNREAD}{why}")
