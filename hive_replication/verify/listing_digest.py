"""The digest of a directory's listing: shows whether files may have changed, without reading any."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from hive_replication.storage import Denied, FileStatus, Storage, paths
from hive_replication.storage.paths import is_hidden
from hive_replication.storage.paths import name as name_of

#: Relative path of a file: its bytes and modification time, seconds since the epoch.
Listing = Mapping[str, tuple[int, float]]
# Scratch directories of Hive, Spark and Hadoop's file output committer, and hdfs put's name for an unfinished file.
_WRITERS = ("_temporary", "_tmp.", "_task_tmp.", ".hive-staging", ".spark-staging")
_UNFINISHED = "._COPYING_"
# Seconds after which such a file counts as left behind by a job that died.
_ABANDONED = 86_400.0


@dataclass(frozen=True, slots=True)
class Observation:
    """A directory as it was listed.

    Args:
        files: its data files, as Hive reads them.
        writing: name of an unfinished file, or "".
    """

    files: Listing
    writing: str = ""

    @property
    def digest(self) -> str:
        """16 hex digits."""
        return listing_digest(self.files)


def listing_digest(files: Listing) -> str:
    """16 hex digits of names, sizes and modification times; order does not matter."""
    text = "\0".join(f"{name}\0{size}\0{modified:.3f}" for name, (size, modified) in sorted(files.items()))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def observe(storage: Storage, location: str, now: float) -> Observation:
    """Lists a directory; an absent one is empty.

    Args:
        storage: the storage with the directory.
        location: its URI.
        now: seconds since the epoch.
    """
    files: dict[str, tuple[int, float]] = {}
    writing = ""
    below = len(paths.normalise(location)) + 1  # metastores write file:/w of what lies at file:///w
    for status in _listed(storage, location):
        name = status.uri[below:]
        if is_unfinished(name) and now - status.modified < _ABANDONED:
            writing = name
        elif not is_hidden(name) and not is_unfinished(name):
            files[name] = status.size, status.modified
    return Observation(files, writing)


def is_being_written(storage: Storage, location: str, now: float) -> bool:
    """Whether a job writes into a partitioned table: its scratch directory lies beside the partitions.

    Args:
        storage: the storage with the directory.
        location: the table's directory.
        now: seconds since the epoch.
    """
    return any(now - file.modified < _ABANDONED for file in _scratch_files(storage, location))


def _listed(storage: Storage, location: str) -> list[FileStatus]:
    """Files below a directory; hidden ones too, as far as hidden directories are not for their owners alone."""
    try:
        return storage.files(location, hidden=True)
    except Denied:
        return [*storage.files(location), *_scratch_files(storage, location)]


def _scratch_files(storage: Storage, location: str) -> Iterator[FileStatus]:
    """Files of jobs that write into a directory; their scratch directory itself where it is for its owner alone."""
    for status in storage.ls(location):
        if is_unfinished(name_of(status.uri)):
            try:
                yield from storage.files(status.uri, hidden=True)
            except Denied:
                yield status


def is_unfinished(name: str) -> bool:
    """Whether a relative path is of a file that is still being written."""
    return name.endswith(_UNFINISHED) or any(part.startswith(_WRITERS) for part in name.split("/"))
