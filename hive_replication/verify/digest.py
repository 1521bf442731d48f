"""The digest of a directory's listing: what tells without reading a file whether anything in it may have changed."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

from hive_replication.storage import Storage
from hive_replication.storage.paths import is_hidden

#: Relative path of a file: its bytes and modification time, seconds since the epoch.
Listing = Mapping[str, tuple[int, float]]
# What Hive, Spark and Hadoop's file output committer write into before they move it, and hdfs put's name for an unfinished file.
_WRITERS = ("_temporary", "_tmp.", "_task_tmp.", ".hive-staging", ".spark-staging")
_UNFINISHED = "._COPYING_"
# Seconds after which such a name is a job's that died, and no longer in anybody's way.
_FORSAKEN = 86_400.0


@dataclass(frozen=True, slots=True)
class Look:
    """A directory at a moment.

    Args:
        files: its data files, as Hive sees them.
        writing: a name that says that somebody writes there, or "".
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


def look_at(storage: Storage, location: str, now: float) -> Look:
    """Lists a directory; an absent one is empty.

    Args:
        storage: that it lies on.
        location: its URI.
        now: seconds since the epoch.
    """
    files: dict[str, tuple[int, float]] = {}
    writing = ""
    below = len(location.rstrip("/")) + 1
    for status in storage.files(location, hidden=True):
        name = status.uri[below:]
        if unfinished(name) and now - status.modified < _FORSAKEN:
            writing = name
        elif not is_hidden(name) and not unfinished(name):
            files[name] = status.size, status.modified
    return Look(files, writing)


def scratch(storage: Storage, location: str, now: float) -> bool:
    """Whether a job writes somewhere into a partitioned table: its scratch directory lies beside the partitions.

    Args:
        storage: that it lies on.
        location: the table's directory.
        now: seconds since the epoch.
    """
    found = (status.uri for status in storage.ls(location) if unfinished(status.uri.rsplit("/", 1)[-1]))
    return any(now - file.modified < _FORSAKEN for uri in found for file in storage.files(uri, hidden=True))


def unfinished(name: str) -> bool:
    """Whether a relative path is of something that is still being written."""
    return name.endswith(_UNFINISHED) or any(part.startswith(_WRITERS) for part in name.split("/"))
