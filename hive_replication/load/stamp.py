"""A stamp of what a load left, on every replica: what somebody changed on the target is noticed at the next touch (pure).

It holds short hashes of the location, the columns, the format, the properties and the names of the files, set in the same call as
the change itself. What Hive and Spark write by themselves while they read or gather statistics does not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import TypeVar

from hive_replication.load import operations as op
from hive_replication.load.report import Stranger
from hive_replication.load.state import PREFIX, is_state
from hive_replication.load.translation import TRANSLATION
from hive_replication.load.view import TargetView
from hive_replication.metastore.types import Partition, Table, directory_of

STAMP = PREFIX + "left"
#: Parameters that metastores and engines write for themselves: times, and statistics that a changed listing changes.
OWN = frozenset(
    {
        "COLUMN_STATS_ACCURATE",
        "DO_NOT_UPDATE_STATS",
        "STATS_GENERATED",
        "last_modified_by",
        "last_modified_time",
        "numFiles",
        "numFilesErasureCoded",
        "numPartitions",
        "numRows",
        "rawDataSize",
        "totalSize",
        "transient_lastDdlTime",
    }
)
_OWN_TOO = ("spark.sql.statistics.", "bucketing_version")
_FILES = "files"

Thing = TypeVar("Thing", Table, Partition)


def stamped(thing: Thing, files: Iterable[str] | None = None) -> Thing:
    """Sets the stamp of an image that is about to be written.

    Args:
        thing: the image, location included; changed in place.
        files: names of its files, relative to its location; None where the load leaves them as they are.
    """
    found = _aspects(thing)
    names = _read(thing).get(_FILES) if files is None else files_hash(files)
    if names:
        found[_FILES] = names
    thing.parameters = {**(thing.parameters or {}), STAMP: " ".join(f"{aspect}:{value}" for aspect, value in found.items())}
    return thing


def changes(thing: Table | Partition) -> tuple[str, ...]:
    """Aspects of a replica's metadata that are not as the last load left them; none where it has no stamp."""
    left = _read(thing)
    return tuple(aspect for aspect, value in _aspects(thing).items() if left.get(aspect, value) != value)


def files_changed(thing: Table | Partition, found: Iterable[str], ours: Iterable[str] = ()) -> bool:
    """Whether files of a replica came or went since the last load.

    Args:
        thing: the replica.
        found: names of its files now.
        ours: those that an interrupted load may have added already.
    """
    left, names, added = _read(thing).get(_FILES), set(found), set(ours)
    return left is not None and left not in (files_hash(names), files_hash(names - added))


def changed_on_target(view: TargetView, database: str) -> Iterator[Stranger]:
    """Replicas that somebody altered on the target, of those that a load looks at.

    Args:
        view: the target's objects.
        database: target database.
    """
    things: list[tuple[str, Table | Partition]] = [(op.object_name(database, name), table) for name, table in view.tables.items()]
    things += [(op.object_name(database, *names), part) for names, part in view.partitions.items()]
    for shown, thing in things:
        found = changes(thing)
        if found:
            yield Stranger(shown, f"{', '.join(found)} altered")


def files_hash(names: Iterable[str]) -> str:
    """A short hash of file names in any order."""
    return _hash(*sorted(names))


def _read(thing: Table | Partition) -> dict[str, str]:
    words = ((thing.parameters or {}).get(STAMP) or "").split()
    return dict(word.split(":", 1) for word in words if ":" in word)


def _aspects(thing: Table | Partition) -> dict[str, str]:
    sd, parameters = thing.sd, thing.parameters or {}
    kept = sorted(f"{key}={value}" for key, value in parameters.items() if not _is_own(key))
    columns = [f"{column.name.lower()} {column.type}" for column in sd.cols or []]
    serde = sd.serdeInfo
    settings = sorted(f"{key}={value}" for key, value in ((serde.parameters if serde else None) or {}).items())
    library = (serde.serializationLib if serde else None) or ""
    return {
        "location": _hash(directory_of(thing)),
        "columns": _hash(*columns),
        "format": _hash(sd.inputFormat or "", sd.outputFormat or "", library, *settings),
        "properties": _hash(*kept),
    }


def _is_own(key: str) -> bool:
    return is_state(key) or key in OWN or key in TRANSLATION or key.startswith(_OWN_TOO)


def _hash(*values: str) -> str:
    return hashlib.sha256("\0".join(values).encode()).hexdigest()[:8]
