"""Claims of the writers of dumps (``dump.format.resume``): who writes a dump, for which policy, and whether it was left."""

from __future__ import annotations

import json
import logging
import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import PurePosixPath
from typing import Any, TypeVar

from pydantic import BaseModel, ConfigDict

from hive_replication.bounded_json import MIB, parsed
from hive_replication.dump.format.checkpoints import Number
from hive_replication.dump.format.tree_reader import REMOVED
from hive_replication.errors import ReplicationError
from hive_replication.process import is_gone, machine
from hive_replication.storage import FileStatus, Storage
from hive_replication.storage.paths import is_usable, split

_LOG = logging.getLogger(__name__)

#: Seconds without a change after which the writer on another machine counts as gone.
_SILENCE = 900
#: Beginning of the names of claims; a number follows, and the highest is the valid one.
ATTEMPT = "_attempt_"
MOST_NOTE = 64 * MIB

_Kind = TypeVar("_Kind", bound=BaseModel)


class Owner(BaseModel):
    """A claim; none of anybody where it cannot be read."""

    model_config = ConfigDict(frozen=True, strict=True)

    request: str | None = None
    machine: str = ""
    pid: Number = 0


def note_attempt(storage: Storage, directory: str, request: str, number: int = 1) -> None:
    """Notes which process writes a dump, and for what request: without a checkpoint nobody goes on with it."""
    owner = {"request": request, "machine": machine(), "pid": os.getpid()}
    storage.write(f"{directory}/{ATTEMPT}{number}", json.dumps(owner).encode(), overwrite=False)


def is_left_over(storage: Storage, directory: str, ack: str, before: float) -> bool:
    """Whether a dump has no ack file, nothing in it has changed since ``before`` (epoch seconds), and its writer is gone.

    What has no claim that tells its policy may be anything, and is its owner's to remove, unless retention began to remove it.
    """
    entries = _by_name(storage, directory)
    if ack in entries or any(entry.modified >= before for entry in entries.values()):
        return False
    claims = _claims(storage, directory, entries)
    removed = REMOVED in entries and not entries[REMOVED].is_dir
    return removed or (any(map(_policy_in, claims)) and is_writer_gone(claims[0], entries))


def policy_of(storage: Storage, directory: str) -> str:
    """Name of the policy of a dump, as the requests of its writers tell it; "" where they do not."""
    claims = _claims(storage, directory, _by_name(storage, directory))
    return next((name for one in claims if (name := _policy_in(one))), "")


def remove(storage: Storage, directory: str, ack: str) -> None:
    """Removes a dump, complete or not: its ack file first, and last what says that it is being removed.

    Stores delete file by file: what a kill leaves is no dump to load or to go on with, and one that retention goes on to remove.
    HDFS deletes a directory at once, by one call; a dump has one for each event.
    """
    there = _by_name(storage, directory)
    if there:
        _mark_removed(storage, directory, complete=ack in there)
    storage.delete(f"{directory}/{ack}")
    by_file = {} if split(directory)[0] == "hdfs" else there
    rest = [entry.uri for name, entry in by_file.items() if name not in (REMOVED, ack) and is_usable(entry.uri)]
    deque(storage.threads.unordered(partial(storage.delete, recursive=True), rest), maxlen=0)
    storage.delete(directory, recursive=True)


def _mark_removed(storage: Storage, directory: str, *, complete: bool) -> None:
    try:
        storage.write(f"{directory}/{REMOVED}", b"")
    except ReplicationError as error:
        if complete:
            raise
        _LOG.debug("%s is removed without a mark: %s", directory, error)  # e.g. where this very dump has filled a quota


def _by_name(storage: Storage, directory: str) -> dict[str, FileStatus]:
    return {PurePosixPath(entry.uri).name: entry for entry in entries_of(storage, directory)}


def _claims(storage: Storage, directory: str, entries: Mapping[str, FileStatus]) -> list[Owner]:
    """The claims of a dump, the valid one first; one that cannot be read tells nothing."""
    newest_first = reversed(numbers(entries, ATTEMPT))
    return [read_note(storage, f"{directory}/{ATTEMPT}{number}", Owner) or Owner() for number in newest_first]


def _policy_in(claim: Owner) -> str:
    """In the first line of its request: identity of the source, statement, partitions, policy (``dump.command``)."""
    try:
        values: Any = parsed((claim.request or "").partition("\n")[0].encode(), most=MOST_NOTE)
        name = values[3]["name"]
    except (ValueError, TypeError, LookupError):
        return ""
    return name if isinstance(name, str) else ""


def is_writer_gone(owner: Owner, entries: Mapping[str, FileStatus]) -> bool:
    """Whether nobody writes a dump any more: the writer released it, its process ended here, or nothing changed for a while."""
    if owner.machine == machine():
        return is_gone(f"{owner.machine} {owner.pid}")
    changed = max(entry.modified for entry in entries.values())
    return not owner.machine or time.time() - changed > _SILENCE


def read_note(storage: Storage, uri: str, kind: type[_Kind], check: Callable[[object], None] = lambda _: None) -> _Kind | None:
    """Reads a note; one that was being written when its writer died is none."""
    try:
        values = parsed(storage.read(uri, most=MOST_NOTE), most=MOST_NOTE, values=4_000_000)
        check(values)
        return kind.model_validate(values)
    except (ValueError, FileNotFoundError) as error:
        _LOG.debug("the note %s is passed over: %s", uri, error)
        return None


def numbers(names: Mapping[str, FileStatus], prefix: str) -> list[int]:
    """The numbers at the ends of names of files that begin with a prefix, in order."""
    found = (name.removeprefix(prefix) for name, entry in names.items() if name.startswith(prefix) and not entry.is_dir)
    return sorted(int(number) for number in found if number.isascii() and number.isdigit())


def entries_of(storage: Storage, directory: str) -> Iterator[FileStatus]:
    """What a directory holds; nothing where it is absent."""
    try:
        yield from storage.ls(directory)
    except FileNotFoundError:
        return  # absent: none yet
