"""Parts of requests to WebHDFS: the DataNode that answers, how long it may take, and content that is sent."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import urllib3

from hive_replication.storage.file_status import Late
from hive_replication.storage.webhdfs_answers import Slow

_LARGE = 32 << 30  # bytes of a file whose checksum may need longer than all other answers
_PACE = 1 << 30  # bytes of a file a second, block by block: of each a DataNode reads the checksums
_CONNECT, _LEAST = 5, 60  # seconds


class DataNode(NamedTuple):
    """Where the NameNode has sent us: any DataNode answers for any file, so it is asked at once the next time."""

    address: str
    query: str

    @classmethod
    def of(cls, url: str | None) -> DataNode | None:
        """The one that a redirect led to, with its query but for the token, which changes; None where there was none."""
        found = urlsplit(url or "")
        if not found.netloc or "namenoderpcaddress=" not in found.query:
            return None
        query = "&".join(part for part in found.query.split("&") if not part.startswith("delegation="))
        return cls(f"{found.scheme}://{found.netloc}", query)


class Patience:
    """How long the checksum of one file may take: a DataNode answers once those of all its blocks are read.

    A file's size is asked for only where the answer did not come in the time that all others have.

    Args:
        path: of the file.
        status: asks a NameNode for its status.
    """

    def __init__(self, path: str, status: Callable[[], Mapping[str, Any]]) -> None:
        self._path, self._status = path, status
        self.timeout: urllib3.Timeout | None = None

    def after(self, error: Exception) -> None:
        """After an attempt that failed: the next one may take longer where it was the answer that did not come.

        Raises:
            OSError: no NameNode answers, so that it is not for the file's size.
            Late: it did not come in the time for a file of its size either.
        """
        if not isinstance(error, Slow):
            return
        if self.timeout:
            raise Late(f"{self._path} has no checksum within {self.timeout.read_timeout:g} s: {error}")
        size = self._status().get("length")
        if isinstance(size, int) and size >= _LARGE:
            self.timeout = urllib3.Timeout(connect=_CONNECT, read=_LEAST + size / _PACE)


class Pieces:
    """Content that can be sent once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self.begun = pieces, False

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.begun = True
            yield piece
