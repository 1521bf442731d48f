"""HDFS over HTTP: small files, free space, and ``GETFILECHECKSUM``: the bytes of Hadoop's ``FileSystem.getFileChecksum``."""

from __future__ import annotations

import getpass
import os
from contextlib import suppress
from itertools import count, cycle
from typing import NamedTuple, TypedDict
from urllib.parse import quote, urlencode, urlsplit

import urllib3
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from hive_replication.errors import ReplicationError
from hive_replication.storage.records import FileChecksum, Space, StillOpen

_HOSTS = 1024  # The NameNode redirects to any DataNode; connections to so many are kept.
_CONNECTIONS = 32  # To one host, at once: enough to keep it busy.
_TIMEOUT = urllib3.Timeout(connect=5, read=60)  # Seconds; a DataNode reads the checksums of all blocks before it answers.
_REDIRECTS = urllib3.Retry(connect=0, read=0, other=0, redirect=3)
_ATTEMPTS = 4
_ASK_AGAIN = 50  # After so many checksums the NameNode is asked again, so that work goes to all DataNodes, new ones too.


class _Busy(OSError):
    """No answer now: nobody listens, a standby NameNode, safe mode."""


class _Failing(ReplicationError):
    """An answer that may be better next time: the DataNode that was asked is lost."""


class _Answer(TypedDict):
    algorithm: str
    bytes: str
    length: int


class _Filesystem(TypedDict):
    CapacityTotal: int
    CapacityRemaining: int


class _DataNode(NamedTuple):
    """Where the NameNode has sent us: any DataNode answers for any file, so it is asked at once the next time."""

    address: str
    query: str

    @classmethod
    def of(cls, url: str | None) -> _DataNode | None:
        """The one that a redirect led to; None where there was none, or where it came with a token."""
        found = urlsplit(url or "")
        if not found.netloc or "namenoderpcaddress=" not in found.query or "delegation=" in found.query:
            return None
        return cls(f"{found.scheme}://{found.netloc}", found.query)


class WebHdfs:
    """The WebHDFS of one cluster. Safe to use from many threads.

    ``requests`` would need three times the CPU per checksum, which is most of the CPU that copying a small file needs. So would
    asking the NameNode each time: it redirects to a DataNode, and half of the time goes there.

    Args:
        addresses: e.g. ``http://namenode:9870``; several, comma-separated, are tried in turn (standby NameNodes refuse).
    """

    def __init__(self, addresses: str) -> None:
        self._addresses = [address.strip().rstrip("/") for address in addresses.split(",")]
        self._pool = urllib3.PoolManager(_HOSTS, maxsize=_CONNECTIONS, block=True, timeout=_TIMEOUT, retries=_REDIRECTS)
        # As hdfs-native and Hadoop's simple authentication do.
        self._user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()
        self._query = urlencode({"op": "GETFILECHECKSUM", "user.name": self._user})
        self._datanodes: dict[_DataNode, None] = {}
        self._asked = count()

    def checksum(self, path: str) -> FileChecksum:
        """The checksum of a file's bytes as they lie in HDFS.

        Raises:
            FileNotFoundError: no such file (or a directory).
            PermissionError: the user may not read it.
            OSError: no answer after several attempts.
            StillOpen: the file is being written.
            ReplicationError: another answer, e.g. that blocks are lost.
        """
        retrying = Retrying(
            retry=retry_if_exception_type((_Busy, _Failing)),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_random_exponential(0.2, max=5),
            reraise=True,
        )
        addresses = cycle(self._addresses)
        return retrying(lambda: self._checksum_from(next(addresses), path))

    def space(self) -> Space | None:
        """Room on the cluster, from the NameNode's metrics (WebHDFS itself tells only from Hadoop 3.4 on); None where refused."""
        for address in self._addresses:
            with suppress(urllib3.exceptions.HTTPError, ValueError, LookupError):
                response = self._pool.request("GET", f"{address}/jmx?qry=Hadoop:service=NameNode,name=FSNamesystem")
                found: _Filesystem = response.json()["beans"][0]
                return Space(found["CapacityTotal"], found["CapacityRemaining"])
        return None

    def write(self, path: str, data: bytes, *, overwrite: bool, block_size: int | None = None) -> None:
        """Writes a small file; with HDFS's own block size where None.

        Raises:
            FileExistsError: there is one, and it is not to be replaced.
            PermissionError: the user may not write it.
            OSError: no answer.
            ReplicationError: another answer.
        """
        sizes = {"blocksize": block_size} if block_size else {}
        query = urlencode({"op": "CREATE", "overwrite": str(overwrite).lower(), "user.name": self._user} | sizes)
        for address in self._addresses:
            url = f"{address}/webhdfs/v1{quote(path)}?{query}"
            try:
                sent = self._pool.request("PUT", url, redirect=False)
                if sent.status == 307:
                    sent = self._pool.request("PUT", sent.headers["Location"], body=data, redirect=False, retries=False)
            except urllib3.exceptions.HTTPError as error:
                raise _Busy(f"no answer from WebHDFS: {error}") from error
            if sent.status == 201:
                return
            error = _error(path, sent.status, sent.data.decode(errors="replace"))
            if not isinstance(error, _Busy):
                raise error
        raise _Busy(f"none of {', '.join(self._addresses)} takes files")

    def _checksum_from(self, address: str, path: str) -> FileChecksum:
        known, number = list(self._datanodes), next(self._asked)
        if not known or number % _ASK_AGAIN == 0:
            return self._asked_for(path, address, self._query)
        datanode = known[number % len(known)]
        try:
            return self._asked_for(path, *datanode)
        except (_Busy, _Failing):
            self._datanodes.pop(datanode, None)  # the next attempt asks another one, or the NameNode
            raise

    def _asked_for(self, path: str, address: str, query: str) -> FileChecksum:
        try:
            response = self._pool.request("GET", f"{address}/webhdfs/v1{quote(path)}?{query}")
        except urllib3.exceptions.HTTPError as error:
            raise _Busy(f"no answer from WebHDFS: {error}") from error
        if response.status != 200:
            raise _error(path, response.status, response.data.decode(errors="replace"))
        if datanode := _DataNode.of(response.geturl()):
            self._datanodes[datanode] = None
        answer: _Answer = response.json()["FileChecksum"]
        # The text may be longer than the checksum: Hadoop writes its whole buffer, padded with zeros.
        return FileChecksum(answer["algorithm"], answer["bytes"][: 2 * answer["length"]].lower())


def _error(path: str, status: int, body: str) -> Exception:
    """What an answer other than 200 means; WebHDFS names Hadoop's exception in a RemoteException."""
    text = " ".join(body.split())[:300]
    if status == 404:
        return FileNotFoundError(path)
    if "FileAlreadyExistsException" in text:
        return FileExistsError(path)
    if "StandbyException" in text or "RetriableException" in text:
        return _Busy(f"WebHDFS answered {status}: {text}")
    if "is under construction" in text:
        return StillOpen(f"{path} is still being written: HDFS has no checksum of it yet")
    if status == 401 or "AccessControlException" in text or "SecurityException" in text:
        return PermissionError(f"WebHDFS refused the checksum of {path}: {text}")
    # Hadoop answers 403 to any IOException that it knows no better code for.
    return (_Failing if status >= 500 else ReplicationError)(f"WebHDFS answered {status} for {path}: {text}")
