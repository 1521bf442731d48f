"""Files as the witness compares them: names and sizes of a directory, and the stores' own checksums of a few files."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterable
from contextlib import suppress
from dataclasses import dataclass

from hive_replication.copy.proof import Crc32c
from hive_replication.storage import FileChecksum, FileStatus, NoChecksum, StillOpen, Storage, StorageError
from hive_replication.storage.hdfs_facts import is_encrypted
from hive_replication.verify.compare import NOT_COMPARED
from hive_replication.verify.listing_digest import is_unfinished

PER_DIRECTORY = 2  # checksums, at most
EVERY = 200  # likewise, of a directory that is looked at again
_SMALL = 1 << 20  # bytes of a file that may be read
_LOST = FileChecksum("", "none")


@dataclass(frozen=True, slots=True)
class Directories:
    """The directory of an object on both sides.

    Args:
        source: its URI, "" where it has none.
        target: the replica's.
        most: most files whose checksums may be asked for.
        first: relative names of files that are among these whatever happens: those that differed before.
    """

    source: str
    target: str
    most: int
    first: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What was read of the data files of an object.

    Args:
        source: by relative name; the reason under "" where they cannot be read.
        target: the replica's.
        checksums: of how many checksums or content were compared.
        unread: whether there may be other rows in them, which are too many to be read.
    """

    source: dict[str, str]
    target: dict[str, str]
    checksums: int
    unread: bool = False


def file_facts(source: Storage, target: Storage, directories: Directories) -> FileFacts:
    """What is read of the data files of an object on both sides, by relative name."""
    try:
        return _file_facts(source, target, directories)
    except NOT_COMPARED as error:
        return FileFacts({"": str(error)}, {}, 0)


def _file_facts(source: Storage, target: Storage, directories: Directories) -> FileFacts:
    ours = source.named_files(directories.source) if directories.source else {}
    theirs = target.named_files(directories.target) if directories.target else {}
    left, right = (
        {name: f"{status.size} bytes" for name, status in found.items() if not is_unfinished(name)} for found in (ours, theirs)
    )
    same = sorted(name for name, facts in left.items() if right.get(name) == facts and ours[name].size)
    comparable = [name for name in same if is_comparable(source, target, ours[name], theirs[name])]
    compared = 0
    for name in sampled(comparable, directories.most, directories.first):
        checksums = content_checksums(source, target, ours[name], theirs[name])
        for facts, checksum in zip((left, right), checksums, strict=False):
            facts[name] += f", checksum {checksum[-16:]}"
        compared += bool(checksums)
    return FileFacts(left, right, compared)


def sampled(names: Iterable[str], most: int, first: Collection[str]) -> list[str]:
    """So many of the names, chosen by chance, with all that are to come first: a known difference is not left to chance."""
    known, others = list[str](), list[str]()
    for name in names:
        (known if name in first else others).append(name)
    return known + random.sample(others, min(len(others), max(0, most - len(known))))


def is_comparable(source: Storage, target: Storage, ours: FileStatus, theirs: FileStatus) -> bool:
    """Whether more than the sizes of a file can be compared, as far as its stores tell before they are asked for checksums."""
    return ours.size <= _SMALL or (source.has_checksums(ours.uri) and target.has_checksums(theirs.uri))


def content_checksums(source: Storage, target: Storage, ours: FileStatus, theirs: FileStatus) -> tuple[str, ...]:
    """Of a file on both sides: the stores' own or, of a small file where these tell nothing of each other, of its content.

    Stores other than HDFS have none. A copy whose blocks are lost, or that its store cannot read, has none either. Nothing where
    there is nothing to compare.
    """
    with suppress(FileNotFoundError, StillOpen):
        one, other = _checksum(source, ours.uri), _checksum(target, theirs.uri)
        if one is _LOST:
            return ()
        if other is _LOST:
            return (one.value if one else "of no store"), _LOST.value
        if one and other and are_comparable(source, target, (ours.uri, one), (theirs.uri, other)):
            return one.value, other.value
        if ours.size <= _SMALL:
            content = Crc32c.of(source.stream(ours.uri)).hex
            try:
                return content, Crc32c.of(target.stream(theirs.uri)).hex
            except StorageError:
                return content, _LOST.value
    return ()


def are_comparable(source: Storage, target: Storage, ours: tuple[str, FileChecksum], theirs: tuple[str, FileChecksum]) -> bool:
    """Whether the checksums of two files, by their URIs, tell of each other.

    Those of files in blocks of other sizes have other names, and in an encryption zone HDFS's are of what it encrypted.
    """
    one, other = ours[1], theirs[1]
    if one == other or one.algorithm != other.algorithm:
        return one == other
    places = (source, ours[0]), (target, theirs[0])
    return not any(storage.about_webhdfs(uri, is_encrypted, again=True) for storage, uri in places)


def _checksum(storage: Storage, uri: str) -> FileChecksum | None:
    """A file's checksum; None where its store has none of any file."""
    try:
        return storage.checksum(uri)
    except NoChecksum:
        return _LOST
