"""Directories of the target that data may go to: absent ones, empty ones, and those that an earlier attempt put some of it in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from hive_replication.events.files import FileRef
from hive_replication.load.layout.directories import Layout
from hive_replication.load.layout.live_locations import Locations
from hive_replication.load.operations.base import Content
from hive_replication.storage import FileChecksum, FileStatus, NoChecksum, Storage

#: Wanted files by their paths below a directory.
Wanted = Mapping[str, FileRef]


class FreePlaces:
    """The places of one target database.

    Args:
        storage: the target's.
        layout: the database's directories.
        kept: returns the directories that an undo may need, which are never used again. Called only if a directory exists.
    """

    def __init__(self, storage: Storage, layout: Layout, kept: Callable[[], Locations]) -> None:
        self._storage, self._layout, self._kept = storage, layout, kept

    def is_free(self, directory: str, wanted: Wanted, *, parts: bool = False) -> bool:
        """Whether a directory is absent, or may be used as :meth:`has_only` says."""
        return not self._storage.exists(directory) or self.has_only(directory, wanted, parts=parts)

    def has_only(self, directory: str, wanted: Wanted, *, parts: bool = False) -> bool:
        """Whether an existing directory is empty, or contains nothing but wanted files with the right checksums.

        Args:
            directory: of a table or partition.
            wanted: its files, a table's with those of partitions.
            parts: whether it may have files of further partitions, each of which is looked at when it is placed itself.
        """
        if self._kept().contains(directory) or self._kept().any_below(directory):
            return False
        found = self._storage.named_files(directory)
        others = {name for name in found.keys() - wanted.keys() if not (parts and "=" in name.split("/")[0])}
        return not others and all(self._is_same(found[name], wanted[name]) for name in found.keys() & wanted.keys())

    def staging(self, content: Content, partition: str, wanted: Wanted, live: str = "", *, parts: bool = False) -> str:
        """The staging directory for a content, which is not where it is ``live``; ``parts`` as for :meth:`has_only`."""
        for attempt in range(1_000):
            token = content.staging + (f"-{attempt}" if attempt else "")
            directory = self._layout.staging(token, partition)
            if directory != live and self.is_free(directory, wanted, parts=parts):
                return directory
        raise AssertionError(f"no free staging directory for {content.staging}")

    def staged(self, content: Content, partition: str, wanted: Wanted, *, parts: bool = False) -> str:
        """The staging directory where an earlier attempt has put files of a content, "" where none has; arguments as above."""
        if not wanted or not self._storage.exists(self._layout.staging(content.staging, partition)):
            return ""
        directory = self.staging(content, partition, wanted, parts=parts)
        return directory if self._storage.named_files(directory) else ""

    def begun(self, contents: Iterable[Content]) -> set[str]:
        """The staging directories of contents, without partition names, that exist: where none does, nothing is staged."""
        roots = list({self._layout.staging(content.staging) for content in contents})
        there = self._storage.threads.map(self._storage.exists, roots)
        return {root for root, exists in zip(roots, there, strict=True) if exists}

    def _is_same(self, status: FileStatus, file: FileRef) -> bool:
        if not file.checksum:
            return False
        found = checksum_of(self._storage, status.uri)
        return found is not None and found.value == file.checksum


def checksum_of(storage: Storage, uri: str) -> FileChecksum | None:
    """The store's checksum of a file of the target; None of one whose blocks are lost, which proves nothing and is replaced."""
    try:
        return storage.checksum(uri)
    except NoChecksum:
        return None
