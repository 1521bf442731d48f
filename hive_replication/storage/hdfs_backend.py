"""HDFS through ``hdfs-native`` (no JVM) and, for checksums and small files, WebHDFS.

``hdfs-native``'s own fsspec class cuts paths at ``#`` and ``?``; its client takes them literally, so the client is used.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Iterable, Iterator
from dataclasses import replace

import hdfs_native
from tenacity import RetryCallState, stop_after_attempt, wait_incrementing

from hive_replication.errors import ReplicationError
from hive_replication.logs import reason, repeats
from hive_replication.policy import Root
from hive_replication.retries import with_retries
from hive_replication.storage import paths
from hive_replication.storage.delegation import Grant, delegation
from hive_replication.storage.failures import NO_TOKEN, is_transient, is_unanswered
from hive_replication.storage.file_status import FileChecksum, FileStatus, NoChecksum, Space
from hive_replication.storage.hdfs_access import HdfsAccess, of_status
from hive_replication.storage.webhdfs import WebHdfs
from hive_replication.storage.webhdfs_answers import Answered
from hive_replication.tls import NotTrusted

_LOG = logging.getLogger(__name__)

_ATTEMPTS, _PAUSE = "dfs.client.failover.max.attempts", "dfs.client.failover.sleep.max.millis"
# hdfs-native's default of 15 attempts takes three minutes to notice that nobody listens; three take six seconds.
_DEFAULTS = {_ATTEMPTS: "3"}
_LONGEST_PAUSE = 2.0  # seconds between two rounds over the NameNodes of a nameservice
# On a DataNode with Kerberos the client says who asks by SASL, by whichever of these the DataNode wants
# (dfs.data.transfer.protection there), or with its key where it encrypts all (dfs.encrypt.data.transfer).
_SECURE = {"hadoop.security.authentication": "kerberos", "dfs.data.transfer.protection": "authentication,integrity,privacy"}
_OVER_WEB = 60.0  # seconds in which files are written over WebHDFS after hdfs-native could not
_SMALL = 8 << 20  # bytes that are sent in one request
_REREADS, _REREAD_PAUSE = 3, 0.5  # of a block that no DataNode gives; seconds, longer each time


class HdfsBackend:
    """One HDFS.

    Args:
        authority: ``host:port`` or ``nameservice``.
        root: with its options (Hadoop settings such as ``dfs.ha.namenodes.<nameservice>``), the addresses of WebHDFS, without
            which there are no checksums, and the account, where it asks for Kerberos.
        grant: of another process, which has the ticket.

    Raises:
        ReplicationError: it asks for Kerberos, and there is no ticket or no token.
    """

    has_directories = True
    is_bucket = False

    def __init__(self, authority: str, root: Root, grant: Grant | None = None) -> None:
        self.url = f"hdfs://{authority}"
        self.delegation = delegation(authority, root, grant.token if grant else None)
        if self.delegation:
            self.delegation.text()  # before the client connects
        waits = _failover(root.patience, _namenodes(authority, root)) if root.patience else _DEFAULTS
        self._client = hdfs_native.Client(self.url, waits | (_SECURE if self.delegation else {}) | root.options)
        hosts = (*root.webhdfs_hosts, *(grant.hosts if grant else ()))
        account = None if grant else root.kerberos
        self.webhdfs = WebHdfs(root.webhdfs, hosts, root.tls, self.delegation, account) if root.webhdfs else None
        self.has_checksums = root.webhdfs is not None
        self.access = HdfsAccess(self._client)
        self._warned = False
        self._over_web_until = 0.0  # by the monotonic clock

    def status(self, path: str) -> FileStatus:
        """Status of a file or directory."""
        found = self._client.get_file_info(path)
        return replace(self._status(found, path), access=of_status(found))

    def ls(self, path: str) -> list[FileStatus]:
        """What a directory holds, one level."""
        return [self._status(status) for status in self._client.list_status(path)]

    def walk(self, path: str, *, hidden: bool) -> list[FileStatus]:
        """All files below a directory; hidden directories, such as those of running jobs, may be for their owners alone."""
        found: list[FileStatus] = []
        pending = [path]
        while pending:
            for status in self._client.list_status(pending.pop(), recursive=hidden):
                if not status.isdir:
                    found.append(self._status(status))
                elif not (hidden or paths.is_hidden(status.path.rpartition("/")[2])):
                    pending.append(status.path)
        return found

    def stream(self, path: str, size: int) -> Iterator[bytes]:
        """Content, read block by block; read on where it stopped, a few times, where no DataNode gave a block at once.

        Hadoop's client does so, too (``dfs.client.max.block.acquire.failures``). Who needs all of one file proves it by checksum.
        """
        reader, done, lost = self._client.read(path), 0, False

        def piece() -> bytes:
            nonlocal reader, lost
            if lost:
                again = self._client.read(path)  # with where its blocks are now
                if len(again) != len(reader):
                    raise RuntimeError(f"{path} was replaced while it was read")
                reader = again
                reader.seek(done)
            lost = True
            found = reader.read(size)
            lost = False
            return found

        pauses = wait_incrementing(_REREAD_PAUSE, _REREAD_PAUSE)
        told = repeats(_LOG, "the reading of %s", self.url + path)
        while found := with_retries(piece, is_transient, stop=stop_after_attempt(1 + _REREADS), wait=pauses, before_sleep=told):
            done += len(found)
            yield found

    def create(
        self,
        path: str,
        chunks: Iterable[bytes],
        *,
        block_size: int | None,
        replication: int | None,
        overwrite: bool,
        mode: int | None = None,
        expected: int | None = None,  # noqa: ARG002
    ) -> int:
        """Writes a file; HDFS's own block size, replication and mode where None.

        ``hdfs-native`` cannot do without a lost DataNode, which the NameNode names for ten minutes; over WebHDFS DataNodes can.
        """
        if self.webhdfs and time.monotonic() < self._over_web_until:
            return self._created_over_web(path, chunks, block_size, replication, overwrite=overwrite, mode=mode)
        options = hdfs_native.WriteOptions(
            block_size=block_size, replication=replication, permission=mode, overwrite=overwrite, create_parent=True
        )
        writer = self._client.create(path, options)
        try:
            size = sum(writer.write(chunk) for chunk in chunks)
            writer.close()
        except BaseException as failure:
            if is_unanswered(failure) or is_transient(failure):
                self._over_web_until = time.monotonic() + _OVER_WEB
            self._remove_rest(path)
            raise
        return size

    def write(self, path: str, data: bytes, *, block_size: int | None, overwrite: bool, mode: int | None = None) -> None:
        """Writes a small file, over WebHDFS if it can be: ``hdfs-native`` waits half a second at each close."""
        if self.webhdfs and len(data) <= _SMALL:
            try:
                self.webhdfs.write(path, data, overwrite=overwrite, block_size=block_size, mode=mode)
            except (FileExistsError, PermissionError, NotTrusted):
                raise
            except (OSError, ReplicationError) as error:  # it may be closed to writers
                self._not_written(path, error)
            else:
                return
        self.create(path, [data], block_size=block_size, replication=None, overwrite=overwrite, mode=mode)

    def rename(self, source: str, target: str) -> None:
        """Moves a file or directory to a free name."""
        self._client.rename(source, target)

    def delete(self, path: str, *, recursive: bool) -> bool:
        """Removes a file or directory; False where there was none."""
        return self._client.delete(path, recursive)

    def mkdirs(self, path: str, mode: int | None = None) -> None:
        """Makes a directory and its parents, all with the mode."""
        self._client.mkdirs(path, 0o755 if mode is None else mode, create_parent=True)

    def checksum(self, path: str) -> FileChecksum:
        """What ``getFileChecksum`` gives, over WebHDFS.

        Raises:
            NoChecksum: Hadoop says why there is none, e.g. that blocks are lost.
        """
        assert self.webhdfs is not None  # noqa: S101 (the caller asks has_checksums first)
        try:
            return self.webhdfs.checksum(path)
        except Answered as error:
            raise NoChecksum(str(error)) from error

    def space(self, path: str) -> Space | None:  # noqa: ARG002
        """What the NameNode says of itself; None where its HTTP address is not known."""
        return self.webhdfs.space() if self.webhdfs else None

    def grant(self) -> Grant | None:
        """What a process without a ticket needs to use this HDFS as the same account; None without Kerberos.

        Raises:
            ReplicationError: there is no token to be had.
        """
        if not self.delegation or not self.webhdfs:
            return None
        return Grant(self.delegation.another(), self.webhdfs.live_datanodes())

    def after_attempt(self, state: RetryCallState) -> None:
        """Gets another token where a call failed because the one that there is is not taken any more."""
        if self.delegation and state.outcome and NO_TOKEN in str(state.outcome.exception()):
            self.delegation.refused(self.delegation.text())

    def _created_over_web(
        self,
        path: str,
        chunks: Iterable[bytes],
        block_size: int | None,
        replication: int | None,
        *,
        overwrite: bool,
        mode: int | None,
    ) -> int:
        assert self.webhdfs is not None  # noqa: S101 (the caller asks)
        size = 0

        def counted() -> Iterator[bytes]:
            nonlocal size
            for chunk in chunks:
                size += len(chunk)
                yield chunk

        try:
            self.webhdfs.write(path, counted(), overwrite=overwrite, block_size=block_size, replication=replication, mode=mode)
        except FileExistsError:
            raise
        except BaseException:
            self._over_web_until = 0.0
            if size:  # else no DataNode has begun the file, and what lies there is older
                self._remove_rest(path)
            raise
        return size

    def _remove_rest(self, path: str) -> None:
        try:
            self._client.delete(path)
        except (OSError, RuntimeError) as error:
            _LOG.warning("what was written of %s%s could not be removed: %s", self.url, path, reason(error))

    def _not_written(self, path: str, error: Exception) -> None:
        """Warns once: where WebHDFS takes no files, it takes none of many."""
        level, self._warned = logging.DEBUG if self._warned else logging.WARNING, True
        message = "WebHDFS did not take %s%s; hdfs-native writes it and others that follow: %s"
        _LOG.log(level, message, self.url, path, reason(error))

    def _status(self, status: hdfs_native.FileStatus, path: str | None = None) -> FileStatus:
        # Directories have neither blocks nor copies; HDFS says 0 for both.
        modified = status.modification_time / 1000
        uri = self.url + (path or status.path)
        return FileStatus(uri, status.length, status.isdir, modified, status.blocksize or None, status.replication or None)


def _namenodes(authority: str, root: Root) -> int:
    """How many NameNodes a nameservice has, as far as the policy says it; two at least."""
    named = root.options.get(f"dfs.ha.namenodes.{authority}", "")
    return max(2, *(len(text.split(",")) for text in (named, root.webhdfs or "")))


def _failover(seconds: float, namenodes: int) -> dict[str, str]:
    """Settings with which ``hdfs-native`` waits at least so long: it asks all NameNodes in turn and pauses after each round.

    The first two pauses have half a second at least, all others the longest that is set.
    """
    rounds = 2 + math.ceil(seconds / _LONGEST_PAUSE)
    return {_ATTEMPTS: str(rounds * namenodes), _PAUSE: str(round(1000 * _LONGEST_PAUSE))}
