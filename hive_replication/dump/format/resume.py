"""Resumes interrupted dumps, as Hive does: writers leave notes in a dump directory that has no ack file yet.

::

    _attempt_<n>     a writer's claim and its request; the claim with the highest number is the valid one
    _checkpoint_<n>  what was written whole since the one before; none is ever changed

A directory is resumed only by an equal request, and only when its writer is gone: it released its claim, its process ended on
this machine, or the directory has not changed for a while. It may be killed anywhere up to its ack file. Where the policy has a
key, each checkpoint is signed, and a directory with others is passed over: the dump that goes on with it is signed as a whole.
"""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from itertools import islice, takewhile
from pathlib import PurePosixPath
from typing import Any, TypeVar, cast

from pydantic import BaseModel, ConfigDict

from hive_replication.bounded_json import MIB, parsed
from hive_replication.dump.format.checkpoints import Checkpoint, Note, NotePlace, Number, Written, progress
from hive_replication.dump.format.tree_reader import REMOVED, Tree
from hive_replication.errors import Refused, ReplicationError
from hive_replication.logs import about
from hive_replication.process import is_gone, machine
from hive_replication.signing import SigningKey
from hive_replication.storage import AlreadyExists, Denied, FileStatus, Storage

_LOG = logging.getLogger(__name__)

#: Seconds between two checkpoints: so much work is lost at most.
INTERVAL = 5.0
#: Seconds without a change after which the writer on another machine counts as gone.
_SILENCE = 900
_LOOKED_AT = 10
_ATTEMPT, _CHECKPOINT = "_attempt_", "_checkpoint_"
_MOST_NOTE = 64 * MIB

_Kind = TypeVar("_Kind", bound=BaseModel)


class _Owner(BaseModel):
    """A claim; none of anybody where it cannot be read."""

    model_config = ConfigDict(frozen=True, strict=True)

    request: str | None = None
    machine: str = ""
    pid: Number = 0


class WriterClaim:
    """The claim of one writer on a dump directory.

    Args:
        storage: of the dumps.
        directory: the dump directory.
        request: the dump's whole request as text.
        number: of the claim, from 1 on.
        done: last checkpoint of the earlier writers, or None.
        written: what they wrote.
        saved: number of their checkpoints.
        key: signs checkpoints; None for none.
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
        key: SigningKey | None = None,
    ) -> None:
        self._key = key
        self._storage, self._request, self._number, self.directory = storage, request, number, directory
        self.done, self.written, self._saved = done, written or Written(), saved
        self._noted = Written(events=dict(self.written.events), files=dict(self.written.files))
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
        changed = {**reads, **checkpoint.begun}
        written, noted = self.written, self._noted
        values = {
            "evid": checkpoint.evid,
            "hash": checkpoint.message_hash,
            "reads": reads,
            "begun": checkpoint.begun,
            "tables": {name: written.tables[name] for name in changed if name in written.tables},
            "partitions": [[*key, files] for key, files in written.partitions.items() if key[0] in reads],
            "runs": {name: [run.noted for run in written.runs[name]] for name in changed if name in written.runs},
            "events": {str(evid): files for evid, files in written.events.items() if evid not in noted.events},
            "files": {path: [one.size, one.sha256] for path, one in written.files.items() if noted.files.get(path) != one},
        }
        self._note(values)
        noted.events |= written.events
        noted.files |= written.files
        self._reads |= reads.keys()
        self._last = time.monotonic()

    def seal(self) -> None:
        """Marks the dump as not resumable: objects that checkpoints name as complete are about to change."""
        if self._saved:
            self._note({"sealed": True})

    def release(self) -> bool:
        """Gives up the directory, so that an equal request can resume the dump.

        Returns:
            False if there is no checkpoint to resume from.
        """
        if self._saved:
            owner = {"request": self._request, "machine": "", "pid": 0}
            self._storage.write(f"{self.directory}/{_ATTEMPT}{self._number}", json.dumps(owner).encode())
        return self._saved > 0

    def check(self) -> None:
        """Checks that no other writer has taken over the directory.

        Raises:
            ReplicationError: another one has.
        """
        if self._storage.exists(f"{self.directory}/{_ATTEMPT}{self._number + 1}"):
            raise ReplicationError(f"another process goes on with the dump {self.directory}: wait for it, or dump again")

    def _note(self, values: Mapping[str, Any]) -> None:
        self._saved += 1
        text = NotePlace(self.directory, self._saved, self._request).text(values, self._key)
        self._storage.write_once(f"{self.directory}/{_CHECKPOINT}{self._saved}", text)


class ResumableWriter:
    """Base of a writer whose dump can be resumed by another one; see :class:`~.interface.DumpWriter`."""

    _claim: WriterClaim | None

    def _flush(self) -> None:
        """Waits for all writes."""
        raise NotImplementedError

    @property
    def done(self) -> Checkpoint | None:
        """Last checkpoint of the interrupted dump that this one resumes."""
        return self._claim.done if self._claim else None

    def due(self) -> bool:
        """Whether it is time for a checkpoint."""
        return self._claim is not None and self._claim.due()

    def keep(self, checkpoint: Checkpoint) -> None:
        """Notes how far the dump is."""
        if self._claim is not None:
            self._flush()
            self._claim.save(checkpoint)

    def seal(self) -> None:
        """Marks the dump as not resumable."""
        if self._claim is not None:
            self._claim.seal()


def interrupted(storage: Storage, parent: str, request: str, ack: str, key: SigningKey | None = None) -> WriterClaim | None:
    """Takes over the newest interrupted dump of an equal request, or None if there is none to resume.

    Args:
        storage: of the dumps.
        parent: directory that holds the database's dumps.
        request: the whole request as text.
        ack: name of the file that ends a dump.
        key: of the policy; only checkpoints that it signed are believed.
    """
    for directory in islice(sorted((entry.uri for entry in _ls(storage, parent) if entry.is_dir), reverse=True), _LOOKED_AT):
        with _passed_over_if_closed(directory):
            claim = _taken_over(storage, directory, request, ack, key)
            if claim is not None:
                return claim
    return None


def _taken_over(storage: Storage, directory: str, request: str, ack: str, key: SigningKey | None) -> WriterClaim | None:
    entries = {PurePosixPath(entry.uri).name: entry for entry in _ls(storage, directory)}
    claims = _numbers(entries, _ATTEMPT)
    if {ack, REMOVED} & entries.keys() or not claims:
        return None
    if not _left(storage, f"{directory}/{_ATTEMPT}{claims[-1]}", request, entries):
        return None
    numbers = _numbers(entries, _CHECKPOINT)
    try:
        found = [_noted(storage, NotePlace(directory, number, request), key) for number in numbers]
    except Refused as error:
        _LOG.warning("the interrupted dump %s is not resumed: %s", directory, error)
        return None
    whole = [note for note in takewhile(lambda note: note is not None, found) if note is not None]
    if not whole or numbers[-1] != len(numbers) or any(note.sealed for note in whole) or any(found[len(whole) :]):
        return None
    try:
        claim = WriterClaim(storage, directory, request, claims[-1] + 1, *progress(whole), len(found), key)
    except AlreadyExists:
        _LOG.info("another process goes on with the dump %s", directory)
        return None
    evid = claim.done.evid if claim.done else None
    _LOG.warning("the interrupted dump %s is resumed", directory, extra=about(evid=evid))
    _clear(storage, claim)
    return claim


def left_over(storage: Storage, parent: str, ack: str, before: float) -> list[str]:
    """Dump directories without an ack file in which nothing has changed since ``before`` (seconds since the epoch)."""
    old = (entry.uri for entry in _ls(storage, parent) if entry.is_dir and entry.modified < before)
    return chosen(old, lambda one: not any(e.uri.endswith(f"/{ack}") or e.modified >= before for e in _ls(storage, one)))


def chosen(directories: Iterable[str], wanted: Callable[[str], bool]) -> list[str]:
    """Those of some dump directories that are wanted, without any that this account may not read."""
    found: list[str] = []
    for directory in directories:
        with _passed_over_if_closed(directory):
            if wanted(directory):
                found.append(directory)
    return found


@contextmanager
def _passed_over_if_closed(directory: str) -> Generator[None]:
    """An administrator who dumps by hand may leave a directory that nobody else reads; it is no other dump's matter."""
    try:
        yield
    except Denied as error:
        _LOG.warning("the dump %s is passed over: %s", directory, error)


def _clear(storage: Storage, claim: WriterClaim) -> None:
    """Removes what earlier writers wrote after their last checkpoint."""
    database = PurePosixPath(claim.directory).parent.name
    tree = Tree(storage, claim.directory)
    kept = {tree.database_path(database), *(f"{claim.directory}/{evid}" for evid in claim.written.events)}
    kept |= {tree.table_path(database, name) for name in claim.written.tables}
    for directory in (claim.directory, tree.database_path(database)):
        for entry in _ls(storage, directory):
            if entry.is_dir and entry.uri.rstrip("/") not in kept:
                storage.delete(entry.uri, recursive=True)


def _left(storage: Storage, claim: str, request: str, entries: Mapping[str, FileStatus]) -> bool:
    """Whether a claim is that of an equal request whose writer is gone."""
    owner = _read(storage, claim, _Owner) or _Owner()
    if owner.request not in (request, request.partition("\n")[0]):  # earlier versions wrote the first line only
        return False
    if owner.machine == machine():
        return is_gone(f"{owner.machine} {owner.pid}")
    changed = max(entry.modified for entry in entries.values())
    return not owner.machine or time.time() - changed > _SILENCE


def _noted(storage: Storage, place: NotePlace, key: SigningKey | None) -> Note | None:
    """Reads a checkpoint.

    Raises:
        Refused: it is not signed by the key.
    """
    uri = f"{place.directory}/{_CHECKPOINT}{place.number}"

    def check(values: object) -> None:
        if key is not None and not place.is_signed(cast("dict[str, Any]", values) if isinstance(values, dict) else {}, key):
            raise Refused(f"{uri} is not signed by the signing_key of the policy")

    return _read(storage, uri, Note, check)


def _read(storage: Storage, uri: str, kind: type[_Kind], check: Callable[[object], None] = lambda _: None) -> _Kind | None:
    """Reads a note; one that was being written when its writer died is none."""
    try:
        values = parsed(storage.read(uri, most=_MOST_NOTE), most=_MOST_NOTE, values=4_000_000)
        check(values)
        return kind.model_validate(values)
    except (ValueError, FileNotFoundError) as error:
        _LOG.debug("the note %s is passed over: %s", uri, error)
        return None


def _numbers(names: Mapping[str, FileStatus], prefix: str) -> list[int]:
    numbers = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    return sorted(int(number) for number in numbers if number.isascii() and number.isdigit())


def _ls(storage: Storage, directory: str) -> Iterator[FileStatus]:
    try:
        yield from storage.ls(directory)
    except FileNotFoundError:
        return  # absent: none yet
