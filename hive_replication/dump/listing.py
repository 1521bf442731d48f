"""Listing directories of the source with the checksums of their files, in parallel."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import PurePosixPath

from hive_replication.errors import ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.storage import StillOpen, Storage

_THREADS = 32
_RETRIES = 5


class Lister:
    """Lists data files as Hive does: names that begin with ``_`` or ``.`` are left out.

    Args:
        storage: the source's storage.
        cm_root: cmroot to record with each file, or "" where deleted files are not kept.
        nothing: whether no data is replicated, so that every directory counts as empty.
    """

    def __init__(self, storage: Storage, cm_root: str, *, nothing: bool = False) -> None:
        self._storage = storage
        self._cm_root = cm_root
        self._nothing = nothing
        self._pool = ThreadPoolExecutor(_THREADS, thread_name_prefix="list")

    def files(self, location: str | None, *, kept: bool = True) -> tuple[FileRef, ...]:
        """All data files below a directory with their checksums, if they are not still open; an absent directory holds none.

        Args:
            location: URI of a table's or partition's directory; None where it has none.
            kept: whether Hive keeps deleted files of it in cmroot (never for external tables).
        """
        if not location or self._nothing:
            return ()
        location = location.rstrip("/")
        for _ in range(_RETRIES):
            try:
                return tuple(self._file(status.uri, location, kept=kept) for status in self._storage.files(location))
            except FileNotFoundError:
                continue  # a file went away between listing and checksum: the directory changed, list it anew
        raise ReplicationError(f"{location} changes faster than it can be listed; dump again when its writers are done")

    def many(self, locations: Iterable[str | None], *, kept: bool = True) -> Iterator[tuple[FileRef, ...]]:
        """Lists several directories in parallel; results in order."""
        return self._pool.map(partial(self.files, kept=kept), locations)

    def _file(self, uri: str, location: str, *, kept: bool) -> FileRef:
        try:
            checksum = self._storage.checksum(uri)
        except StillOpen:
            checksum = None  # it is copied as it can be read then, and proven by what was read
        parent = str(PurePosixPath(uri[len(location) + 1 :]).parent)
        return FileRef(
            uri, checksum.value if checksum else "", self._cm_root if kept and checksum else "", "" if parent == "." else parent
        )
