"""Files as the witness compares them: names and sizes of a directory, and the stores' own checksums of a few files."""

from __future__ import annotations

import random
from collections.abc import Callable

from hive_replication.acid.rows import Rows
from hive_replication.storage import FileChecksum, StillOpen, Storage
from hive_replication.verify.compare import same_rows
from hive_replication.verify.listing_digest import is_unfinished

_PER_DIRECTORY = 2  # checksums
_EVERY = 200  # of a directory that is looked at again
_MOST_FILES = 50  # of a transactional table or partition of which rows are compared after a compaction

#: A storage and the URI of a directory on it.
Place = tuple[Storage, str]


def file_facts(source: Place, target: Place, *, most: int | None) -> tuple[dict[str, str], dict[str, str], int]:
    """What is read of the data files of a directory on both sides, by relative name, and how many checksums were asked for.

    Args:
        source: the source's directory.
        target: the replica's.
        most: most files whose checksums may be asked for; None for those of all, up to a limit.
    """
    theirs, ours = (place[0].named_files(place[1]) if place[1] else {} for place in (target, source))
    left, right = (
        {name: f"{status.size} bytes" for name, status in found.items() if not is_unfinished(name)} for found in (ours, theirs)
    )
    same = sorted(name for name, facts in left.items() if right.get(name) == facts and ours[name].size)
    number = _EVERY if most is None else min(most, _PER_DIRECTORY)
    chosen = random.sample(same, min(len(same), number))
    for name in chosen:
        one, other = _checksum(source[0], ours[name].uri), _checksum(target[0], theirs[name].uri)
        # Hadoop's checksums of files in blocks of other sizes have other names, and tell nothing of each other.
        if one and other and one.algorithm == other.algorithm:
            left[name] += f", checksum {one.value[-16:]}"
            right[name] += f", checksum {other.value[-16:]}"
    return left, right, len(chosen)


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
