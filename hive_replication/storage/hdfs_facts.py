"""What an HDFS tells of itself and of its directories by WebHDFS, as far as the account may ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from pathlib import PurePosixPath
from typing import Any, cast

from hive_replication.errors import ReplicationError
from hive_replication.storage.webhdfs import WebHdfs

_TYPES = {1: "CRC32", 2: "CRC32C"}  # of org.apache.hadoop.util.DataChecksum


@dataclass(frozen=True, slots=True)
class ServerDefaults:
    """What the NameNode tells its clients to begin with (``FsServerDefaults``).

    Args:
        bytes_per_checksum: ``dfs.bytes-per-checksum``.
        checksum_type: ``dfs.checksum.type``.
        trash_minutes: ``fs.trash.interval``; 0 where deleted files are gone at once.
        encrypts_transfer: ``dfs.encrypt.data.transfer``.
    """

    bytes_per_checksum: int
    checksum_type: str
    trash_minutes: int
    encrypts_transfer: bool


@dataclass(frozen=True, slots=True)
class Directory:
    """A directory that may be of a special kind.

    Args:
        path: absolute.
        encrypted: whether it lies in an encryption zone.
        coded: the erasure coding policy of its new files; "" where they are replicated.
        snapshots: whether it is one of which snapshots may be made.
    """

    path: str
    encrypted: bool
    coded: str
    snapshots: bool


@dataclass(frozen=True, slots=True)
class Quota:
    """The quotas of a directory and what is used of them.

    Args:
        names: how many files and directories it may hold; None where it has no such quota.
        names_used: how many it holds.
        space: bytes that it may hold, each copy counted; None where it has no such quota.
        space_used: bytes that it holds.
    """

    names: int | None
    names_used: int
    space: int | None
    space_used: int


def server_defaults(web: WebHdfs, path: str) -> ServerDefaults:
    """Asks for the NameNode's defaults (Hadoop 3.1 and later).

    Raises:
        ReplicationError: it does not tell them; OSErrors likewise.
    """
    found = web.asked(path, "GETSERVERDEFAULTS", "FsServerDefaults")
    try:
        with_words = _TYPES.get(found.get("checksumType", 0), "another type")
        return ServerDefaults(
            int(found["bytesPerChecksum"]), with_words, int(found["trashInterval"]), bool(found["encryptDataTransfer"])
        )
    except (LookupError, TypeError, ValueError) as error:
        raise ReplicationError(f"GETSERVERDEFAULTS is answered without {error}") from error


def directories(web: WebHdfs, path: str) -> Iterator[Directory]:
    """A directory, and then those in it, a page at a time.

    Raises:
        FileNotFoundError: there is no such directory.
        ReplicationError: WebHDFS does not answer as it should; OSErrors likewise.
    """
    top = web.asked(path, "GETFILESTATUS", "FileStatus")
    yield _directory(path, top)
    after, more = "", top.get("type") == "DIRECTORY"
    while more:
        listing = web.asked(path, "LISTSTATUS_BATCH", "DirectoryListing", **({"startAfter": after} if after else {}))
        try:
            page = cast("list[Mapping[str, Any]]", listing["partialListing"]["FileStatuses"]["FileStatus"])
            for one in page:
                after = str(one["pathSuffix"])
                if one["type"] == "DIRECTORY":
                    yield _directory(f"{path.rstrip('/')}/{after}", one)
            more = bool(page) and int(listing["remainingEntries"]) > 0
        except (LookupError, TypeError, ValueError) as error:
            raise ReplicationError(f"LISTSTATUS_BATCH of {path} is answered without {error}") from error


def is_encrypted(web: WebHdfs, path: str) -> bool:
    """Whether a file or directory lies in an encryption zone.

    Raises:
        FileNotFoundError: there is nothing of the name.
        ReplicationError: WebHDFS does not answer as it should; OSErrors likewise.
    """
    return bool(web.asked(path, "GETFILESTATUS", "FileStatus").get("encBit"))


def zone_of(web: WebHdfs, path: str) -> tuple[str, ...]:
    """The directory at which the encryption zone of a file or directory begins; empty where it lies in none.

    Raises: as :func:`is_encrypted`.
    """
    place = PurePosixPath(path)
    encrypted = list(takewhile(partial(is_encrypted, web), map(str, (place, *place.parents))))
    return tuple(encrypted[-1:])


def zones_in(web: WebHdfs, path: str) -> tuple[str, ...]:
    """Where the encryption zone of a directory begins, or else those that begin with directories in it.

    Raises: as :func:`is_encrypted`.
    """
    top, *inside = directories(web, path)
    return zone_of(web, path) if top.encrypted else tuple(one.path for one in inside if one.encrypted)


def quota(web: WebHdfs, path: str) -> Quota:
    """The quotas of a directory itself, not those of directories above it. Without any the NameNode counts all that it holds.

    Raises:
        FileNotFoundError: there is no such directory.
        ReplicationError: WebHDFS does not answer as it should; OSErrors likewise.
    """
    found = web.asked(path, "GETQUOTAUSAGE", "QuotaUsage")
    try:
        names, used, space, bytes_ = (
            int(found[name]) for name in ("quota", "fileAndDirectoryCount", "spaceQuota", "spaceConsumed")
        )
    except (LookupError, TypeError, ValueError) as error:
        raise ReplicationError(f"GETQUOTAUSAGE of {path} is answered without {error}") from error
    return Quota(names if names >= 0 else None, used, space if space >= 0 else None, bytes_)


def _directory(path: str, status: Mapping[str, Any]) -> Directory:
    coded = str(status.get("ecPolicy") or "") if status.get("ecBit") else ""
    return Directory(path, bool(status.get("encBit")), coded, bool(status.get("snapshotEnabled")))
