"""Finds where the files of a plan are now, and their sizes."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from functools import partial
from typing import Literal

from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.events.files import FileRef
from hive_replication.load.plan.load_plan import LoadPlan
from hive_replication.progress import Progress
from hive_replication.storage import FileStatus, NoChecksum, Storage

_LOG = logging.getLogger(__name__)

#: At its ``source`` path, in ``cmroot``, ``unreadable`` where one of them cannot be read, or ``gone`` where it lies in neither.
Place = Literal["source", "cmroot", "unreadable", "gone"]


@dataclass(frozen=True, slots=True)
class FoundFile:
    """A file that a load would bring.

    Args:
        size: bytes, -1 where unknown.
        place: where the recorded version lies.
    """

    size: int
    place: Place


def find_files(storage: Storage, plan: LoadPlan, progress: Progress) -> dict[FileRef, FoundFile]:
    """Finds all files that a load would copy, or would have copied without collapsing, by their recorded checksums.

    Args:
        storage: the source's.
        plan: of the load.
        progress: shows the progress.
    """
    operations = (one for lane in plan.lanes for one in (*lane.uncollapsed, *lane.operations))
    files = list(dict.fromkeys(file for one in operations for _, content in one.contents for file in content.files))
    found = storage.threads.map(partial(_find, storage), files)
    return dict(zip(files, progress.count(found, "files looked for", len(files)), strict=True))


def _find(storage: Storage, file: FileRef) -> FoundFile:
    """One that cannot be read, e.g. since the account may not, ends no plan: the load holds its table, and loads all others."""
    try:
        return _where(storage, file)
    except Unreachable:
        raise
    except ReplicationError as error:
        _LOG.info("%s is not found by the plan: %s", file.uri, error)
        return FoundFile(-1, "unreadable")


def _where(storage: Storage, file: FileRef) -> FoundFile:
    status = storage.status(file.uri)
    if status is not None and _is_recorded(storage, file, status):
        return FoundFile(status.size, "source")
    kept = storage.status(file.cm_uri) if file.cm_uri else None
    return FoundFile(kept.size, "cmroot") if kept is not None else FoundFile(-1, "gone")


def _is_recorded(storage: Storage, file: FileRef, status: FileStatus) -> bool:
    """Whether a file is the version of the event: by checksum if the store has them, else by its path."""
    if status.is_dir or not (file.checksum and storage.has_checksums(file.uri)):
        return not status.is_dir
    try:
        checksum = storage.checksum(file.uri)
    except (FileNotFoundError, NoChecksum):  # the load cannot read it either where its blocks are lost
        return False
    return checksum is not None and checksum.value == file.checksum
