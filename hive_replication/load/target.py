"""The target side of a policy, connected."""

from __future__ import annotations

from dataclasses import dataclass

from hive_replication.metastore.client import Metastore
from hive_replication.policy import Policy
from hive_replication.storage import Storage


@dataclass(frozen=True)
class Target:
    """Where a load writes.

    Args:
        metastore: the target's metastore.
        storage: the target's storage roots.
        policy: names and limits.
        source_storage: the source's storage roots, where the files of a dump are read; no path outside them is.
    """

    metastore: Metastore
    storage: Storage
    policy: Policy
    source_storage: Storage

    @property
    def identity(self) -> str:
        """What tells one metastore from another, as :attr:`hive_replication.dump.source.Source.identity`."""
        return self.metastore.uuid() or self.metastore.uri
