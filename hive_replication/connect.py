"""Both sides of a policy, ready to be asked; nothing is called before."""

from __future__ import annotations

from dataclasses import dataclass

from hive_replication.copy.tasks import Copier
from hive_replication.copy.threads import ThreadCopier
from hive_replication.databases import resolved
from hive_replication.dump.packed_store import PackedStore
from hive_replication.dump.source import Source
from hive_replication.dump.tree import TreeStore
from hive_replication.dump_root import dump_root
from hive_replication.load.target import Target
from hive_replication.metastore.client import Metastore
from hive_replication.policy import Policy
from hive_replication.storage import Storage


@dataclass(frozen=True)
class Connection:
    """A policy with its servers.

    Args:
        source: the source side.
        target: the target side.
        store: where dumps are written and read: nothing outside the policy's ``dump_root``.
        copier: copies files in threads of this process.
    """

    source: Source
    target: Target
    store: TreeStore
    copier: Copier


def connect(policy: Policy) -> Connection:
    """Connects the sides of a policy; each server is called only when something is asked of it.

    Only the patterns of a policy ask at once: the source for its databases.

    Raises:
        BadRequest: an address of the policy is malformed, or its dump root lies under no root of source or target.
        Unreachable: the policy has patterns of databases, and the source does not answer.
    """
    metastore = Metastore(policy.source.metastore, connections=policy.metastore_connections)
    policy = resolved(policy, metastore)
    source = Source(metastore, Storage(policy.source.roots), policy)
    replica = Metastore(policy.target.metastore, connections=policy.metastore_connections)
    target = Target(replica, Storage(policy.target.roots), policy, source.storage)
    root = dump_root(policy)
    copier = ThreadCopier(source.storage, target.storage, threads=policy.files_in_flight, bandwidth=policy.bandwidth)
    return Connection(source, target, PackedStore(Storage((root,)), root.uri, policy.packed_above), copier)
