"""What a store must be able to do; :class:`hive_replication.storage.storage.Storage` adds roots, errors and retries."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Protocol, TypeVar

from hive_replication.storage.file_status import FileChecksum, FileStatus, Space
from hive_replication.storage.hdfs_access import HdfsAccess

T = TypeVar("T")


class Backend(Protocol):
    """One store, e.g. one HDFS. Paths are absolute and literal; URIs in answers are full.

    Absent files raise FileNotFoundError, existing ones FileExistsError. Implementations are safe to use from many threads.
    """

    has_checksums: bool
    has_directories: bool
    is_bucket: bool  # where a file is there whole or not at all, and of two that make it without overwriting one does

    @property
    def access(self) -> HdfsAccess | None:
        """Owners, groups, modes and ACLs; None for stores without, which take no notice of a mode."""
        ...

    def status(self, path: str) -> FileStatus:
        """Status of a file or directory."""
        ...

    def ls(self, path: str) -> list[FileStatus]:
        """What a directory holds, one level; for a file, itself."""
        ...

    def walk(self, path: str, *, hidden: bool) -> list[FileStatus]:
        """All files below a directory; for a file, itself.

        Args:
            path: the directory.
            hidden: also those in directories whose names start with ``.`` or ``_``; else these need not be readable.
        """
        ...

    def stream(self, path: str, size: int) -> Iterator[bytes]:
        """Contents in pieces of up to ``size`` bytes."""
        ...

    def create(
        self,
        path: str,
        chunks: Iterable[bytes],
        *,
        block_size: int | None,
        replication: int | None,
        overwrite: bool,
        mode: int | None = None,
        expected: int | None = None,
    ) -> int:
        """Writes a file, making its directories; bytes written. A file that could not be written whole is removed.

        ``expected`` is how many there will be, where it is known.
        """
        ...

    def write(self, path: str, data: bytes, *, block_size: int | None, overwrite: bool, mode: int | None = None) -> None:
        """Writes a small file, making its directories."""
        ...

    def rename(self, source: str, target: str) -> None:
        """Gives a file or directory another name that must be free and whose directory must exist."""
        ...

    def delete(self, path: str, *, recursive: bool) -> bool:
        """Removes a file or directory; False where there was none."""
        ...

    def mkdirs(self, path: str, mode: int | None = None) -> None:
        """Makes a directory and its parents; no error where it exists."""
        ...

    def checksum(self, path: str) -> FileChecksum:
        """The checksum that the store keeps; only called where ``has_checksums``."""
        ...

    def space(self, path: str) -> Space | None:
        """Room on the store of a path, which need not exist; None where it does not tell."""
        ...


def about_access(call: Callable[[HdfsAccess, str], T], store: Backend, path: str) -> T | None:
    """A call about owners, groups, modes or ACLs; None, where nothing is called, from a store without."""
    return None if store.access is None else call(store.access, path)
