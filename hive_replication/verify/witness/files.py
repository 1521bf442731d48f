"""Files as the witness compares them: names and sizes of a directory, and the stores' own checksums of a few files.

Threads of this process and tasks of Spark read directories by the same functions (:class:`ThreadReader`).
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from threading import Lock
from typing import Protocol

from hive_replication.acid.rows import Rows
from hive_replication.errors import ReplicationError
from hive_replication.storage import Denied, FileChecksum, StillOpen, Storage
from hive_replication.verify.compare import same_rows
from hive_replication.verify.listing_digest import is_unfinished

_LOG = logging.getLogger(__name__)

PER_DIRECTORY = 2  # checksums, at most
_EVERY = 200  # of a directory that is looked at again
_MOST_FILES = 50  # of a transactional table or partition of which rows are compared after a compaction


@dataclass(frozen=True, slots=True)
class Directories:
    """The directory of an object on both sides.

    Args:
        source: its URI, "" where it has none.
        target: the replica's.
        most: most files whose checksums may be asked for; None for those of all, up to a limit.
    """

    source: str
    target: str
    most: int | None


@dataclass(frozen=True, slots=True)
class FileFacts:
    """What was read of the data files of an object.

    Args:
        source: by relative name; the reason under "" where the account may not read them.
        target: the replica's.
        checksums: how many were asked for on each side.
    """

    source: dict[str, str]
    target: dict[str, str]
    checksums: int


class DirectoryReader(Protocol):
    """Reads the files of many objects. Implementations: threads of this process, Spark executors, or a choice by number."""

    def read(self, directories: Sequence[Directories]) -> Iterable[FileFacts]:
        """What is read of each, in order.

        Raises:
            ReplicationError: a directory cannot be read.
        """
        ...


class ThreadReader:
    """Reads directories in threads of this process. It can be sent to Spark's executors, and makes its connections there.

    Args:
        source: of the source.
        target: of the target.
    """

    def __init__(self, source: Storage, target: Storage) -> None:
        self._source, self._target = source, target

    def read(self, directories: Iterable[Directories]) -> Iterator[FileFacts]:
        """What is read of each, in order."""
        return self._source.threads.map(partial(file_facts, self._source, self._target), directories)

    def answers(self, directories: Iterable[Directories]) -> Iterator[FileFacts | str]:
        """One Spark task: what is read of each in order, and last the reason why the next one cannot be read."""
        try:
            yield from self.read(directories)
        except (ReplicationError, OSError) as error:
            yield str(error)


class ThresholdReader:
    """Reads the first directories in threads, and those beyond a number in Spark: small databases wait for no JVM.

    Args:
        threads: reads the first ones, and any that come alone.
        spark_factory: makes the other; called when it is first needed, and then once.
        most: how many are read by threads.
    """

    def __init__(self, threads: DirectoryReader, spark_factory: Callable[[], DirectoryReader], *, most: int) -> None:
        self._threads, self._make_spark, self._left = threads, spark_factory, most
        self._spark: DirectoryReader | None = None
        self._lock = Lock()

    def read(self, directories: Sequence[Directories]) -> Iterable[FileFacts]:
        """What is read of each, in order."""
        return self._reader(len(directories)).read(directories)

    def _reader(self, number: int) -> DirectoryReader:
        with self._lock:
            self._left -= number
            if self._left >= 0 or number <= 1:
                return self._threads
            if self._spark is None:
                _LOG.info("directories beyond the policy's witness.driver_max_directories are listed by Spark")
                self._spark = self._make_spark()
            return self._spark


def file_facts(source: Storage, target: Storage, directories: Directories) -> FileFacts:
    """What is read of the data files of an object on both sides, by relative name."""
    try:
        return _file_facts(source, target, directories)
    except Denied as error:
        return FileFacts({"": str(error)}, {}, 0)


def _file_facts(source: Storage, target: Storage, directories: Directories) -> FileFacts:
    ours = source.named_files(directories.source) if directories.source else {}
    theirs = target.named_files(directories.target) if directories.target else {}
    left, right = (
        {name: f"{status.size} bytes" for name, status in found.items() if not is_unfinished(name)} for found in (ours, theirs)
    )
    same = sorted(name for name, facts in left.items() if right.get(name) == facts and ours[name].size)
    number = _EVERY if directories.most is None else directories.most
    chosen = random.sample(same, min(len(same), number))
    for name in chosen:
        one, other = _checksum(source, ours[name].uri), _checksum(target, theirs[name].uri)
        # Hadoop's checksums of files in blocks of other sizes have other names, and tell nothing of each other.
        if one and other and one.algorithm == other.algorithm:
            left[name] += f", checksum {one.value[-16:]}"
            right[name] += f", checksum {other.value[-16:]}"
    return FileFacts(left, right, len(chosen))


def _checksum(storage: Storage, uri: str) -> FileChecksum | None:
    try:
        return storage.checksum(uri)
    except (StillOpen, FileNotFoundError):
        return None


def same_content(source: Callable[[], Rows] | None, target: Callable[[], Rows] | None, files: int) -> bool:
    """Whether transactional data in other files is not known to be other data: of few files the rows are compared.

    Args:
        source: adds up the rows that a reader sees at the source; None where they cannot be read.
        target: the same of the replica.
        files: how many there are on both sides.
    """
    if source is not None and target is not None and files > _MOST_FILES:
        return True
    return same_rows(source, target)
