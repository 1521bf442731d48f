"""What a copier is asked for and what it answers; plain picklable data, the same for driver threads and Spark executors."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal, Protocol

from hive_replication.copy.preserve import Place
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.events.files import FileRef
from hive_replication.storage import paths

#: Raises an error if copying has to end.
Check = Callable[[], None]


@dataclass(frozen=True, slots=True)
class CopyTask:
    """One file to bring to one place. Files of two objects may have one place: an answer is known by its whole task.

    Args:
        file: the source file as recorded at the event.
        target: final URI of the replica. It gets this name only after its proof.
        evid: event id (or bootstrap id) that asks for the file; named in errors.
        object_name: ``db.table`` or ``db.table/ds=1``; named in errors and reports.
        size: bytes, or -1 where unknown; only for packing and estimates, never proof.
        place: its directory on the target, where access is preserved.
    """

    file: FileRef
    target: str
    evid: int
    object_name: str
    size: int = field(default=-1, compare=False)
    place: Place | None = field(default=None, compare=False)

    def temporary(self) -> str:
        """A hidden name beside the target, of its own for each attempt, within the 255 bytes that names may have."""
        short = paths.name(self.target).encode()[:200].decode(errors="ignore")
        return f"{paths.parent(self.target).rstrip('/')}/.{short}.{secrets.token_hex(8)}.tmp"


@dataclass(frozen=True, slots=True)
class Proof:
    """How it is known that a replica equals the source file.

    Args:
        algorithm: e.g. ``MD5-of-0MD5-of-512CRC32C`` (HDFS checksum of the replica) or ``CRC32C``.
        value: lowercase hex.
        recorded: whether the source file was identified by a checksum recorded at the event (False: none was recorded).
    """

    algorithm: str
    value: str
    recorded: bool


@dataclass(frozen=True, slots=True)
class CopyResult:
    """A file that is now at its target, proven.

    Args:
        task: what was asked.
        origin: ``source``, ``cmroot``, or ``present`` where the replica was there already with the same proof.
        size: bytes of the replica.
        proof: how it is known.
        attempts: copies made, 0 where present.
        executor: ``threads`` or ``spark``.
    """

    task: CopyTask
    origin: Literal["source", "cmroot", "present"]
    size: int
    proof: Proof
    attempts: int
    executor: str = "threads"


@dataclass(frozen=True, slots=True)
class CopyFailure:
    """A file that could not be copied; its lane is held, other files go on.

    Args:
        task: what was asked.
        reason: one sentence for operators, naming both paths where the file is gone.
        kind: ``gone`` (neither at source nor cmroot), ``conflict`` (other content under the target's name),
            ``unreachable`` (a storage does not answer, so that the whole window fails and no lane is held), ``failed``.
    """

    task: CopyTask
    reason: str
    kind: Literal["gone", "conflict", "unreachable", "failed"] = "failed"

    @property
    def error(self) -> ReplicationError:
        """The same to be raised, where the file is no lane's."""
        return (Unreachable if self.kind == "unreachable" else ReplicationError)(self.reason)


class Copier(Protocol):
    """Copies many files at once. Implementations: driver threads, Spark executors, or a choice by size."""

    def copy(self, tasks: Iterable[CopyTask]) -> Iterator[CopyResult | CopyFailure]:
        """Copies and proves each file; answers come in any order, exactly one per task."""
        ...
