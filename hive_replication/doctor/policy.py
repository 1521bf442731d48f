"""Examining a policy of which a part cannot be used: that is a finding, and the rest is examined without it."""

from __future__ import annotations

from collections.abc import Iterator

from hive_replication.connect import connect_reachable
from hive_replication.connect.dump_root import dump_root
from hive_replication.doctor.examine import examine
from hive_replication.doctor.finding import Finding, error
from hive_replication.errors import BadRequest, ReplicationError
from hive_replication.policy import Policy
from hive_replication.signing import signing_key


def examine_policy(policy: Policy) -> Iterator[Finding]:
    """Connects the sides of a policy and examines them; what keeps them from being connected is a finding, too."""
    dumps = True
    try:
        signing_key(policy.signing_key)
    except BadRequest as problem:
        yield error("policy", "signing key", str(problem), "correct it: without the key nothing is dumped and loaded")
        policy = policy.model_copy(update={"signing_key": None})
    try:
        dump_root(policy)
    except BadRequest as problem:
        yield error("dump root", "place", str(problem), "correct dump_root in the policy, or add a storage root that holds it")
        policy, dumps = policy.model_copy(update={"dump_root": policy.target.roots[0].uri}), False
    try:
        connection, reached = connect_reachable(policy)
    except ReplicationError as problem:
        advice = "correct what the message says: nothing else was examined; then run hive-repl doctor again"
        yield error("policy", "connect", str(problem), advice)
        return
    yield from examine(connection, reached, dumps=dumps)
