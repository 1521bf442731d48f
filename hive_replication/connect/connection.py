"""A policy's two sides, connected; no server is called before it is needed."""

from __future__ import annotations

from dataclasses import dataclass, field

from hive_replication.connect.databases import PatternMatches, matched
from hive_replication.connect.dump_root import dump_root
from hive_replication.copy.tasks import Copier
from hive_replication.copy.thread_copier import ThreadCopier
from hive_replication.dump.format.packed_store import PackedStore
from hive_replication.dump.format.tree import TreeStore
from hive_replication.dump.source import Source
from hive_replication.errors import BadRequest
from hive_replication.load.replica.target import Target
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.connection import CALL_ATTEMPTS, CALL_TIMEOUT
from hive_replication.policy import Policy
from hive_replication.policy.yaml_text import place
from hive_replication.signing import signing_key
from hive_replication.storage import Storage


@dataclass(frozen=True)
class Connection:
    """A policy with its servers.

    Args:
        source: the source side.
        target: the target side.
        store: where dumps are written and read: nothing outside the policy's ``dump_root``.
        copier: copies files in threads of this process.
        patterns: what patterns in ``databases`` of the policy stand for.
    """

    source: Source
    target: Target
    store: TreeStore
    copier: Copier
    patterns: PatternMatches = field(default_factory=PatternMatches)


def connect(policy: Policy, *, timeout: float = CALL_TIMEOUT, retries: int = CALL_ATTEMPTS) -> Connection:
    """Connects the sides of a policy; a server is called only when it is needed.

    Only the patterns of a policy ask at once: the source for its databases.

    Args:
        policy: the policy.
        timeout: seconds to wait for the answer of one call of a metastore, and of the storage of dumps.
        retries: attempts of one such call in all.

    Raises:
        BadRequest: an address of the policy is malformed, its dump root lies under no root of source or target, or there is no
            signing key where the policy says.
        Unreachable: the policy has patterns of databases, and the source or the storage of dumps does not answer.
        Denied: which databases its patterns have must not be read there, or not be recorded.
    """
    metastore = Metastore.of(policy.source, timeout=timeout, retries=retries, connections=policy.metastore_connections)
    policy, patterns = matched(policy, metastore, timeout)
    return connected(policy, metastore, patterns, timeout=timeout, retries=retries)


def require_usable(policy: Policy, text: str = "") -> None:
    """Makes sure that a policy names what can be connected to, as far as that shows without a server and a secret.

    Args:
        policy: the policy.
        text: its YAML, by which errors name lines and columns.

    Raises:
        BadRequest: its dump root lies under no root of source or target, or some of its settings do nothing.
    """
    try:
        dump_root(policy)
    except BadRequest as error:
        raise BadRequest(f"{place(text, ('dump_root',))}: {error}" if text else str(error)) from error
    if problems := policy.without_effect():
        said = "; ".join(f"{place(text, one.setting)}: {one}" if text else str(one) for one in problems)
        raise BadRequest(f"the policy has settings that do nothing: {said}")


def connected(
    policy: Policy,
    metastore: Metastore,
    patterns: PatternMatches = PatternMatches(),
    *,
    timeout: float = CALL_TIMEOUT,
    retries: int = CALL_ATTEMPTS,
) -> Connection:
    """The sides of a policy whose databases are known; calls no server.

    Args:
        policy: without patterns.
        metastore: of the source.
        patterns: what its patterns stood for.
        timeout: seconds to wait for the answer of one call of the target's.
        retries: attempts of one such call in all.

    Raises:
        BadRequest: see :func:`connect`.
    """
    calls = policy.parallelism.storage_calls
    source = Source(metastore, Storage(policy.source.storage_roots, calls), policy)
    replica = Metastore.of(policy.target, timeout=timeout, retries=retries, connections=policy.metastore_connections)
    target = Target(replica, Storage(policy.target.storage_roots, calls), policy, source.storage, metastore)
    root = dump_root(policy)
    copier = ThreadCopier(source.storage, target.storage, threads=policy.files_in_flight, bandwidth=policy.bandwidth)
    store = PackedStore(Storage((root,), calls), root.uri, policy.packed_above, signing_key(policy.signing_key))
    return Connection(source, target, store, copier, patterns)
