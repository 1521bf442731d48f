"""Going on with a dump that was interrupted, as Hive does: notes in a dump directory that has no ack file yet.

::

    _attempt_<n>     who writes, and what was asked for; who has made the greatest number has the directory
    _checkpoint_<n>  what was written whole since the one before; none is ever changed

Only an equal request goes on with a directory, and only when its writer is gone: it said so, its process ended on this
machine, or the directory has not changed for a while.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from pathlib import PurePosixPath
from typing import Any

from hive_replication.errors import ReplicationError
from hive_replication.process import machine, runs_here
from hive_replication.storage import AlreadyExists, FileStatus, Storage

#: Seconds between two checkpoints: so much work is lost at most.
INTERVAL = 5.0
#: Seconds without a change after which the writer on another machine counts as gone.
_SILENCE = 900
_LOOKED_AT = 10
_ATTEMPT, _CHECKPOINT = "_attempt_", "_checkpoint_"


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """How far a dump is.

    Args:
        evid: last event that was dumped; of a dump of objects the one at which it began.
        message_hash: of that event, to recognise another history of the source.
        reads: of a dump of objects, the tables that are whole, with the event ids before and after each was read.
    """

    evid: int
    message_hash: str
    reads: Mapping[str, tuple[int, int]] = field(default_factory=dict[str, tuple[int, int]])


@dataclass
class Written:
    """Records of a dump, each with its number of files."""

    tables: dict[str, int] = field(default_factory=dict[str, int])
    partitions: dict[tuple[str, str], int] = field(default_factory=dict[tuple[str, str], int])
    events: dict[int, int] = field(default_factory=dict[int, int])


class Attempt:
    """One writer's hold on a dump directory.

    Args:
        storage: of the dumps.
        directory: the dump directory.
        request: what was asked for.
        number: of the attempt, from 1 on.
        done: how far the attempts before came, or None.
        written: what they wrote.
        saved: number of their checkpoints.
    """

    def __init__(
        self,
        storage: Storage,
        directory: str,
        request: str,
        number: int = 1,
        done: Checkpoint | None = None,
        written: Written | None = None,
        saved: int = 0,
    ) -> None:
        self._storage, self._request, self._number, self.directory = storage, request, number, directory
        self.done, self.written, self._saved = done, written or Written(), saved
        self._noted = Written(dict(self.written.tables), dict(self.written.partitions), dict(self.written.events))
        self._reads = set(done.reads if done else ())
        self._last = time.monotonic()
        owner = {"request": request, "machine": machine(), "pid": os.getpid()}
        storage.write(f"{directory}/{_ATTEMPT}{number}", json.dumps(owner).encode(), overwrite=False)

    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return time.monotonic() - self._last >= INTERVAL

    def save(self, checkpoint: Checkpoint) -> None:
        """Notes what was written since the last checkpoint; all of it has to be on storage.

        Raises:
            ReplicationError: another process has taken the directory over.
        """
        self.check()
        reads = {name: read for name, read in checkpoint.reads.items() if name not in self._reads}
        written, noted = self.written, self._noted
        values = {
            "evid": checkpoint.evid,
            "hash": checkpoint.message_hash,
            "reads": reads,
            "tables": {name: written.tables[name] for name in reads if name in written.tables},
            "partitions": [[*key, files] for key, files in written.partitions.items() if key[0] in reads],
            "events": {evid: files for evid, files in written.events.items() if evid not in noted.events},
        }
        self._note(values)
        noted.events |= written.events
        self._reads |= reads.keys()
        self._last = time.monotonic()

    def seal(self) -> None:
        """From here on the dump cannot be gone on with: what was noted as whole is about to change."""
        if self._saved:
            self._note({"sealed": True})

    def release(self) -> bool:
        """Leaves the directory to the next attempt.

        Returns:
            False where there is nothing that it could go on from.
        """
        if self._saved:
            owner = {"request": self._request, "machine": "", "pid": 0}
            self._storage.write(f"{self.directory}/{_ATTEMPT}{self._number}", json.dumps(owner).encode())
        return self._saved > 0

    def check(self) -> None:
        """Makes sure that nobody has taken the directory over.

        Raises:
            ReplicationError: somebody has.
        """
        if self._storage.exists(f"{self.directory}/{_ATTEMPT}{self._number + 1}"):
            raise ReplicationError(f"another process goes on with the dump {self.directory}: wait for it, or dump again")

    def _note(self, values: Mapping[str, Any]) -> None:
        self._saved += 1
        self._storage.write_once(f"{self.directory}/{_CHECKPOINT}{self._saved}", json.dumps(values).encode())


class Resumable:
    """The part of a writer that lets another one go on with its dump; see :class:`hive_replication.dump.store.DumpWriter`."""

    _attempt: Attempt | None

    def _flush(self) -> None:
        """Waits for all writes."""
        raise NotImplementedError

    @property
    def done(self) -> Checkpoint | None:
        """How far an interrupted dump came that this one goes on with."""
        return self._attempt.done if self._attempt else None

    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return self._attempt is not None and self._attempt.due()

    def keep(self, checkpoint: Checkpoint) -> None:
        """Notes how far the dump is."""
        if self._attempt is not None:
            self._flush()
            self._attempt.save(checkpoint)

    def seal(self) -> None:
        """From here on the dump cannot be gone on with."""
        if self._attempt is not None:
            self._attempt.seal()


def interrupted(storage: Storage, parent: str, request: str, ack: str) -> Attempt | None:
    """Takes over the newest interrupted dump of an equal request, or None where there is none to go on with.

    Args:
        storage: of the dumps.
        parent: directory that holds the database's dumps.
        request: what is asked for.
        ack: name of the file that ends a dump.
    """
    for directory in islice(sorted((entry.uri for entry in _ls(storage, parent) if entry.is_dir), reverse=True), _LOOKED_AT):
        entries = {PurePosixPath(entry.uri).name: entry for entry in _ls(storage, directory)}
        attempts = _numbers(entries, _ATTEMPT)
        if ack in entries or not attempts or not _left(storage, f"{directory}/{_ATTEMPT}{attempts[-1]}", request, entries):
            continue
        found = [_fields(storage, f"{directory}/{_CHECKPOINT}{number}") for number in _numbers(entries, _CHECKPOINT)]
        whole = [values for values in found if values]
        if not whole or any("sealed" in values for values in whole):
            continue
        try:
            attempt = Attempt(storage, directory, request, attempts[-1] + 1, *_progress(whole), saved=len(found))
        except AlreadyExists:
            continue  # another process was faster
        _clear(storage, attempt)
        return attempt
    return None


def left_over(storage: Storage, parent: str, ack: str, before: float) -> list[str]:
    """Dump directories without an ack file in which nothing has changed since ``before`` (seconds since the epoch)."""
    old = [entry.uri for entry in _ls(storage, parent) if entry.is_dir and entry.modified < before]
    listed = ((uri, list(_ls(storage, uri))) for uri in old)
    return [uri for uri, entries in listed if not any(e.uri.endswith(f"/{ack}") or e.modified >= before for e in entries)]


def _clear(storage: Storage, attempt: Attempt) -> None:
    """Removes what the attempts before left beyond their last checkpoint."""
    database = PurePosixPath(attempt.directory).parent.name
    kept = {f"{attempt.directory}/{name}" for name in (database, *attempt.written.events)}
    kept |= {f"{attempt.directory}/{database}/{name}" for name in attempt.written.tables}
    for directory in (attempt.directory, f"{attempt.directory}/{database}"):
        for entry in _ls(storage, directory):
            if entry.is_dir and entry.uri.rstrip("/") not in kept:
                storage.delete(entry.uri, recursive=True)


def _progress(notes: list[dict[str, Any]]) -> tuple[Checkpoint, Written]:
    written, reads = Written(), dict[str, tuple[int, int]]()
    for note in notes:
        reads |= {name: (begin, end) for name, (begin, end) in note["reads"].items()}
        written.tables |= note["tables"]
        written.partitions |= {(table, name): files for table, name, files in note["partitions"]}
        written.events |= {int(evid): files for evid, files in note["events"].items()}
    return Checkpoint(notes[-1]["evid"], notes[-1]["hash"], reads), written


def _left(storage: Storage, attempt: str, request: str, entries: Mapping[str, FileStatus]) -> bool:
    """Whether an attempt is one of an equal request, and its writer is gone."""
    owner = _fields(storage, attempt)
    if owner.get("request") != request:
        return False
    if owner["machine"] == machine():
        return not runs_here(owner["pid"])
    changed = max(entry.modified for entry in entries.values())
    return not owner["machine"] or time.time() - changed > _SILENCE


def _fields(storage: Storage, uri: str) -> dict[str, Any]:
    """Reads a note; one that was being written when its writer died is none."""
    try:
        return json.loads(storage.read(uri))
    except (ValueError, FileNotFoundError):
        return {}


def _numbers(names: Mapping[str, FileStatus], prefix: str) -> list[int]:
    numbers = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return sorted(int(number) for number in numbers if number.isdigit())


def _ls(storage: Storage, directory: str) -> Iterator[FileStatus]:
    try:
        yield from storage.ls(directory)
    except FileNotFoundError:
        return  # absent: none yet
