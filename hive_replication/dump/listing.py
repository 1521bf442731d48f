"""Listing directories of the source with the checksums of their files, in parallel."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from functools import partial
from pathlib import PurePosixPath

from hive_replication.dump.cm_roots import NOTHING_KEPT, CmRoots
from hive_replication.errors import Refused, ReplicationError
from hive_replication.events.files import FileRef
from hive_replication.storage import Denied, Late, NoChecksum, StillOpen, Storage, paths
from hive_replication.storage.boundary import Boundary

_LOG = logging.getLogger(__name__)

_RETRIES = 5


class Unsettled(ReplicationError):
    """A directory changes faster than it can be listed."""


class Lister:
    """Lists data files as Hive does: names that begin with ``_`` or ``.`` are left out.

    Args:
        storage: of the source, or of a target whose replica is compared.
        kept: cmroots to record with files.
        nothing: whether no data is replicated, so that every directory counts as empty.
        boundary: directories that may be listed, all where None; any other counts as empty, but for ``holds``.
        holds: whether a directory that is missing, that lies outside the boundary or the storage roots, or that cannot be listed
            since the account may not or it changes all the time, has a file that stands for it, so that the load holds its table,
            and a file without a checksum none: a dump must not say that it is empty, nor fail for one table of many. Every table
            and partition has a directory from its creation on; one that is missing was removed, or what it lies on is not
            mounted. Of stores without directories nobody can tell.
        copies: whether the files are a replica's: one of which HDFS has no checksum, since its blocks are lost, is listed without
            one. It is to be told and replaced.
        hive2: whether the metastore is of Hive 2, which keeps deleted files under other names.
    """

    def __init__(
        self,
        storage: Storage,
        kept: CmRoots = NOTHING_KEPT,
        *,
        nothing: bool = False,
        boundary: Boundary | None = None,
        holds: bool = False,
        copies: bool = False,
        hive2: bool = False,
    ) -> None:
        self._storage, self._boundary = storage, boundary
        self.cm_roots = kept
        self._nothing, self._holds, self._hive2 = nothing, holds, hive2
        self._unknown = (Denied, NoChecksum, Late) if holds else (NoChecksum,) if copies else ()

    def files(self, location: str | None, *, kept: bool = True, nested: bool = False) -> tuple[FileRef, ...]:
        """All data files below a directory with their checksums, if they are not still open.

        Args:
            location: URI of a table's or partition's directory; None where it has none.
            kept: whether Hive keeps deleted files of it in cmroot (never for external tables).
            nested: only those in its sub-directories; a directory that is missing has none.
        """
        if not location or self._nothing:
            return ()
        location = location.rstrip("/")
        if reason := self._why_barred(location):
            _LOG.info("%s is not listed: %s", location, reason)
            return (FileRef.barred(location),) if self._holds else ()
        for _ in range(_RETRIES):
            try:
                location = paths.normalise(location)  # metastores write file:/w of what lies at file:///w
                uris = (status.uri for status in self._storage.files(location))
                wanted = (uri for uri in uris if not nested or "/" in uri[len(location) + 1 :])
                found = tuple(self._file(uri, location, kept=kept) for uri in wanted)
                return found if found or nested else self._missing(location)
            except (Denied, Refused) as error:
                if not self._holds:
                    raise
                _LOG.warning("the dump says that a directory could not be listed: %s", error)
                return (FileRef.unreadable_directory(location),)
            except FileNotFoundError:
                _LOG.debug("%s changed while it was listed: it is listed again", location)
                continue  # a file went away between listing and checksum: the directory changed, list it again
        problem = f"{location} changes faster than it can be listed; try again when its writers are done"
        if not self._holds:
            raise Unsettled(problem)
        _LOG.warning("the dump says that a directory could not be listed: %s", problem)
        return (FileRef.unreadable_directory(location),)

    def _missing(self, location: str) -> tuple[FileRef, ...]:
        if not (self._holds and self._storage.lacks_directory(location)):
            return ()
        _LOG.warning("%s is missing: the dump says so, and not that it is empty", location)
        return (FileRef.missing_directory(location),)

    def is_barred(self, location: str) -> bool:
        """Whether a directory lies outside the boundary."""
        return bool(self._why_barred(location))

    def _why_barred(self, location: str) -> str:
        return self._boundary.why_outside(location) if self._boundary else ""

    def many(self, locations: Iterable[str | None], *, kept: bool = True, nested: bool = False) -> Iterator[tuple[FileRef, ...]]:
        """Lists several directories in parallel, many of them in Spark executors where the storage has some; results in order."""
        if self._nothing:
            return (() for _ in locations)
        return self._storage.many.map(partial(self.files, kept=kept, nested=nested), list(locations))

    def _file(self, uri: str, location: str, *, kept: bool) -> FileRef:
        try:
            checksum = self._storage.checksum(uri) if paths.is_usable(uri) else None  # which the load holds
        except StillOpen:
            checksum = None  # it is copied as it can be read then, and proven by what was read
        except self._unknown as error:
            _LOG.warning("%s has no checksum of a file: %s", "the dump" if self._holds else "the replica", error)
            checksum = None  # likewise, unless it cannot be read either: the load holds its table, a copy is none
        parent = str(PurePosixPath(uri[len(location) + 1 :]).parent)
        cm_root = self.cm_roots.of(location) if kept and checksum else ""
        found = FileRef(uri, checksum.value if checksum else "", cm_root, "" if parent == "." else parent)
        return self.as_kept(found) if cm_root else found

    def as_kept(self, file: FileRef) -> FileRef:
        """A file of a managed table with the place where Hive keeps it once it is deleted."""
        return file.kept_by_hive2(self.cm_roots.plain) if self._hive2 else file
