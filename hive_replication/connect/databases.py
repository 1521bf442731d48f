"""Databases by pattern: which ones a policy has, and under which names on the target (design: events, CREATE_DATABASE).

A pattern has the databases that it matched when it was first used, and later ones only with ``new_databases: true``. Which those
are is kept below the dump root, so that all instances have the same, and after a restart: in
``.policies/<policy>-<hash of the metastores>/<n>.json``: other policies may have its name. A change is the file of the next
number. It appears whole, and only one instance can write it; another reads that file first.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

from hive_replication.connect.dump_root import dump_root
from hive_replication.connect.former_databases import FormerDatabases, newest, read
from hive_replication.connect.hanging_storage import require_answers
from hive_replication.dump.source import REMOTE
from hive_replication.errors import OF_ONE_DATABASE, BadRequest, MetastoreError, Unreachable
from hive_replication.metastore.client import Metastore
from hive_replication.metastore.types import is_remote
from hive_replication.policy import Policy, Root
from hive_replication.policy.database_names import is_pattern
from hive_replication.policy.warehouse import pair_hash
from hive_replication.storage import AlreadyExists, Denied, Storage

_LOG = logging.getLogger(__name__)

#: Hive's own: views of its metastore's database.
_HIVES_OWN = frozenset({"information_schema", "sys"})
#: Key in a policy's file, no pattern: databases among those of the patterns that may be remote.
_UNKNOWN = "kind unknown"
_KEPT = 10  # the newest files of a policy: one that is being read is not deleted


@dataclass(frozen=True, slots=True)
class PatternMatches:
    """What the patterns of a policy stand for.

    Args:
        databases: source databases by pattern.
        left_out: source databases that a pattern matches and that are not replicated, with the reason: the name that they would
            have on the target is another's, or they are those of a data connector.
    """

    databases: Mapping[str, Sequence[str]] = field(default_factory=dict[str, Sequence[str]])
    left_out: Mapping[str, str] = field(default_factory=dict[str, str])


def resolved(policy: Policy, source: Metastore, patience: float) -> Policy:
    """The policy with the databases that its patterns stand for; see :func:`matched`.

    Args:
        policy: the policy.
        source: the source's metastore.
        patience: seconds to wait for the storage of dumps.
    """
    return matched(policy, source, patience)[0]


def matched(policy: Policy, source: Metastore, patience: float, *, record: bool = True) -> tuple[Policy, PatternMatches]:
    """The policy with the databases that its patterns stand for; itself where it has none, and then nothing is asked.

    Args:
        policy: the policy.
        source: the source's metastore.
        patience: seconds to wait for the storage of dumps.
        record: whether databases that are taken in now are recorded; reports leave that to what replicates.

    Raises:
        BadRequest: two databases that the policy names have the same name on the target, or the file of the databases is damaged.
        Unreachable: the source's metastore does not answer, or what is to be recorded cannot be: the storage of dumps does not,
            or the target's metastore, which is asked where nothing is recorded.
        Denied: what is to be recorded cannot be.
    """
    if not any(map(is_pattern, policy.databases)):
        return policy, PatternMatches()
    root, there = dump_root(policy), _There(source, set(source.databases()))
    taken = (_recorded if record else _in_memory)(policy, root, there, patience)
    policy, written = with_databases(policy, (name for names in taken.values() for name in names)), policy
    left_out = _left_out(written, there.names, policy.databases) | dict.fromkeys(sorted(there.remote), f"it is remote: {REMOTE}")
    for name, why in left_out.items():
        _LOG.warning("the source database %s is left out: %s", name, why)
    return policy, PatternMatches(taken, left_out)


@dataclass
class _There:
    """Databases of the source; those of data connectors among them, and those that may be, as far as they were asked about."""

    source: Metastore
    names: set[str]
    remote: set[str] = field(default_factory=set[str])
    unknown: set[str] = field(default_factory=set[str])

    def taken_in(self, policy: Policy, known: Mapping[str, list[str]]) -> dict[str, list[str]]:
        """See :func:`taken_in`; of those that would be new, or were not known to be ordinary ones, it takes no remote ones."""
        unsure = set(known.get(_UNKNOWN, ()))
        taken = taken_in(policy, self.names, known)
        names = set(chain(*taken.values()))
        self.unknown = unsure - names  # another policy's of this name
        self.remote |= set(filter(self._is_remote, names.difference(*known.values()) | (names & unsure)))
        self.names -= self.remote
        return taken_in(policy, self.names, self.without_remote(known)) if self.remote else taken

    def without_remote(self, known: Mapping[str, list[str]]) -> dict[str, list[str]]:
        """Databases by pattern, without those that are known to be remote by now."""
        return {pattern: [name for name in names if name not in self.remote] for pattern, names in known.items()}

    def kept(self, known: Mapping[str, list[str]], taken: Mapping[str, list[str]]) -> dict[str, list[str]]:
        """What is recorded after ``known``.

        Another policy may have this name too: without its patterns the list would be new to each in turns. And of a pattern that
        both have, or that another one stands before for a time, nothing that it had is taken away, but what is remote.
        """
        before = self.without_remote(known)
        before.pop(_UNKNOWN, None)
        unknown = {_UNKNOWN: sorted(self.unknown)} if self.unknown else {}
        return {**before, **{pattern: sorted({*before.get(pattern, ()), *names}) for pattern, names in taken.items()}, **unknown}

    def _is_remote(self, name: str) -> bool:
        try:
            found = self.source.database(name)
        except MetastoreError as error:  # taken in: that the account may not see it is said of that database, and stops no other
            _LOG.warning("whether the source database %s is remote is not known: %s", name, error)
            self.unknown.add(name)
            return False
        return found is not None and is_remote(found)


def _recorded(policy: Policy, root: Root, there: _There, patience: float) -> dict[str, list[str]]:
    storage, place = Storage((root,)), _place(policy, root)
    while True:
        number, known = _known(storage, policy, root, patience, there)
        taken = there.taken_in(policy, known)
        kept = there.kept(known, taken)
        if number and kept == known:
            return taken
        try:
            storage.write_once(f"{place}/{number + 1}.json", json.dumps(kept).encode())
        except AlreadyExists:
            _LOG.info("another instance has changed the databases of policy %s too: they are read again", policy.name)
            continue
        for pattern, names in taken.items():
            _LOG.info("the pattern %s has the databases %s", pattern, ", ".join(names) or "(none)")
        storage.delete(f"{place}/{number + 1 - _KEPT}.json")
        return taken


def _in_memory(policy: Policy, root: Root, there: _There, patience: float) -> dict[str, list[str]]:
    try:
        _, known = _known(Storage((root,)), policy, root, patience, there)
    except (Unreachable, Denied, *OF_ONE_DATABASE) as error:  # a report is to come all the same, and says what is down or hidden
        _LOG.warning("which databases the policy's patterns had is not known; they stand for all that match now: %s", error)
        known = {}
    return there.taken_in(policy, known)


def matched_before(policy: Policy, patience: float) -> tuple[Policy, PatternMatches]:
    """The policy with the databases that its patterns had when the source was asked last; the source is not asked.

    Args:
        policy: the policy.
        patience: seconds to wait for the storage of dumps.

    Raises:
        BadRequest: the file of the databases is damaged.
        Unreachable: the storage of dumps does not answer.
        Denied: it must not be read.
    """
    if not any(map(is_pattern, policy.databases)):
        return policy, PatternMatches()
    root = dump_root(policy)
    _, found = _known(Storage((root,)), policy, root, patience)
    known: dict[str, list[str]] = {}
    for name in chain(*found.values()):  # its pattern may have been edited since, or another one stands before it
        if (own := policy.pattern_of(name)) is not None:
            known.setdefault(own, []).append(name)
    taken = {pattern: names for pattern, names in taken_in(policy, (), known).items() if names}
    return with_databases(policy, chain(*taken.values())), PatternMatches(taken)


def _place(policy: Policy, root: Root) -> str:
    return f"{root.uri}.policies/{policy.name}-{pair_hash(policy.pair)}"


def _known(
    storage: Storage, policy: Policy, root: Root, patience: float, there: _There | None = None
) -> tuple[int, dict[str, list[str]]]:
    """The newest number of a policy's files, and what that file says; before the first, 0 and what else tells of it."""
    require_answers(storage, patience)
    place = _place(policy, root)
    if number := newest(storage, place):
        return number, read(storage, f"{place}/{number}.json")
    names = frozenset(there.names | there.remote) if there else frozenset[str]()
    return 0, FormerDatabases(storage, policy, root, patience, there.source if there else None, names).found()


def taken_in(policy: Policy, there: Iterable[str], known: Mapping[str, list[str]]) -> dict[str, list[str]]:
    """By pattern the databases that it has: those it had, and those there now if it is new or takes in new ones (pure).

    A pattern that had none is new: it was misspelt, or its databases were yet to come. None is taken in whose name on the target
    is another's: of those there are, the ones that the policy names come first, then those that were taken in before, then those
    of the first pattern.
    """
    now = set(there) - _HIVES_OWN - policy.databases.keys()
    patterns = list(filter(is_pattern, policy.databases))
    before = {pattern: known.get(pattern, ()) for pattern in patterns}
    new = {pattern: now if policy.new_databases or not before[pattern] else frozenset[str]() for pattern in patterns}
    candidates = [
        (pattern, name)
        for names in (before, new)
        for pattern in patterns
        for name in sorted(names[pattern])
        if policy.pattern_of(name) == pattern
    ]
    fitting = with_databases(policy, (name for _, name in candidates)).databases
    return {pattern: sorted({name for one, name in candidates if one == pattern and name in fitting}) for pattern in patterns}


def with_databases(policy: Policy, names: Iterable[str]) -> Policy:
    """The policy with some databases in place of its patterns, without those whose name on the target is another's (pure).

    Settings of databases that its patterns match and that are not among them, such as dropped ones, are left out too.

    Args:
        policy: the policy.
        names: of databases that its patterns match; the first of those that have the same name on the target counts.

    Raises:
        BadRequest: two databases that the policy names have the same name on the target.
    """
    databases: dict[str, str] = {}
    sources: dict[str, str] = {}
    named = [name for name in policy.databases if not is_pattern(name)]
    for name in dict.fromkeys((*named, *names)):
        target = policy.target_of(name)
        first = sources.setdefault(target, name)
        if first == name:
            databases[name] = target
        elif name in policy.databases:
            raise BadRequest(f"the policy replicates both {first!r} and {name!r} to {target!r}: give one another name")

    def there(name: str) -> bool:
        return name in databases or is_pattern(name) or not policy.has_database(name)

    settings = {
        "partition_filters": {name: filters for name, filters in policy.partition_filters.items() if there(name)},
        "priorities": {name: value for name, value in policy.priorities.items() if there(name.lower())},
        "locations": {name: directory for name, directory in policy.locations.items() if name in databases.values()},
    }
    return policy.model_copy(update={"databases": databases, **settings})


def _left_out(policy: Policy, there: Iterable[str], databases: Mapping[str, str]) -> dict[str, str]:
    """Why databases are left out that a pattern of the policy matches (pure)."""
    sources = {target: name for name, target in databases.items()}
    return {
        name: f"its name on the target would be {target!r}, which is that of {sources[target]!r}: name it in databases of the "
        "policy, with another one"
        for name in sorted(set(there) - _HIVES_OWN - databases.keys())
        if policy.pattern_of(name) and (target := policy.target_of(name)) in sources
    }
