"""What becomes of the files of an object by the events that are folded over it (pure)."""

from __future__ import annotations

from hive_replication.dump.statistics import names_all
from hive_replication.events import event_records as r
from hive_replication.events.files import FileRef
from hive_replication.metastore.table_kinds import is_external, is_transactional
from hive_replication.metastore.types import Partition, Table
from hive_replication.storage import paths


def inserted(files: tuple[FileRef, ...], event: r.Insert) -> tuple[FileRef, ...]:
    """Files of an object after an INSERT: its own for OVERWRITE, else the union by path, the event's checksums winning.

    A directory that was missing has nothing else; of one that could not be listed nobody knows.
    """
    if event.replace or any(file.is_missing_directory for file in files):
        return event.files
    return tuple(({file.uri: file for file in files} | {file.uri: file for file in event.files}).values())


def is_not_told(table: Table, files: tuple[FileRef, ...] | None, new: Table | Partition) -> bool:
    """Whether a new object has to be listed: the event names no files of external tables, nor those in sub-directories."""
    return files is None or is_external(table) or not (is_transactional(table) or names_all(files, new))


def is_unlisted(files: tuple[FileRef, ...]) -> bool:
    """Whether the directory could not be listed."""
    return any(file.is_unlisted_directory for file in files)


def moved_files(files: tuple[FileRef, ...], before: str | None, after: str | None) -> tuple[FileRef, ...]:
    """Files whose directory was renamed."""
    return tuple(FileRef(paths.moved(file.uri, before, after), file.checksum, file.cm_root, file.subdir) for file in files)
