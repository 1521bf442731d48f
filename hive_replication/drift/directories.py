"""Directories as they are listed, and compared."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from functools import partial

from hive_replication.copy.proof import Crc32c
from hive_replication.drift.findings import Scanned, Unread
from hive_replication.errors import ReplicationError, Unreachable
from hive_replication.logs import about
from hive_replication.storage import Denied, FileChecksum, Storage
from hive_replication.verify import NOT_COMPARED
from hive_replication.verify.listing_digest import Listing, Observation, observe
from hive_replication.verify.witness.files import are_comparable

_LOG = logging.getLogger(__name__)

#: Seconds by which a copy has to be younger than its file, since the times are of two clusters: those that keep theirs by NTP are
#: within one. It is not more because what is loaded sooner after it was written is compared by checksums once, where stores have
#: none that tell by reading it on both sides, after a wait (``settle``) for each table: windows are loaded within seconds.
CLOCKS_APART = 2.0


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
    """Whether names and sizes are the replica's, and for certain no file was written after its copy was made."""
    return source.keys() == replica.keys() and all(
        size == replica[file][0] and modified + CLOCKS_APART < replica[file][1] for file, (size, modified) in source.items()
    )


def difference(source: Storage, target: Storage, database: str, asked: tuple[Scanned, Listing]) -> str | Unread | None:
    """How the files differ, "" if they are equal; None while a file is open, since HDFS has no checksum of it."""
    place, ours = asked
    found = _observed_or_not(target, place.target, 0.0)
    if isinstance(found, Unread):
        return found
    theirs = found.files
    new, gone, common = ours.keys() - theirs.keys(), theirs.keys() - ours.keys(), ours.keys() & theirs.keys()
    changed = {file for file in common if ours[file][0] != theirs[file][0]}
    try:
        sums = {file: source.checksum(f"{place.source}/{file}") for file in ours}
        told = {file: _is_same(source, target, place, file, sums[file]) for file in common - changed}
        changed |= {file for file, same in told.items() if same is False}
        unknown = [file for file, same in told.items() if same is None]
        if not (new or gone or changed):  # else a repair copies them in any case: it goes by checksums, too
            unknown = [file for file in unknown if not _is_same_content(source, target, place, file)]
        changed.update(unknown)
    except Unreachable:
        raise
    except Denied as error:
        return Unread(str(error))
    except (ReplicationError, FileNotFoundError) as error:
        _LOG.info("%s cannot be compared now: %s", place.source, error, extra=about(database))
        return None
    counts = {"new": len(new), "gone": len(gone), "changed": len(changed)}
    return ", ".join(f"{number} {what}" for what, number in counts.items() if number)


def _is_same(source: Storage, target: Storage, place: Scanned, file: str, ours: FileChecksum | None) -> bool | None:
    """Whether a file is equal by the checksums of both stores; None where these do not tell."""
    uri = f"{place.target}/{file}"
    theirs = target.checksum(uri)
    if not (ours and theirs and are_comparable(source, target, (f"{place.source}/{file}", ours), (uri, theirs))):
        return None
    return ours == theirs


def _is_same_content(source: Storage, target: Storage, place: Scanned, file: str) -> bool:
    return Crc32c.of(source.stream(f"{place.source}/{file}")) == Crc32c.of(target.stream(f"{place.target}/{file}"))
