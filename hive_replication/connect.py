"""Both sides of a policy, ready to be asked; nothing is called before."""

from __future__ import annotations

from dataclasses import dataclass

from hive_replication.copy.tasks import Copier
from hive_replication.copy.threads import ThreadCopier
from hive_replication.dump.packed import PackedStore
from hive_replication.dump.source import Source
from hive_replication.dump.tree import TreeStore
from hive_replication.errors import BadRequest
from hive_replication.load.target import Target
from hive_replication.metastore.client import Metastore
from hive_replication.policy import Policy, Root
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

    Raises:
        BadRequest: an address of the policy is malformed, or its dump root lies under no root of source or target.
    """
    source = Source(Metastore(policy.source.metastore), Storage(policy.source.roots), policy)
    target = Target(Metastore(policy.target.metastore), Storage(policy.target.roots), policy, source.storage)
    root = dump_root(policy)
    copier = ThreadCopier(source.storage, target.storage, bandwidth=policy.bandwidth)
    return Connection(source, target, PackedStore(Storage((root,)), root.uri, policy.packed_above), copier)


def dump_root(policy: Policy) -> Root:
    """The dump root as a storage root of its own, so that no dump directory outside it is ever read or written.

    It takes its options from the root of target or source that it lies under; a local ``file://`` path needs none.

    Raises:
        BadRequest: it lies under no root.
    """
    uri = policy.dump_root.rstrip("/") + "/"
    for root in (*policy.target.roots, *policy.source.roots):
        if uri.startswith(root.uri):
            return root.model_copy(update={"uri": uri})
    if uri.startswith("file:///"):
        return Root(uri=uri, webhdfs=None)
    roots = ", ".join(root.uri for root in (*policy.target.roots, *policy.source.roots))
    raise BadRequest(f"dump_root {policy.dump_root} of the policy lies under none of its storage roots ({roots})")
