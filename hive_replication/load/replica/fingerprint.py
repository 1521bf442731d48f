"""The fingerprint of every replica: a load notices at its next change what somebody else changed on the target (pure).

A fingerprint holds short hashes of the location, the columns, the format, the properties and the names of the files. It is set in
the same call as the change itself. What engines write by themselves while they read or gather statistics does not count.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from typing import TypeVar

from hive_replication.load.replica.name_mapping import object_name
from hive_replication.load.replica.state import PREFIX, is_state
from hive_replication.load.replica.target_view import TargetView
from hive_replication.load.report import UnexpectedObject
from hive_replication.metastore.marked_external import TRANSLATION
from hive_replication.metastore.statistics import STATISTICS, is_statistic
from hive_replication.metastore.table_kinds import is_transactional
from hive_replication.metastore.types import Partition, Table, directory_of

FINGERPRINT = PREFIX + "left"
#: Parameters that metastores and engines maintain themselves: times, and statistics of files and rows.
IGNORED_PARAMETERS = STATISTICS | {"DO_NOT_UPDATE_STATS", "last_modified_by", "last_modified_time", "transient_lastDdlTime"}
_BUCKETING = "bucketing_version"
_FILES = "files"
_LOCATION = "location"

Thing = TypeVar("Thing", Table, Partition)


def with_fingerprint(thing: Thing, files: Iterable[str] | None = None) -> Thing:
    """Sets the fingerprint of an image that is about to be written.

    Args:
        thing: the image, location included; changed in place.
        files: names of its files, relative to its location; None where the load leaves them as they are.
    """
    found = _aspects(thing)
    names = _read(thing).get(_FILES) if files is None else files_hash(files)
    if names:
        found[_FILES] = names
    thing.parameters = {**(thing.parameters or {}), FINGERPRINT: " ".join(f"{aspect}:{value}" for aspect, value in found.items())}
    return thing


def to_be_moved(thing: Thing) -> Thing:
    """Takes the location out of the fingerprint of an image whose data the metastore moves in the call that writes it."""
    words = ((thing.parameters or {}).get(FINGERPRINT) or "").split()
    kept = " ".join(word for word in words if not word.startswith(f"{_LOCATION}:"))
    thing.parameters = {**(thing.parameters or {}), FINGERPRINT: kept}
    return thing


def altered_aspects(thing: Table | Partition) -> tuple[str, ...]:
    """Aspects of a replica's metadata that differ from its fingerprint; none where it has no fingerprint."""
    recorded = _read(thing)
    return tuple(aspect for aspect, value in _aspects(thing).items() if recorded.get(aspect, value) != value)


def files_changed(thing: Table | Partition, found: Iterable[str], ours: Iterable[str] = ()) -> bool:
    """Whether files of a replica were added or removed since the last load.

    Args:
        thing: the replica.
        found: names of its files now.
        ours: those that an interrupted load may have added.
    """
    recorded, names, added = _read(thing).get(_FILES), set(found), set(ours)
    return recorded is not None and recorded not in (files_hash(names), files_hash(names - added))


def same_files(before: Table | Partition, after: Table | Partition) -> bool:
    """Whether the names of the files are the same in both fingerprints."""
    return _read(before).get(_FILES) == _read(after).get(_FILES)


def changed_on_target(view: TargetView, database: str) -> Iterator[UnexpectedObject]:
    """Replicas among the objects of a load that somebody altered on the target.

    Locations of partitions of transactional tables do not count: the metastore moves them when they or their table are renamed.

    Args:
        view: the target's objects.
        database: target database.
    """
    moved = {name for name, table in view.tables.items() if is_transactional(table)}
    things: list[tuple[tuple[str, ...], Table | Partition]] = [((name,), table) for name, table in view.tables.items()]
    for names, thing in (*things, *view.partitions.items()):
        found = [one for one in altered_aspects(thing) if one != _LOCATION or len(names) == 1 or names[0] not in moved]
        if found:
            yield UnexpectedObject(object_name(database, *names), f"{', '.join(found)} altered")


def files_hash(names: Iterable[str]) -> str:
    """A short hash of file names, whatever their order."""
    return _hash(*sorted(names))


def _read(thing: Table | Partition) -> dict[str, str]:
    words = ((thing.parameters or {}).get(FINGERPRINT) or "").split()
    return dict(word.split(":", 1) for word in words if ":" in word)


def _aspects(thing: Table | Partition) -> dict[str, str]:
    sd, parameters = thing.sd, thing.parameters or {}
    kept = sorted(f"{key}={value}" for key, value in parameters.items() if not _is_ignored(key))
    columns = [f"{column.name.lower()} {column.type}" for column in sd.cols or []]
    serde = sd.serdeInfo
    settings = sorted(f"{key}={value}" for key, value in ((serde.parameters if serde else None) or {}).items())
    library = (serde.serializationLib if serde else None) or ""
    return {
        _LOCATION: _hash(directory_of(thing)),
        "columns": _hash(*columns),
        "format": _hash(sd.inputFormat or "", sd.outputFormat or "", library, *settings),
        "properties": _hash(*kept),
    }


def _is_ignored(key: str) -> bool:
    own = is_state(key) or is_statistic(key) or key in IGNORED_PARAMETERS or key in TRANSLATION
    return own or key.startswith(_BUCKETING)


def _hash(*values: str) -> str:
    return hashlib.sha256("\0".join(values).encode()).hexdigest()[:8]
