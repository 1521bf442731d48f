"""Records that no reader would take: they are written so that their table alone is held, and the rest of the dump is read."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace

from hive_replication.dump.format import encoding
from hive_replication.dump.format.digests import MIB, MOST
from hive_replication.dump.format.record_types import EventRecord, FileGroup
from hive_replication.events.files import FileRef
from hive_replication.events.unpack import UNREADABLE
from hive_replication.logs import about

_LOG = logging.getLogger(__name__)

#: Bytes of one event in a Parquet file, of the 128 MiB that are read of a file: the rest is for what Arrow adds.
_MOST_BYTES = 112 * MIB
_MOST_PARTS = 150_000  # groups and writes of an event, each of which has up to six of the million values that are read
# Below these nothing is added up: characters of a message, which take six bytes each at most, and numbers of parts and files.
_SMALL, _FEW_PARTS, _FEW_FILES = 1 << 20, 10_000, 2_000
_COMPONENT = 255  # bytes that a directory's name may have, on HDFS and on local disks


def readable(record: EventRecord) -> EventRecord:
    """An event, or in place of one that is too large its row without message and files, which holds its table.

    A commit has no table in its row: it keeps the names of those that it wrote to, and its message, by which the load ends what
    stands for the transaction once they are repaired.

    Args:
        record: of the dump.
    """
    reason = _why_too_large(record)
    if not reason:
        return record
    row, tables = record.notification, sorted({group.table for group in record.groups if group.table})
    extra = about(row.database, row.table, row.evid)
    shown = ", ".join(tables) or "its table"
    _LOG.warning("the event is dumped without what it changed, and the load holds %s: %s", shown, reason, extra=extra)
    left = EventRecord(row, tuple(FileGroup("", (), table=table) for table in tables), record.hash)
    return left if tables and not _why_too_large(left) else replace(left, notification=replace(row, message=UNREADABLE))


def readable_files(files: tuple[FileRef, ...], location: str | None) -> tuple[FileRef, ...]:
    """The files of a table, partition or function, or in place of too many what stands for a directory that was not listed.

    Args:
        files: of the object.
        location: its directory.
    """
    reason = _why_too_many(files)
    if not reason:
        return files
    directory = location or files[0].uri.rpartition("/")[0]
    _LOG.warning("the load holds what lies at %s: %s", directory, reason)
    return (FileRef.unreadable_directory(directory),)


def is_path(name: str) -> bool:
    """Whether the name of a partition can be a path: each key with its value is the name of a directory."""
    return all(len(part.encode()) <= _COMPONENT for part in name.split("/"))


def _why_too_large(record: EventRecord) -> str:
    parts, message = len(record.groups) + len(record.writes), record.notification.message
    if parts > _MOST_PARTS:
        return f"it concerns {parts:,} partitions, more than the {_MOST_PARTS:,} that a dump takes"
    files = [file for group in record.groups for file in group.files]
    if reason := _why_too_many(files):
        return reason
    if len(message) <= _SMALL and parts <= _FEW_PARTS:
        return ""
    size = len(encoding.event_text(record))
    if size > MOST["_metadata"] or size + _bytes(files) > _MOST_BYTES:
        return f"with its {len(files):,} files it has {size + _bytes(files):,} bytes in a dump, more than are read"
    return ""


def _why_too_many(files: Sequence[FileRef]) -> str:
    if len(files) <= _FEW_FILES:
        return ""
    if len(files) > encoding.MOST_FILES:
        return f"it has {len(files):,} files, more than the {encoding.MOST_FILES:,} that a dump takes of one object"
    if (size := _bytes(files)) > MOST["_files"]:
        return f"the paths of its {len(files):,} files have {size:,} bytes, more than the {MOST['_files']:,} that are read"
    return ""


def _bytes(files: Sequence[FileRef]) -> int:
    return len(encoding.files_text(tuple(files)))
