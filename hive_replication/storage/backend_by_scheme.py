"""Which backend serves a storage root, by the scheme of its URI.

An object store that fsspec knows needs only its package, and ``object_store_backend`` where it differs. A store of
another kind is a class with the methods of ``backend.Backend``, and its line here. How files are proven: ``copy/proof.py``.
"""

from __future__ import annotations

from collections.abc import Iterable

from hive_replication.errors import ReplicationError
from hive_replication.policy import Root
from hive_replication.storage.backend import Backend
from hive_replication.storage.client_errors import answered
from hive_replication.storage.delegation import Grant
from hive_replication.storage.hdfs_backend import HdfsBackend


def connect_backend(scheme: str, authority: str, root: Root, local: Iterable[str], grant: Grant | None = None) -> Backend:
    """Connects to a store.

    Args:
        scheme: of the root's URI, e.g. ``hdfs``, ``s3`` or ``file``.
        authority: the NameNode or nameservice, or the bucket; "" for local files.
        root: the root, its secrets resolved.
        local: paths of all local roots, which no symbolic link may lead out of.
        grant: from a process that has tickets, where this one has none.

    Raises:
        ReplicationError: no file system for the scheme is installed, or it asks for Kerberos, and there is no token to be had.
    """
    if scheme == "hdfs":
        return HdfsBackend(authority, root, grant)
    # fsspec takes 0.1 s to import, which a command on HDFS alone does not need.
    if scheme == "file":
        from hive_replication.storage.local_backend import LocalBackend

        return LocalBackend(root.options, local)
    from hive_replication.storage.object_store_backend import FsspecBackend

    with answered():
        try:
            return FsspecBackend(scheme, authority, root.options)
        except (ImportError, ValueError) as error:
            raise ReplicationError(f"no file system for {scheme}:// is installed: {error}") from error
