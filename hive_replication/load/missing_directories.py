"""Tables and partitions whose directory was missing at the source when it was dumped (policy ``missing_directories``).

A dump names such a directory in place of files (:attr:`~hive_replication.events.files.FileRef.is_missing_directory`), which no
load can copy: the table is held, unless a later event drops or replaces what was missing. Where the policy says so they are
replicated as empty, as Hive reads them, and the report says which.
"""

from __future__ import annotations

from hive_replication.events.files import FileRef
from hive_replication.load.report import Skipped
from hive_replication.load.session import Session


def without_missing(session: Session, files: tuple[FileRef, ...], evid: int, what: str) -> tuple[FileRef, ...]:
    """The files of an object, without what stands for a missing directory where the policy replicates such as empty.

    Args:
        session: the load, whose report says so.
        files: of a dump.
        evid: of the event, or of the dump.
        what: the object, for the report.
    """
    missing = [file for file in files if file.is_missing_directory]
    if not missing or session.target.policy.missing_directories == "hold":
        return files
    for file in missing:
        directory = file.uri.rstrip("/")
        session.skipped.append(Skipped(evid, what, f"its directory {directory} is missing at the source: replicated as empty"))
    return tuple(file for file in files if not file.is_missing_directory)
