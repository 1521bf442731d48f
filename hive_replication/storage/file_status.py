"""What storage says about a file, and its own error."""

from __future__ import annotations

from dataclasses import dataclass

from hive_replication.errors import ReplicationError
from hive_replication.storage.access import Access


class AlreadyExists(ReplicationError, FileExistsError):
    """A file or directory has the name that was to be given; nothing was overwritten."""


class Denied(ReplicationError, PermissionError):
    """The account lacks a right on a file or directory; ``strerror`` is the message, as of other OSErrors."""

    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.strerror = message


class StorageError(ReplicationError):
    """A store that answers refused what was asked about a file or directory, for a reason that has no error of its own.

    Such as that its blocks are lost, or that the key of its encryption zone is not to be had.
    """


class TooLarge(ReplicationError, ValueError):
    """A file has more bytes than its reader expects; the rest of it was not read."""


class NoChecksum(ReplicationError):
    """HDFS answers that it has no checksum of a file, such as of one whose blocks are lost or damaged."""


class StillOpen(NoChecksum):
    """HDFS has no checksum of a file that is being written."""


class Late(ReplicationError):
    """HDFS did not tell the checksum of a file in the time for one of its size: asking again at once would take as long."""


@dataclass(frozen=True, slots=True)
class FileStatus:
    """A file or directory.

    Args:
        uri: full URI, never percent-encoded.
        size: bytes; 0 for a directory.
        is_dir: whether it is a directory.
        modified: seconds since the epoch.
        block_size: bytes of an HDFS block, None for directories and other stores.
        replication: copies that HDFS keeps of each block, None for directories, erasure-coded files and other stores.
        access: owner, group and mode, without an ACL; None where it was not asked for alone, and of other stores.
    """

    uri: str
    size: int
    is_dir: bool
    modified: float
    block_size: int | None = None
    replication: int | None = None
    access: Access | None = None


@dataclass(frozen=True, slots=True)
class FileChecksum:
    """A checksum kept by the store itself.

    Args:
        algorithm: Hadoop's name, e.g. ``MD5-of-0MD5-of-512CRC32C``.
        value: lowercase hex of the bytes of Hadoop's ``FileSystem.getFileChecksum``, as Hive records it.
    """

    algorithm: str
    value: str


@dataclass(frozen=True, slots=True)
class Space:
    """Room on a store.

    Args:
        total: bytes.
        free: bytes; what is written to HDFS takes its replication factor times as many.
    """

    total: int
    free: int
