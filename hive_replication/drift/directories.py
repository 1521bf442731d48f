"""Directories as they are listed, and compared."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial

from hive_replication.drift.findings import Scanned, Unread
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.logs import about
from hive_replication.storage import Denied, Storage
from hive_replication.verify import NOT_COMPARED
from hive_replication.verify.listing_digest import Listing, Observation, observe

_LOG = logging.getLogger(__name__)


def observed(storage: Storage, locations: Sequence[str]) -> Iterator[Observation]:
    """Directories as they are listed."""
    return storage.many.map(partial(observe, storage, now=0.0), locations)


def observed_or_not(storage: Storage, locations: Sequence[str], now: float = 0.0) -> Iterator[Observation | Unread]:
    """The same, where one that cannot be read hides no other.

    With a time, files that are being written are told from those left behind.
    """
    return storage.many.map(partial(_observed_or_not, storage, now=now), locations)


def _observed_or_not(storage: Storage, location: str, now: float) -> Observation | Unread:
    try:
        return observe(storage, location, now)
    except NOT_COMPARED as error:
        return Unread(str(error))


def is_copy(source: Listing, replica: Listing) -> bool:
    """Whether names and sizes are the replica's, and no file was written after its copy was made."""
    return source.keys() == replica.keys() and all(
        size == replica[file][0] and modified < replica[file][1] for file, (size, modified) in source.items()
    )


def difference(source: Storage, target: Storage, database: str, asked: tuple[Scanned, Listing]) -> str | Unread | None:
    """How the files differ, "" if they are equal; None while a file is open, since HDFS has no checksum of it."""
    place, ours = asked
    found = _observed_or_not(target, place.target, 0.0)
    if isinstance(found, Unread):
        return found
    theirs = found.files
    try:
        sums = {file: source.checksum(f"{place.source}/{file}") for file in ours}
        common = ours.keys() & theirs.keys()
        changed = {file for file in common if ours[file][0] != theirs[file][0]}
        for file in common - changed:
            copy = target.checksum(f"{place.target}/{file}")
            if sums[file] is None or copy is None or sums[file] != copy:
                changed.add(file)
    except Unreachable:
        raise
    except Denied as error:
        return Unread(str(error))
    except (ReplicationError, FileNotFoundError) as error:
        _LOG.info("%s cannot be compared now: %s", place.source, error, extra=about(database))
        return None
    counts = {"new": len(ours.keys() - theirs.keys()), "gone": len(theirs.keys() - ours.keys()), "changed": len(changed)}
    return ", ".join(f"{number} {what}" for what, number in counts.items() if number)
