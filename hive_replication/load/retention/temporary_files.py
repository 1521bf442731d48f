"""Temporary files that killed loads left among a database's data."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from hive_replication.load.layout.directories import Layout, is_temporary
from hive_replication.load.layout.live_locations import Locations
from hive_replication.load.replica.target import Target
from hive_replication.logs import about
from hive_replication.progress import Progress
from hive_replication.storage import Denied, FileStatus

_LOG = logging.getLogger(__name__)


class TemporaryFiles:
    """Those of one database that are older than the expiry.

    Args:
        target: the target side.
        database: its database.
        layout: the database's directories.
        expiry: those that are younger are kept, seconds since the epoch.
        progress: shows the progress.
    """

    def __init__(self, target: Target, database: str, layout: Layout, expiry: float, progress: Progress) -> None:
        self._target, self._storage, self._database = target, target.storage, database
        self._layout, self._expiry, self._progress = layout, expiry, progress

    def found(self, live: Locations) -> Iterator[FileStatus]:
        """The files in the database's directory, and in those of its tables below ``external_root``."""
        for child in self._progress.over(self._storage.ls(self._layout.location), "tables looked through"):
            yield from self._in(child.uri)
        root = (self._target.policy.external_root or "").rstrip("/")
        outside = [place for place in live.within(root) if not self._layout.holds(place)] if root else []
        for place in self._progress.over(outside, "external tables looked through"):
            yield from self._in(place)

    def _in(self, directory: str) -> Iterator[FileStatus]:
        """Those of a directory; one that is not a replica's may be closed to this account."""
        try:
            files = self._storage.files(directory, hidden=True)
        except Denied as error:
            _LOG.warning("%s is passed over: %s", directory, error, extra=about(self._database))
            return
        yield from (file for file in files if is_temporary(file.uri) and file.modified < self._expiry)
