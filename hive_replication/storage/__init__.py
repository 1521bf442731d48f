"""Reading and writing files of source and target by full URI, on any store, within the roots of the policy.

Here belong: the rules for paths, listing, reading, writing, renaming, and the checksums a store itself keeps. Not here: which
file to copy and how a copy is proven (``copy``), and where a table's data lies (``load``).
"""

from hive_replication.storage.records import AlreadyExists, FileChecksum, FileStatus, Space, StillOpen
from hive_replication.storage.storage import Storage

__all__ = ["AlreadyExists", "FileChecksum", "FileStatus", "Space", "StillOpen", "Storage"]
