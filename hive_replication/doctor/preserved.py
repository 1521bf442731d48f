"""Whether replicas can keep the owners, groups, modes and ACLs of their source (policy ``preserve``)."""

from __future__ import annotations

import secrets
from collections.abc import Iterator

from hive_replication.doctor.finding import Finding, ok, warning
from hive_replication.doctor.writable import absent, remove
from hive_replication.errors import ReplicationError
from hive_replication.policy import Policy
from hive_replication.storage import Storage

_CHECK = "owners and permissions"
_GIVEN = "hive-repl-doctor"  # an account that need not exist


def preserved(storage: Storage, policy: Policy, directory: str) -> Iterator[Finding]:
    """Tells what gets lost; tries whether the account may give a directory of its own away.

    Args:
        storage: the target's.
        policy: both sides' roots, and what is to be kept.
        directory: of the target, in which databases will be created or lie; there it is tried.
    """
    if not any(root.uri.startswith("hdfs:") for root in policy.source.roots):
        return
    plain = [root.uri for root in policy.target.roots if not root.uri.startswith("hdfs:")]
    if plain:
        advice = "let only those read this store who may read all of the source: it has no owners, groups and modes as HDFS has"
        yield warning("target", _CHECK, f"not kept below {', '.join(plain)}", advice)
    if not policy.preserve:
        advice = "leave preserve away: replicas may be read by more than their source is"
        yield warning("target", _CHECK, "preserve is [] in the policy", advice)
    elif len(plain) < len(policy.target.roots):
        yield from _given_away(storage, policy, directory)


def _given_away(storage: Storage, policy: Policy, directory: str) -> Iterator[Finding]:
    kept = ", ".join(policy.preserve)
    if "owner" not in policy.preserve and "group" not in policy.preserve:
        yield ok("target", _CHECK, kept)
        return
    probe = f"{directory.rstrip('/')}/.hive-repl-doctor-{secrets.token_hex(4)}"
    try:
        made = absent(storage, directory)
        storage.mkdirs(probe, 0o700)
        try:
            storage.about_access(probe, lambda store, path: store.set_owner(path, _GIVEN, _GIVEN))
        except PermissionError as problem:
            advice = (
                "let this account be a superuser of the target's HDFS; or a member of the source's groups, since others lose "
                "their rights; or take owner and group out of preserve in the policy"
            )
            yield warning("target", _CHECK, f"{kept}, but this account may not give files away: {problem.strerror}", advice)
        else:
            yield ok("target", _CHECK, kept)
        storage.delete(probe)
        remove(storage, made)
    except (ReplicationError, OSError):  # that it may not be written is a finding of its own
        return
