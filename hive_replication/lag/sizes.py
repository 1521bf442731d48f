"""Sizes of the files in events: messages have none, so they are read from the source's storage, once for each file."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from itertools import islice

from hive_replication.connect.hanging_storage import require_answers
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.events.files import FileRef
from hive_replication.storage import Storage

_LOG = logging.getLogger(__name__)
_PATIENCE = 5.0  # seconds


class FileSizes:
    """Sizes in bytes of files of the source.

    Args:
        storage: the source's.
        most: files looked up in one call; sizes of further ones are unknown until the next.
    """

    def __init__(self, storage: Storage, most: int) -> None:
        self._storage, self._most = storage, most
        self._known: dict[FileRef, int | None] = {}

    def look_up(self, files: Iterable[FileRef]) -> None:
        """Looks up the sizes that are not known yet, and forgets all other files.

        They stay unknown while a store takes connections and never answers: the lag does not wait for them.
        """
        wanted = dict.fromkeys(files)
        self._known = {file: size for file, size in self._known.items() if file in wanted}
        new = list(islice((file for file in wanted if file not in self._known), self._most))
        if not new:
            return
        try:
            require_answers(self._storage, _PATIENCE)
        except Unreachable as error:
            _LOG.debug("sizes of files are not known: %s", error)
        else:
            self._known.update(zip(new, self._storage.threads.map(self._size, new), strict=True))

    def total(self, files: Iterable[FileRef]) -> int | None:
        """Bytes of files together; None where one of them is not known."""
        sizes = [self._known.get(file) for file in files]
        known = [size for size in sizes if size is not None]
        return sum(known) if len(known) == len(sizes) else None

    def _size(self, file: FileRef) -> int | None:
        """Size of a file at its path, or in cmroot."""
        for uri in filter(None, (file.uri, file.cm_uri)):
            try:
                status = self._storage.status(uri)
            except ReplicationError as error:
                _LOG.debug("the size of %s is not known: %s", uri, error)
                continue  # outside the policy's roots, or not readable: the load reports that
            if status is not None:
                return status.size
        return None
