"""Databases by pattern: which ones a policy has, and under which names on the target (design: events, CREATE_DATABASE).

A pattern has the databases that it matched when it was first used, and later ones only with ``new_databases: true``. Which those
are is kept below the dump root, so that all instances have the same, and after a restart: in ``.policies/<policy>/<n>.json``. A
change is the file of the next number. It appears whole, and only one instance can write it; another reads that file first.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Iterable, Mapping
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter

from hive_replication.bounded_json import MIB, parsed
from hive_replication.connect.dump_root import dump_root
from hive_replication.errors import BadRequest
from hive_replication.metastore.client import Metastore
from hive_replication.policy import Policy
from hive_replication.policy.model import is_pattern
from hive_replication.storage import AlreadyExists, Storage

_LOG = logging.getLogger(__name__)

#: Hive's own: views of its metastore's database.
_HIVES_OWN = frozenset({"information_schema", "sys"})
_KEPT = 10  # the newest files of a policy: one that is being read is not deleted
_MOST = 16 * MIB
_NUMBER = re.compile(r"[1-9][0-9]{0,14}")
# A database's name is also a directory of the dump root.
_DATABASE = Annotated[str, Field(pattern=r"^[^/\x00-\x1f]{1,128}$")]
_KNOWN = TypeAdapter(dict[str, list[_DATABASE]], config=ConfigDict(strict=True))


def resolved(policy: Policy, source: Metastore) -> Policy:
    """The policy with the databases that its patterns stand for; itself where it has none, and then nothing is asked.

    Args:
        policy: the policy.
        source: the source's metastore.

    Raises:
        BadRequest: two databases would have the same name on the target, or the file of the databases is damaged.
        Unreachable: the source's metastore or the storage of dumps does not answer.
    """
    if not any(map(is_pattern, policy.databases)):
        return policy
    root = dump_root(policy)
    storage, place, there = Storage((root,)), f"{root.uri}.policies/{policy.name}", source.databases()
    while True:
        number, known = _known(storage, place)
        taken = taken_in(policy, there, known)
        if taken == known:
            break
        try:
            storage.write_once(f"{place}/{number + 1}.json", json.dumps(taken).encode())
        except AlreadyExists:
            _LOG.info("another instance has changed the databases of policy %s too: they are read again", policy.name)
            continue
        for pattern, names in taken.items():
            _LOG.info("the pattern %s has the databases %s", pattern, ", ".join(names) or "(none)")
        storage.delete(f"{place}/{number + 1 - _KEPT}.json")
        break
    return with_databases(policy, (name for names in taken.values() for name in names))


def resolved_before(policy: Policy) -> Policy:
    """The policy with the databases that its patterns had when the source was asked last; the source is not asked.

    Raises:
        BadRequest: the file of the databases is damaged.
        Unreachable: the storage of dumps does not answer.
    """
    if not any(map(is_pattern, policy.databases)):
        return policy
    root = dump_root(policy)
    _, known = _known(Storage((root,)), f"{root.uri}.policies/{policy.name}")
    return with_databases(policy, (name for names in known.values() for name in names))


def _known(storage: Storage, place: str) -> tuple[int, dict[str, list[str]]]:
    """The newest number of a policy's files, and what that file says; before the first one, 0 and the file without a number.

    Earlier versions wrote only that one, in place: it may have been left half-written.
    """
    names = (status.uri.rpartition("/")[2].removesuffix(".json") for status in storage.ls(place))
    number = max((int(name) for name in names if _NUMBER.fullmatch(name)), default=0)
    uri = f"{place}/{number}.json" if number else f"{place}.json"
    try:
        return number, _KNOWN.validate_python(parsed(storage.read(uri, most=_MOST), most=_MOST))
    except FileNotFoundError:
        return number, {}
    except ValueError as error:
        raise BadRequest(
            f"{uri}, the databases that the policy's patterns stand for, is damaged: delete it, and the patterns stand for what "
            "the source has now"
        ) from error


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
