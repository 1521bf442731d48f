"""Directories of the target that data may go to: absent ones, empty ones, and those that an earlier attempt put some of it in."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress

from hive_replication.events.files import FileRef
from hive_replication.load.layout.directories import Layout, as_committed
from hive_replication.load.layout.live_locations import Locations
from hive_replication.load.operations.base import Content
from hive_replication.load.replica.target import Target
from hive_replication.storage import Denied, FileChecksum, FileStatus, NoChecksum, Storage, paths

#: Wanted files by their paths below a directory.
Wanted = Mapping[str, FileRef]
#: Returns the directories that an undo may need.
Kept = Callable[[], Locations]
#: Whether a table or partition of the database lies in an existing staging directory.
Used = Callable[[str], bool]


class FreePlaces:
    """The places of one target database.

    Args:
        target: the target side.
        layout: the database's directories.
        kept: returns the directories that an undo may need, which are never used again. Called only if a directory exists.
        used: tells of an existing staging directory whether it is in use.
    """

    def __init__(self, target: Target, layout: Layout, kept: Kept, used: Used) -> None:
        self._target, self._storage, self._layout, self._kept, self._used = target, target.storage, layout, kept, used

    def is_free(self, directory: str, wanted: Wanted) -> bool:
        """Whether a directory is absent, or may be used as :meth:`has_only` says."""
        return not self._storage.exists(directory) or self.has_only(directory, wanted)

    def has_only(self, directory: str, wanted: Wanted, *, parts: bool = False) -> bool:
        """Whether an existing directory is empty, or contains nothing but wanted files, or what may be such.

        The copier proves them before anything is made of them.

        Args:
            directory: of a table or partition.
            wanted: its files, a table's with those of partitions.
            parts: whether it may have files of further partitions, each of which is looked at when it is placed itself.
        """
        if self._kept().touches(directory):
            return False
        found = self._files(directory)
        others = {name for name in found.keys() - wanted.keys() if not (parts and "=" in name.split("/")[0])}
        if others:
            return False
        there = sorted(found.keys() & wanted.keys())
        return all(self._storage.threads.map(lambda name: self._may_be(found[name], wanted[name]), there))

    def staging(self, content: Content, partition: str, wanted: Wanted, live: str = "", *, parts: bool = False) -> str:
        """The staging directory for a content, which is not where it is ``live``; ``parts`` as for :meth:`has_only`.

        Its name has an event id: after the source's log began again, what an earlier event of that id has changed may lie there.
        """
        for attempt in range(1_000):
            token = content.staging + (f"-{attempt}" if attempt else "")
            directory = self._layout.staging(token, partition)
            if directory != live and self._is_nobodys(directory, wanted, parts=parts):
                return directory
        raise AssertionError(f"no free staging directory for {content.staging}")

    def _is_nobodys(self, directory: str, wanted: Wanted, *, parts: bool) -> bool:
        if not self._storage.exists(directory):
            return True
        return self.has_only(directory, wanted, parts=parts) and not self._used(directory)

    def staged(self, content: Content, partition: str, wanted: Wanted, *, parts: bool = False) -> str:
        """The staging directory where an earlier attempt has put files of a content, "" where none has; arguments as above."""
        if not wanted or not self._storage.exists(self._layout.staging(content.staging, partition)):
            return ""
        directory = self.staging(content, partition, wanted, parts=parts)
        return directory if self._files(directory) else ""

    def begun(self, contents: Iterable[Content]) -> set[str]:
        """The staging directories of contents, without partition names, that exist: where none does, nothing is staged."""
        roots = list({self._layout.staging(content.staging) for content in contents})
        there = self._storage.threads.map(self._storage.exists, roots)
        return {root for root, exists in zip(roots, there, strict=True) if exists}

    def _files(self, directory: str) -> dict[str, FileStatus]:
        """What readers see below a directory, or will after a commit, by the names that it has then."""
        below = len(self._storage.check(directory).rstrip("/"))
        try:
            found = self._storage.files(directory, hidden=True)
        except Denied:  # of somebody else's hidden directory
            found = self._storage.files(directory)
        named = ((as_committed(one.uri[below:])[1:], one) for one in found)
        return {name: one for name, one in named if not paths.is_hidden(name)}

    def _may_be(self, status: FileStatus, file: FileRef) -> bool:
        """Whether a file is the wanted one by its checksum, or where that decides nothing by its content.

        In encryption zones, with erasure coding or odd blocks, and between stores without checksums, no replica has the checksum
        that was recorded.
        """
        try:
            found = self._storage.checksum(status.uri)
        except NoChecksum:  # of lost blocks
            return False
        return (found is not None and found.value == file.checksum) or self.looks_like(status, file)

    def looks_like(self, status: FileStatus, file: FileRef) -> bool:
        """Whether a file of the target has the content of a source's file, or of that in cmroot, as they are now.

        All of it is read, up to a difference: the copier overwrites nothing, and of another content would refuse the place again
        and again.
        """
        source = self._target.source_storage
        for uri in filter(None, (file.uri, file.cm_uri)):
            there = source.status(uri)
            if there is not None and there.size == status.size:
                with suppress(FileNotFoundError):  # gone meanwhile
                    if _are_equal(source.stream(uri), self._storage.stream(status.uri)):
                        return True
        return False


def _are_equal(one: Iterator[bytes], other: Iterator[bytes]) -> bool:
    """Whether two contents are, in pieces of whatever sizes."""
    left = right = b""
    while (left := left or next(one, b"")) and (right := right or next(other, b"")):
        both = min(len(left), len(right))
        if left[:both] != right[:both]:
            return False
        left, right = left[both:], right[both:]
    return not (left or right or next(other, b""))


def checksum_of(storage: Storage, uri: str) -> FileChecksum | None:
    """The store's checksum of a file of the target; None of one whose blocks are lost, which proves nothing and is replaced."""
    try:
        return storage.checksum(uri)
    except NoChecksum:
        return None
