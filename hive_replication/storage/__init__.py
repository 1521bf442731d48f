"""Files of source and target by full URI, on any store, within the roots of the policy.

A store is reached through a ``backend``; ``backend_by_scheme`` chooses it.

Belongs here: rules for paths, listing, reading, writing, renaming, and the checksums that a store keeps itself.

Keep out of here: which file to copy, how a copy is proven (``copy``), and where a table's data lies (``load``).
"""

from hive_replication.storage.file_status import (
    AlreadyExists,
    Denied,
    FileChecksum,
    FileStatus,
    Late,
    NoChecksum,
    Space,
    StillOpen,
    StorageError,
    TooLarge,
)
from hive_replication.storage.storage import Storage

__all__ = [
    "AlreadyExists",
    "Denied",
    "FileChecksum",
    "FileStatus",
    "Late",
    "NoChecksum",
    "Space",
    "StillOpen",
    "Storage",
    "StorageError",
    "TooLarge",
]
