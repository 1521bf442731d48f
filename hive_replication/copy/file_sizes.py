"""Bytes of the files that are to be copied: for choosing a copier and for packing, never proof."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from hive_replication.copy.tasks import CopyTask
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.events.files import FileRef
from hive_replication.storage import Storage


def source_sizes(storage: Storage, files: Iterable[FileRef]) -> dict[FileRef, int]:
    """Bytes of files at the source; -1 for those that neither their path nor cmroot has, or of which it cannot be known.

    Raises:
        Unreachable: the source does not answer.
    """

    def look_up(file: FileRef) -> int:
        sizes = (_size(storage, uri) for uri in (file.uri, file.cm_uri) if uri)
        return next((size for size in sizes if size >= 0), -1)

    files = list(files)
    return dict(zip(files, storage.threads.map(look_up, files), strict=True))


def _size(storage: Storage, uri: str) -> int:
    try:
        status = storage.status(uri)
    except Unreachable:
        raise
    except (ReplicationError, OSError):
        return -1  # the copy of this file says why, and its table alone is held
    return -1 if status is None else status.size


def sized(storage: Storage, tasks: list[CopyTask]) -> list[CopyTask]:
    """The same tasks with their bytes, the largest first, so that no long copy starts last."""
    sizes = source_sizes(storage, (task.file for task in tasks))
    return sorted((replace(task, size=sizes[task.file]) for task in tasks), key=lambda task: task.size, reverse=True)
