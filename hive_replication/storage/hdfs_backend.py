"""HDFS through ``hdfs-native`` (no JVM) and, for checksums and small files, WebHDFS.

``hdfs-native``'s own fsspec class cuts paths at ``#`` and ``?``; its client takes them literally, so the client is used.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Iterator
from dataclasses import replace

import hdfs_native
from tenacity import RetryCallState

from hive_replication.errors import ReplicationError
from hive_replication.logs import reason
from hive_replication.policy import Root
from hive_replication.storage.delegation import Grant, delegation
from hive_replication.storage.failures import NO_TOKEN
from hive_replication.storage.file_status import FileChecksum, FileStatus, Space
from hive_replication.storage.hdfs_access import HdfsAccess, of_status
from hive_replication.storage.webhdfs import WebHdfs
from hive_replication.tls import NotTrusted

_LOG = logging.getLogger(__name__)

# hdfs-native's default of 15 attempts takes three minutes to notice that nobody listens; three take six seconds.
_DEFAULTS = {"dfs.client.failover.max.attempts": "3"}
# On a DataNode with Kerberos the client says who asks by SASL, by whichever of these the DataNode wants
# (dfs.data.transfer.protection there), or with its key where it encrypts all (dfs.encrypt.data.transfer).
_SECURE = {"hadoop.security.authentication": "kerberos", "dfs.data.transfer.protection": "authentication,integrity,privacy"}
_SMALL = 8 << 20  # bytes that are sent in one request


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

    def __init__(self, authority: str, root: Root, grant: Grant | None = None) -> None:
        self.url = f"hdfs://{authority}"
        self.delegation = delegation(authority, root, grant.token if grant else None)
        if self.delegation:
            self.delegation.text()  # before the client connects
        self._client = hdfs_native.Client(self.url, _DEFAULTS | (_SECURE if self.delegation else {}) | root.options)
        hosts = (*root.webhdfs_hosts, *(grant.hosts if grant else ()))
        account = None if grant else root.kerberos
        self._webhdfs = WebHdfs(root.webhdfs, hosts, root.tls, self.delegation, account) if root.webhdfs else None
        self.has_checksums = root.webhdfs is not None
        self.access = HdfsAccess(self._client)
        self._warned = False

    def status(self, path: str) -> FileStatus:
        """Status of a file or directory."""
        found = self._client.get_file_info(path)
        return replace(self._status(found, path), access=of_status(found))

    def ls(self, path: str) -> list[FileStatus]:
        """What a directory holds, one level."""
        return [self._status(status) for status in self._client.list_status(path)]

    def walk(self, path: str) -> list[FileStatus]:
        """All files below a directory."""
        return [self._status(status) for status in self._client.list_status(path, recursive=True) if not status.isdir]

    def stream(self, path: str, size: int) -> Iterator[bytes]:
        """Content, read block by block."""
        reader = self._client.read(path)
        while piece := reader.read(size):
            yield piece

    def create(
        self,
        path: str,
        chunks: Iterable[bytes],
        *,
        block_size: int | None,
        replication: int | None,
        overwrite: bool,
        mode: int | None = None,
    ) -> int:
        """Writes a file; HDFS's own block size, replication and mode where None."""
        options = hdfs_native.WriteOptions(
            block_size=block_size, replication=replication, permission=mode, overwrite=overwrite, create_parent=True
        )
        writer = self._client.create(path, options)
        try:
            size = sum(writer.write(chunk) for chunk in chunks)
            writer.close()
        except BaseException:
            try:
                self._client.delete(path)
            except (OSError, RuntimeError) as error:
                _LOG.warning("what was written of %s%s could not be removed: %s", self.url, path, reason(error))
            raise
        return size

    def write(self, path: str, data: bytes, *, block_size: int | None, overwrite: bool, mode: int | None = None) -> None:
        """Writes a small file, over WebHDFS if it can be: ``hdfs-native`` waits half a second at each close."""
        if self._webhdfs and len(data) <= _SMALL:
            try:
                self._webhdfs.write(path, data, overwrite=overwrite, block_size=block_size, mode=mode)
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
        """What ``getFileChecksum`` gives, over WebHDFS."""
        assert self._webhdfs is not None  # noqa: S101 (the caller asks has_checksums first)
        return self._webhdfs.checksum(path)

    def space(self, path: str) -> Space | None:  # noqa: ARG002
        """What the NameNode says of itself; None where its HTTP address is not known."""
        return self._webhdfs.space() if self._webhdfs else None

    def examine(self) -> None:
        """Asks WebHDFS, where there is one; see :meth:`WebHdfs.examine`."""
        if self._webhdfs:
            self._webhdfs.examine()

    def grant(self) -> Grant | None:
        """What a process without a ticket needs to use this HDFS as the same account; None without Kerberos.

        Raises:
            ReplicationError: there is no token to be had.
        """
        if not self.delegation or not self._webhdfs:
            return None
        return Grant(self.delegation.another(), self._webhdfs.live_datanodes())

    def after_attempt(self, state: RetryCallState) -> None:
        """Gets another token where a call failed because the one that there is is not taken any more."""
        if self.delegation and state.outcome and NO_TOKEN in str(state.outcome.exception()):
            self.delegation.refused(self.delegation.text())

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
