"""Checksums over WebHDFS: ``GETFILECHECKSUM`` gives the same bytes as Hadoop's ``FileSystem.getFileChecksum``."""

from __future__ import annotations

import getpass
import os
from itertools import cycle
from typing import TypedDict
from urllib.parse import quote

import requests
from requests.adapters import HTTPAdapter
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt, wait_random_exponential

from hive_replication.errors import ReplicationError
from hive_replication.storage.records import FileChecksum

_CONNECTIONS = 256
_TIMEOUT = (5, 60)  # Seconds to connect, and to wait for a DataNode that reads the checksums of all blocks.
_ATTEMPTS = 4


class _Busy(OSError):
    """The server could not answer now: standby NameNode, safe mode, a lost DataNode."""


class _Answer(TypedDict):
    algorithm: str
    bytes: str
    length: int


class WebHdfs:
    """The WebHDFS of one cluster. Safe to use from many threads.

    Args:
        addresses: e.g. ``http://namenode:9870``; several, comma-separated, are tried in turn (standby NameNodes refuse).
    """

    def __init__(self, addresses: str) -> None:
        self._addresses = [address.strip().rstrip("/") for address in addresses.split(",")]
        self._session = requests.Session()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, HTTPAdapter(_CONNECTIONS // 16, _CONNECTIONS))
        # As hdfs-native and Hadoop's simple authentication do.
        self._user = os.environ.get("HADOOP_USER_NAME") or getpass.getuser()

    def checksum(self, path: str) -> FileChecksum:
        """The checksum of a file's bytes as they lie in HDFS.

        Raises:
            FileNotFoundError: no such file (or a directory).
            PermissionError: the user may not read it.
            OSError: no answer after several attempts.
        """
        retrying = Retrying(
            retry=retry_if_exception_type((_Busy, requests.ConnectionError, requests.Timeout)),
            stop=stop_after_attempt(_ATTEMPTS),
            wait=wait_random_exponential(0.2, max=5),
            reraise=True,
        )
        addresses = cycle(self._addresses)
        return retrying(lambda: self._checksum_from(next(addresses), path))

    def _checksum_from(self, address: str, path: str) -> FileChecksum:
        url = f"{address}/webhdfs/v1{quote(path)}"
        response = self._session.get(url, params={"op": "GETFILECHECKSUM", "user.name": self._user}, timeout=_TIMEOUT)
        if response.status_code == 200:
            answer: _Answer = response.json()["FileChecksum"]
            # The text may be longer than the checksum: Hadoop writes its whole buffer, padded with zeros.
            return FileChecksum(answer["algorithm"], answer["bytes"][: 2 * answer["length"]].lower())
        raise _error(path, response)


def _error(path: str, response: requests.Response) -> Exception:
    """What an answer other than 200 means; WebHDFS names Hadoop's exception in a RemoteException."""
    text = " ".join(response.text.split())[:300]
    if response.status_code == 404:
        return FileNotFoundError(path)
    if "StandbyException" in text or "RetriableException" in text or response.status_code >= 500:
        return _Busy(f"WebHDFS answered {response.status_code} for {path}: {text}")
    if response.status_code in (401, 403) and "FileNotFound" not in text:
        return PermissionError(f"WebHDFS refused the checksum of {path}: {text}")
    return ReplicationError(f"WebHDFS answered {response.status_code} for the checksum of {path}: {text}")
