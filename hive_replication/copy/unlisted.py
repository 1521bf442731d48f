"""What is said of a directory that the dump could not list, and what stands for its files."""

from __future__ import annotations

from hive_replication.events.files import FileRef
from hive_replication.storage import paths
from hive_replication.storage.failures import granting


def why_unlisted(file: FileRef) -> str:
    """Why nothing can be copied of a directory that was not listed, and what helps.

    Args:
        file: what stands for it.
    """
    directory = file.uri.rstrip("/")
    if not file.is_missing_directory:
        return (
            f"the dump could not list the directory {directory} of the source; its log says why: if it may not, let it read "
            f"all of it ({granting(paths.split(directory)[2], 'r-x', below=True)}), then repair the table"
        )
    return (
        f"the directory {directory} was missing at the source when it was dumped, and nothing is emptied for it: bring it "
        "back, or drop the table or partition there, then repair the table; or set missing_directories: empty in the policy"
    )
