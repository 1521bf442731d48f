"""Which databases the patterns of a policy had before there was a file of them for its name and metastores.

They are in files of the same policy with another address or name, or the replicas on the target tell where the dump root is
another one: files are kept there. Where nothing tells of any, the patterns are new.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from itertools import chain
from typing import Annotated

from pydantic import ConfigDict, Field, TypeAdapter

from hive_replication.bounded_json import MIB, parsed
from hive_replication.errors import BadRequest, Unreachable
from hive_replication.load.replica.failover_marks import failover_marks
from hive_replication.load.replica.state import replica_state
from hive_replication.metastore.client import Metastore
from hive_replication.policy import Policy, Root
from hive_replication.policy.warehouse import pair_hash
from hive_replication.storage import Denied, Storage

_LOG = logging.getLogger(__name__)

_MOST = 16 * MIB
_NUMBER = re.compile(r"[1-9][0-9]{0,14}")
# A database's name is also a directory of the dump root.
_DATABASE = Annotated[str, Field(pattern=r"^[^/\x00-\x1f]{1,128}$")]
_KNOWN = TypeAdapter(dict[str, list[_DATABASE]], config=ConfigDict(strict=True))


@dataclass
class FormerDatabases:
    """Finds them.

    Args:
        storage: where the files are.
        policy: with its patterns.
        root: its dump root.
        patience: seconds to wait for the target's metastore.
        source: the source's metastore; None where it cannot be asked.
        names: its databases.
    """

    storage: Storage
    policy: Policy
    root: Root
    patience: float
    source: Metastore | None
    names: frozenset[str]
    _former_names: set[str] = field(default_factory=set[str])

    def found(self) -> dict[str, list[str]]:
        """Of what is kept for other metastores, names and by earlier versions, that whose replicas the target has.

        An address in the policy may have changed, or its name. Where the target has none, it is what an earlier version kept, but
        another's where this source, if it can be asked, lacks any of it. The first of them wrote only one file, in place: it may
        be half-written.

        Raises:
            Unreachable: the target does not answer, and the source does.
        """
        earlier = f"{self.root.uri}.policies/{self.policy.name}"
        number = newest(self.storage, earlier)
        known = read(self.storage, f"{earlier}/{number}.json" if number else f"{earlier}.json")
        kept = [*self._of_others(), known]
        ours = self._replicated({*chain(*map(_names, kept))})
        best = max(kept, key=lambda one: len(ours.intersection(_names(one))))
        if ours.intersection(_names(best)):
            return best
        lacks = set(_names(known)).difference(self.names) if self.source else ()
        if lacks:
            _LOG.warning(
                "the databases in %s seem to be those of another policy of this name, since this source has no %s, and the "
                "target no replica of any",
                earlier,
                ", ".join(sorted(lacks)),
            )
        return known if known and not lacks else self._of_another_root()

    def _of_others(self) -> Iterator[dict[str, list[str]]]:
        """What is kept for its name and other metastores, or for other names and its metastores."""
        own, pair = self.policy.name, pair_hash(self.policy.pair)
        for uri in (status.uri.rstrip("/") for status in self.storage.ls(f"{self.root.uri}.policies")):
            name, _, its_pair = uri.rpartition("/")[2].rpartition("-")
            if name and (its_pair == pair or (name == own and re.fullmatch(r"[0-9a-f]{8}", its_pair))):
                with suppress(BadRequest, Denied):  # one that is damaged is told of to those whose it is
                    yield read(self.storage, f"{uri}/{newest(self.storage, uri)}.json")
                    self._former_names.add(name)

    def _of_another_root(self) -> dict[str, list[str]]:
        """The replicas of databases that patterns match and that have no dumps here; a policy that takes in all needs none."""
        pattern_of, named = self.policy.pattern_of, self.policy.databases
        if self.policy.new_databases:
            return {}
        dumped = {status.uri.rstrip("/").rpartition("/")[2] for status in self.storage.ls(self.root.uri)}
        found: dict[str, list[str]] = {}
        for name in sorted(self._replicated({name for name in self.names if pattern_of(name) and name not in named})):
            found.setdefault(pattern_of(name) or "", []).append(name)
        if not found or dumped.intersection(_names(found)):
            return {}
        _LOG.warning(
            "%s does not tell which databases the patterns of policy %s have: those stay of which the target has replicas (%s); "
            "others come where the policy names them, or with new_databases",
            self.root.uri,
            self.policy.name,
            ", ".join(_names(found)),
        )
        return found

    def _replicated(self, names: set[str]) -> set[str]:
        """Databases of which the target has replicas of this policy, from this source if it can be asked, or was opened with.

        Raises:
            Unreachable: the target does not answer, and the source does.
        """
        found, of_policies = set[str](), {"", self.policy.name, *self._former_names}
        if not names:
            return found
        identity = self.source.uuid() or self.source.uri if self.source else ""
        try:
            with Metastore.of(self.policy.target, timeout=self.patience, retries=2) as target:
                there = set(target.databases())
                for name in names:
                    replicated = self.policy.target_of(name)
                    if replicated not in there or not self.policy.has_database(name):
                        continue
                    replica = target.database(replicated)
                    state, opened = replica_state(replica), failover_marks(replica).origin
                    source, _, database = (state.source or opened).rpartition("/")
                    if database == name and identity in ("", source) and state.policy in of_policies:
                        found.add(name)
        except Unreachable as error:
            if self.source:
                raise
            _LOG.warning("which of the databases are replicas of the policy is not known: %s", error)
        return found


def _names(known: Mapping[str, Sequence[str]]) -> Iterable[str]:
    return chain(*known.values())


def newest(storage: Storage, place: str) -> int:
    """The number of the newest file in a directory of those that tell of a policy's databases; 0 where there is none."""
    names = (status.uri.rpartition("/")[2].removesuffix(".json") for status in storage.ls(place))
    return max((int(name) for name in names if _NUMBER.fullmatch(name)), default=0)


def read(storage: Storage, uri: str) -> dict[str, list[str]]:
    """What such a file says; nothing where there is none.

    Raises:
        BadRequest: it is damaged.
    """
    try:
        return _KNOWN.validate_python(parsed(storage.read(uri, most=_MOST), most=_MOST))
    except FileNotFoundError:
        return {}
    except ValueError as error:
        raise BadRequest(
            f"{uri}, the databases that the policy's patterns stand for, is damaged: delete it, and the patterns stand for what "
            "the source has now"
        ) from error
