"""Parts of requests to WebHDFS: the DataNode that answers, and content that is sent."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit


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


class Pieces:
    """Content that can be sent once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces, self.begun = pieces, False

    def __iter__(self) -> Iterator[bytes]:
        for piece in self._pieces:
            self.begun = True
            yield piece
