"""Files of HDFS are read on where no DataNode gave a block for a moment. Its client is stood for: no DataNode fails at will."""

from __future__ import annotations

import pytest

from hive_replication.policy import Root
from hive_replication.storage import hdfs_backend
from hive_replication.storage.hdfs_backend import HdfsBackend

CONTENT = bytes(range(10))


class Reader:
    """Of a file, which fails at its reads of these numbers; the client counts those of all its readers."""

    def __init__(self, client: Client) -> None:
        self._client, self._offset, self.length = client, 0, len(CONTENT)

    def __len__(self) -> int:
        return self.length

    def seek(self, offset: int) -> None:
        self._offset = offset

    def read(self, size: int) -> bytes:
        self._client.reads += 1
        if self._client.reads in self._client.failing:
            self._offset += 1  # nobody says where a reader that failed stands
            raise RuntimeError(self._client.error)
        piece = CONTENT[self._offset : self._offset + size]
        self._offset += len(piece)
        return piece


class Client:
    """Gives readers of one file."""

    def __init__(self, failing: set[int], error: str = 'DataTransferError("All DataNodes failed: []")') -> None:
        self.failing, self.error, self.reads = failing, error, 0

    def read(self, path: str) -> Reader:
        return Reader(self)


class Replaced(Client):
    """Another file is in its place when it is read again."""

    def read(self, path: str) -> Reader:
        reader = super().read(path)
        reader.length -= bool(self.reads)
        return reader


def pieces(client: Client, monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    monkeypatch.setattr(hdfs_backend, "_REREAD_PAUSE", 0.0)
    backend = HdfsBackend("nn:8020", Root(uri="hdfs://nn:8020/"))
    monkeypatch.setattr(backend, "_client", client)
    return list(backend.stream("/f", 4))


@pytest.mark.parametrize("failing", [set[int](), {1}, {2}, {2, 3, 4}, {1, 3, 5, 7}])
def test_a_file_is_read_on_where_it_stopped(failing: set[int], monkeypatch: pytest.MonkeyPatch) -> None:
    assert pieces(Client(failing), monkeypatch) == [CONTENT[:4], CONTENT[4:8], CONTENT[8:]]


@pytest.mark.parametrize(
    ("client", "reads"),
    [
        (Client({2, 3, 4, 5}), 5),  # nobody gives the block
        (Client({2}, "ChecksumError"), 2),  # it is damaged
        (Replaced({1}), 1),
    ],
)
def test_what_does_not_pass_is_an_error(client: Client, reads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(RuntimeError):
        pieces(client, monkeypatch)
    assert client.reads == reads
