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
import time
from collections.abc import Mapping
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any, cast

from hive_replication.dump.format.checkpoints import Checkpoint, Note, NotePlace, Written, progress
from hive_replication.dump.format.claims import ATTEMPT, Owner, entries_of, is_writer_gone, note_attempt, numbers, read_note
from hive_replication.dump.format.closed_directories import passed_over
from hive_replication.dump.format.tree_reader import REMOVED, Tree
from hive_replication.errors import Refused, ReplicationError
from hive_replication.logs import about
from hive_replication.signing import SigningKey
from hive_replication.storage import AlreadyExists, FileStatus, Storage

_LOG = logging.getLogger(__name__)

#: Seconds between two checkpoints: so much work is lost at most.
INTERVAL = 5.0
_LOOKED_AT = 10
_CHECKPOINT = "_checkpoint_"


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
        note_attempt(storage, directory, request, number)

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
            self._storage.write(f"{self.directory}/{ATTEMPT}{self._number}", json.dumps(owner).encode())
        return self._saved > 0

    def check(self) -> None:
        """Checks that no other writer has taken over the directory.

        Raises:
            ReplicationError: another one has.
        """
        if self._storage.exists(f"{self.directory}/{ATTEMPT}{self._number + 1}"):
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
    there = sorted((entry.uri for entry in entries_of(storage, parent) if entry.is_dir), reverse=True)
    for directory in there[:_LOOKED_AT]:
        with passed_over("the dump", directory):
            claim = _taken_over(storage, directory, request, ack, key)
            if claim is not None:
                return claim
    return None


def _taken_over(storage: Storage, directory: str, request: str, ack: str, key: SigningKey | None) -> WriterClaim | None:
    entries = {PurePosixPath(entry.uri).name: entry for entry in entries_of(storage, directory)}
    claims = numbers(entries, ATTEMPT)
    if {ack, REMOVED} & entries.keys() or not claims:
        return None
    if not _left(storage, f"{directory}/{ATTEMPT}{claims[-1]}", request, entries):
        return None
    checkpoints = numbers(entries, _CHECKPOINT)
    try:
        found = [_noted(storage, NotePlace(directory, number, request), key) for number in checkpoints]
    except Refused as error:
        _LOG.warning("the interrupted dump %s is not resumed: %s", directory, error)
        return None
    whole = [note for note in takewhile(lambda note: note is not None, found) if note is not None]
    if not whole or checkpoints[-1] != len(checkpoints) or any(note.sealed for note in whole) or any(found[len(whole) :]):
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


def _clear(storage: Storage, claim: WriterClaim) -> None:
    """Removes what earlier writers wrote after their last checkpoint."""
    database = PurePosixPath(claim.directory).parent.name
    tree = Tree(storage, claim.directory)
    kept = {tree.database_path(database), *(f"{claim.directory}/{evid}" for evid in claim.written.events)}
    kept |= {tree.table_path(database, name) for name in claim.written.tables}
    for directory in (claim.directory, tree.database_path(database)):
        for entry in entries_of(storage, directory):
            if entry.is_dir and entry.uri.rstrip("/") not in kept:
                storage.delete(entry.uri, recursive=True)


def _left(storage: Storage, claim: str, request: str, entries: Mapping[str, FileStatus]) -> bool:
    """Whether a claim is that of an equal request whose writer is gone."""
    owner = read_note(storage, claim, Owner) or Owner()
    if owner.request not in (request, request.partition("\n")[0]):  # earlier versions wrote the first line only
        return False
    return is_writer_gone(owner, entries)


def _noted(storage: Storage, place: NotePlace, key: SigningKey | None) -> Note | None:
    """Reads a checkpoint.

    Raises:
        Refused: it is not signed by the key.
    """
    uri = f"{place.directory}/{_CHECKPOINT}{place.number}"

    def check(values: object) -> None:
        if key is not None and not place.is_signed(cast("dict[str, Any]", values) if isinstance(values, dict) else {}, key):
            raise Refused(f"{uri} is not signed by the signing_key of the policy")

    return read_note(storage, uri, Note, check)
