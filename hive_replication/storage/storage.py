"""Storage of one side: all roots of a warehouse behind one interface of full URIs."""

from __future__ import annotations

import logging
import os
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import TypeVar

from tenacity import after_nothing

from hive_replication.errors import Refused
from hive_replication.parallel import ParallelCalls, Threads
from hive_replication.policy import Root
from hive_replication.policy.parallelism import Parallelism
from hive_replication.policy.secrets import resolved_options
from hive_replication.storage import paths
from hive_replication.storage.access import Access
from hive_replication.storage.backend import Backend, about_access
from hive_replication.storage.backend_by_scheme import connect_backend
from hive_replication.storage.delegation import Grants
from hive_replication.storage.failures import translated
from hive_replication.storage.file_status import AlreadyExists, FileChecksum, FileStatus, Space, TooLarge
from hive_replication.storage.hdfs_access import HdfsAccess
from hive_replication.storage.hdfs_backend import HdfsBackend
from hive_replication.storage.repeats import about_webhdfs, moving, once, repeated
from hive_replication.storage.storage_roots import StorageRoots
from hive_replication.storage.webhdfs import WebHdfs

_LOG = logging.getLogger(__name__)

T = TypeVar("T")
MIB = 1 << 20
_ATTEMPTS = 4


class Storage:
    """Files under the roots of one warehouse (or of several: roots may be on any number of stores).

    Every URI is checked first: a dump is untrusted input, no path in it may lead outside the roots (design, section 5). Names are
    literal. Connections are made when first needed, once per store, settings and process, and shared by threads. A pickled
    Storage carries its roots, and new tokens for HDFS with Kerberos. Metadata calls and writes of small files that meet a passing
    trouble are repeated a few times; those to a nameservice also where no answer comes, for ``failover_seconds`` of the policy.

    Absent files raise FileNotFoundError, names already taken :class:`~hive_replication.storage.AlreadyExists`, a store that does
    not answer :class:`~hive_replication.errors.Unreachable`, anything else a :class:`~hive_replication.errors.ReplicationError`.

    Args:
        roots: of the policy.
        calls: threads for calls in parallel (``parallelism.storage_calls`` of the policy); None for its default.
        grants: from a process that has tickets, by store, where this one has none.

    Attributes:
        threads: make calls in parallel, for all users of this storage.
        many: reads many directories, by functions that can be pickled; ``threads``, where nobody sets another.
    """

    def __init__(self, roots: tuple[Root, ...], calls: int | None = None, grants: Grants | None = None) -> None:
        self.roots = roots
        self._calls = calls or Parallelism().storage_calls
        self.threads = Threads(self._calls, "storage")
        self.many: ParallelCalls = self.threads
        self._roots = StorageRoots(roots)
        self._settings = {root.uri: root.model_dump_json(exclude={"uri"}) for root in roots}
        self._backends: dict[tuple[int, str, str], Backend] = {}
        self._grants = grants or {}
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[type[Storage], tuple[tuple[Root, ...], int, Grants]]:
        stores = [self._backend(root.uri, root) for root in self.roots if root.kerberos and root.uri.startswith("hdfs:")]
        grants = {store.url: store.grant() for store in stores if isinstance(store, HdfsBackend)}
        return type(self), (self.roots, self._calls, grants)

    def check(self, uri: str) -> str:
        """The URI in its normal spelling: scheme in lower case, no trailing slash, ``file:///`` for ``file:/``.

        Raises:
            Refused: it does not lie under a root, or has ``.``, ``..`` or empty segments.
        """
        return self._roots.of(uri)[0]

    def holds(self, uri: str) -> bool:
        """Whether a full URI lies under a root."""
        return self._roots.holds(uri)

    def status(self, uri: str) -> FileStatus | None:
        """Status of a file or directory, None where there is none."""
        try:
            return self._call(uri, lambda store, path: store.status(path))
        except FileNotFoundError:
            return None

    def exists(self, uri: str) -> bool:
        """Whether there is a file or directory."""
        return self.status(uri) is not None

    def has_directories(self, uri: str) -> bool:
        """Whether the store has directories, each of which it moves at once; of an object store each file is copied."""
        return self._store(uri).has_directories

    def lacks_directory(self, uri: str) -> bool:
        """Whether a directory is missing; never on stores that have none, where it cannot be told from an empty one."""
        return self.has_directories(uri) and not self.exists(uri)

    def ls(self, uri: str) -> list[FileStatus]:
        """What a directory holds, one level, sorted by URI; for a file, itself; [] where there is none."""
        return self._list(uri, lambda store, path: store.ls(path))

    def files(self, uri: str, *, hidden: bool = False) -> list[FileStatus]:
        """All files below a directory, sorted by URI; [] where there is none.

        Args:
            uri: the directory.
            hidden: also those that Hive does not read as data: a name below ``uri`` starts with ``.`` or ``_``.
        """
        below = len(self.check(uri).rstrip("/")) + 1
        found = self._list(uri, lambda store, path: store.walk(path, hidden=hidden))
        return [status for status in found if hidden or not paths.is_hidden(status.uri[below:])]

    def named_files(self, uri: str) -> dict[str, FileStatus]:
        """The data files below a directory (see :meth:`files`) by their paths below it."""
        below = len(self.check(uri).rstrip("/")) + 1
        return {status.uri[below:]: status for status in self.files(uri)}

    def read(self, uri: str, *, most: int | None = None) -> bytes:
        """The whole content of a (small) file.

        Args:
            uri: of the file.
            most: bytes that it may have; any number where None.

        Raises:
            TooLarge: it has more; at most a piece more of it is in memory then.
        """
        pieces: list[bytes] = []
        size = 0
        for piece in self.stream(uri):
            size += len(piece)
            if most is not None and size > most:
                raise TooLarge(f"{uri} has more than the {most:,} bytes that are read of such a file")
            pieces.append(piece)
        return b"".join(pieces)

    def stream(self, uri: str, size: int = 4 * MIB) -> Iterator[bytes]:
        """Content in pieces of up to ``size`` bytes. Not repeated on trouble: the caller starts again."""
        _, path, root = self._roots.of(uri)
        with translated(uri, root.uri):
            yield from self._backend(uri, root).stream(path, size)

    def create(
        self,
        uri: str,
        chunks: Iterable[bytes],
        *,
        block_size: int | None = None,
        replication: int | None = None,
        overwrite: bool = False,
        mode: int | None = None,
        expected: int | None = None,
    ) -> int:
        """Writes a file and makes its directories; a file that could not be written whole is removed.

        Args:
            uri: of the file.
            chunks: its content.
            block_size: bytes of an HDFS block; the store's default where None.
            replication: copies HDFS keeps; the store's default where None.
            overwrite: replace an existing file, else :class:`~hive_replication.storage.AlreadyExists`.
            mode: permission bits from the first moment on, on HDFS; the store's default where None.
            expected: bytes that there will be; None where nobody knows.

        Returns:
            Bytes written.
        """
        _, path, root = self._roots.of(uri)
        with translated(uri, root.uri):
            create = partial(self._backend(uri, root).create, path, chunks, overwrite=overwrite, mode=mode)
            return create(block_size=block_size, replication=replication, expected=expected)

    def write(
        self, uri: str, data: bytes, *, block_size: int | None = None, overwrite: bool = True, mode: int | None = None
    ) -> None:
        """Writes a small file and makes its directories, sooner than :meth:`create`; see there."""
        self._call(uri, lambda store, path: store.write(path, data, block_size=block_size, overwrite=overwrite, mode=mode))

    def write_once(self, uri: str, data: bytes) -> None:
        """Writes a small file, under another name first where it would be seen in part: also after a crash it is found whole.

        Raises:
            AlreadyExists: the name is taken.
        """
        if self._call(uri, once(data)):
            return
        # A name of this call only: of two that write at once neither may publish what the other has written in part.
        try:
            self.write(unfinished := self._unfinished(uri), data, overwrite=False)
        except AlreadyExists:  # by a write whose answer was lost
            self.write(unfinished := self._unfinished(uri), data, overwrite=False)
        try:
            self.rename(unfinished, uri)
        except AlreadyExists:
            self.delete(unfinished)
            raise

    def rename(self, source: str, target: str) -> None:
        """Gives a file or directory another name on the same store, making the directories of that name.

        Raises:
            AlreadyExists: the name is taken; nothing is ever overwritten.
            Refused: from one store to another, or a root itself.
        """
        if paths.split(source)[:2] != paths.split(target)[:2]:
            raise Refused(f"{source} cannot be renamed to {target}: they are on different stores")
        self._roots.require_below(source)
        self._call(target, moving(paths.split(source)[2], paths.split(paths.parent(target))[2]))

    def delete(self, uri: str, *, recursive: bool = False) -> bool:
        """Removes a file, an empty directory or, if ``recursive``, a directory with all it holds.

        Returns:
            False where there was none.

        Raises:
            Refused: a root itself.
        """
        self._roots.require_below(uri)
        return self._call(uri, lambda store, path: store.delete(path, recursive=recursive))

    def mkdirs(self, uri: str, mode: int | None = None) -> None:
        """Makes a directory and its parents, with a mode on HDFS; no error where it exists, and keeps its mode."""
        self._call(uri, lambda store, path: store.mkdirs(path, mode))

    def about_access(self, uri: str, call: Callable[[HdfsAccess, str], T]) -> T | None:
        """A call about owner, group, mode or ACL; None from stores without, where nothing is called."""
        return self._call(uri, partial(about_access, call))

    def access_above(self, uri: str) -> Access | None:
        """What a directory above a root allows, of which nothing else can be asked; None from stores without access.

        Raises:
            Refused: it is above none.
            FileNotFoundError: there is none.
        """
        normal, path, root = self._roots.above(uri)
        return self._asked(normal, path, root, partial(about_access, lambda store, path: store.read(path)))

    def has_checksums(self, uri: str) -> bool:
        """Whether :meth:`checksum` gives one here: HDFS whose root names its WebHDFS address."""
        return self._store(uri).has_checksums

    def checksum(self, uri: str) -> FileChecksum | None:
        """The checksum that the store itself keeps, as Hive records it in events; None for stores without.

        Raises:
            FileNotFoundError: no such file.
        """
        if not self.has_checksums(uri):
            return None
        return self._call(uri, lambda store, path: store.checksum(path))

    def space(self, uri: str) -> Space | None:
        """Room on the store of a path; None where it does not tell (HDFS without a WebHDFS address, object stores)."""
        return self._call(uri, lambda store, path: store.space(path))

    def about_webhdfs(self, uri: str, call: Callable[[WebHdfs, str], T], *, again: bool = False) -> T | None:
        """A call about what only some users need; None from stores without WebHDFS. Repeated as others are only if ``again``.

        Raises:
            ReplicationError: it does not answer as it should; OSErrors likewise.
        """
        if again:
            return self._call(uri, partial(about_webhdfs, call))
        _, path, root = self._roots.of(uri)
        with translated(uri, root.uri):
            return about_webhdfs(call, self._backend(uri, root), path)

    def _unfinished(self, uri: str) -> str:
        return f"{paths.parent(uri)}/.{paths.name(uri)}.{secrets.token_hex(8)}.new"

    def _list(self, uri: str, lister: Callable[[Backend, str], list[FileStatus]]) -> list[FileStatus]:
        # A directory below may vanish while the listing goes on; that is no reason to call the whole absent.
        for attempt in range(_ATTEMPTS):
            try:
                return sorted(self._call(uri, lister), key=lambda status: status.uri)
            except FileNotFoundError:
                if not self.exists(uri):
                    return []
                if attempt == _ATTEMPTS - 1:
                    raise
                _LOG.info("%s changed while it was listed: it is listed again", uri)
        raise AssertionError("unreachable")

    def _call(self, uri: str, call: Callable[[Backend, str], T]) -> T:
        _, path, root = self._roots.of(uri)
        return self._asked(uri, path, root, call)

    def _asked(self, uri: str, path: str, root: Root, call: Callable[[Backend, str], T]) -> T:
        with translated(uri, root.uri):
            store = self._backend(uri, root)
            after = store.after_attempt if isinstance(store, HdfsBackend) else after_nothing
            return repeated(call, store, path, uri, root, after)

    def _store(self, uri: str) -> Backend:
        _, _, root = self._roots.of(uri)
        with translated(uri, root.uri):
            return self._backend(uri, root)

    def _backend(self, uri: str, root: Root) -> Backend:
        scheme, authority, _ = paths.split(uri)
        key = (os.getpid(), url := f"{scheme}://{authority}", self._settings[root.uri])  # a fork must not use its parent's
        with self._lock:
            if key not in self._backends:
                _LOG.debug("connects to the store %s", url)
                known = root.model_copy(update={"options": resolved_options(root.options)})
                local = [paths.split(prefix)[2] for prefix in self._roots.prefixes if prefix.startswith("file:")]
                self._backends[key] = connect_backend(scheme, authority, known, local, self._grants.get(url))
            return self._backends[key]
