"""Digests of the files of a dump, and the files read by them: nothing else than what was written is ever read."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from threading import Lock

from hive_replication.storage import Storage, TooLarge

MIB = 1 << 20
#: Bytes of the ack file, the header, one ``_metadata``, one ``_files`` and one Parquet file; greater ones are refused unread.
MOST = {"_finished_dump": 16 * MIB, "_dumpmetadata": 16 * MIB, "_metadata": 80 * MIB, "_files": 64 * MIB, ".parquet": 96 * MIB}
#: Bytes of small files that stay in memory between being verified and being read.
_KEPT, _SMALL = 16 * MIB, MIB


@dataclass(frozen=True, slots=True)
class FileDigest:
    """What was written into a file.

    Args:
        size: bytes.
        sha256: lowercase hex.
    """

    size: int
    sha256: str


def digest_of(data: bytes) -> FileDigest:
    """The digest of a file's content."""
    return FileDigest(len(data), hashlib.sha256(data).hexdigest())


def most_of(path: str) -> int:
    """Bytes that a file of a dump may have."""
    name = path.rpartition("/")[2]
    return MOST[".parquet"] if name.endswith(".parquet") else MOST.get(name, MOST["_metadata"])


class DumpFiles:
    """The files of one dump.

    Args:
        storage: where it lies.
        directory: its directory.
        digests: of all its files by their paths below it; None for a dump of an earlier version, which has none.
    """

    def __init__(self, storage: Storage, directory: str, digests: Mapping[str, FileDigest] | None) -> None:
        self._storage, self._directory, self._digests = storage, directory, digests
        self._kept: dict[str, bytes] = {}
        self._room, self._lock = _KEPT, Lock()

    def read(self, path: str) -> bytes:
        """The content of a file.

        Raises:
            FileNotFoundError: there is no such file, or it is not of the dump.
            ValueError: it is not what was written, or larger than any file of its kind.
        """
        if path in self._kept:
            return self._kept[path]
        expected = self._expected(path)
        uri = f"{self._directory}/{path}"
        if expected is None:
            return self._storage.read(uri, most=most_of(path))
        try:
            data = self._storage.read(uri, most=expected.size)
        except TooLarge:
            raise _differs(path) from None
        if digest_of(data) != expected:
            raise _differs(path)
        return data

    def verify(self) -> None:
        """Reads all files once, each in pieces, and compares them with their digests; a dump without digests is not read.

        Raises:
            FileNotFoundError: one is absent.
            ValueError: one is not what was written, or larger than any file of its kind.
        """
        for _ in self._storage.threads.map(self._verify, self._digests or ()):
            pass

    def _verify(self, path: str) -> None:
        expected = self._expected(path)
        assert expected is not None  # noqa: S101 - the paths are those of the digests
        if self._keeps(path, expected.size):
            return
        hashed, size = hashlib.sha256(), 0
        for piece in self._storage.stream(f"{self._directory}/{path}", MIB):
            hashed.update(piece)
            size += len(piece)
            if size > expected.size:
                break
        if FileDigest(size, hashed.hexdigest()) != expected:
            raise _differs(path)

    def _keeps(self, path: str, size: int) -> bool:
        """Reads a small file and keeps it, as long as there is room: it is read again soon."""
        with self._lock:
            if size > min(self._room, _SMALL):
                return False
            self._room -= size
        self._kept[path] = self.read(path)
        return True

    def _expected(self, path: str) -> FileDigest | None:
        if self._digests is None:
            return None
        expected = self._digests.get(path)
        if expected is None:
            raise FileNotFoundError(f"{self._directory}/{path} is not a file that the dump was finished with")
        if expected.size > most_of(path):
            raise ValueError(f"{path} has {expected.size:,} bytes, more than the {most_of(path):,} that are read")
        return expected


def _differs(path: str) -> ValueError:
    return ValueError(f"{path} is not what was written: its SHA-256 differs")
