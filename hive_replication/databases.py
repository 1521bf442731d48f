"""Databases by pattern: which ones a policy has, and under which names on the target (design: events, CREATE_DATABASE).

A pattern has the databases that it matched when it was first used, and later ones only with ``new_databases: true``. Which those
are is kept below the dump root, in ``.policies/<policy>.json``, so that all instances have the same, and after a restart.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from hive_replication.dump_root import dump_root
from hive_replication.errors import BadRequest
from hive_replication.metastore.client import Metastore
from hive_replication.policy import Policy, is_pattern
from hive_replication.storage import Storage

#: Hive's own: views of its metastore's database.
_HIVES_OWN = frozenset({"information_schema", "sys"})


def resolved(policy: Policy, source: Metastore) -> Policy:
    """The policy with the databases that its patterns stand for; itself where it has none, and then nothing is asked.

    Args:
        policy: the policy.
        source: the source's metastore.

    Raises:
        BadRequest: two databases would have the same name on the target.
        Unreachable: the source's metastore or the storage of dumps does not answer.
    """
    if not any(map(is_pattern, policy.databases)):
        return policy
    root = dump_root(policy)
    storage, place = Storage((root,)), f"{root.uri}.policies/{policy.name}.json"
    known: dict[str, list[str]] = json.loads(storage.read(place)) if storage.exists(place) else {}
    taken = taken_in(policy, source.databases(), known)
    if taken != known:
        storage.write(place, json.dumps(taken).encode())
    return with_databases(policy, (name for names in taken.values() for name in names))


def taken_in(policy: Policy, there: Iterable[str], known: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """By pattern the databases that it has: those it had, and those there now if it is new or takes in new ones (pure)."""
    now = set(there) - _HIVES_OWN - policy.databases.keys()
    taken: dict[str, list[str]] = {}
    for pattern in filter(is_pattern, policy.databases):
        new = policy.new_databases or pattern not in known
        before = set(known.get(pattern, ())) - policy.databases.keys()
        taken[pattern] = sorted(
            name for name in before | (now if new else frozenset[str]()) if policy.pattern_of(name) == pattern
        )
    return taken


def with_databases(policy: Policy, names: Iterable[str]) -> Policy:
    """The policy with some databases in place of its patterns (pure).

    Raises:
        BadRequest: two databases would have the same name on the target.
    """
    databases = {name: target for name, target in policy.databases.items() if not is_pattern(name)}
    databases |= {name: policy.target_of(name) for name in names}
    sources: dict[str, str] = {}
    for name, target in databases.items():
        if target in sources:
            raise BadRequest(f"the policy replicates both {sources[target]!r} and {name!r} to {target!r}: give one another name")
        sources[target] = name
    return policy.model_copy(update={"databases": databases})
