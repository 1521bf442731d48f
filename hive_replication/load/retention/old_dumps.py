"""Old dumps: which of them retention deletes (pure), and how they are found below a dump root that other policies may share.

A policy deletes the dumps that were made for it, and no others: another one, which replicates the same database elsewhere, may
not have loaded its own yet, and goes by its own times. What does not tell for whom it was made is kept.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from hive_replication.dump.format.closed_directories import chosen
from hive_replication.dump.format.interface import DumpStore
from hive_replication.dump.format.record_types import DumpHeader
from hive_replication.errors import BadRequest, ReplicationError, Unreachable
from hive_replication.load.layout.live_locations import Locations
from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.state import ReplicaState
from hive_replication.load.retention.removals import InUse, Removal, Swept
from hive_replication.logs import about
from hive_replication.metastore.transport import addresses
from hive_replication.policy import Policy

_LOG = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class OldDump:
    """A complete dump that is older than the retention time.

    Args:
        directory: of it.
        header: its header.
        noted: name of the policy that its writers noted, where its header tells none; "" where they did not.
        joined_to: directories of the dumps that name it as that of a table which they take into the policy.
    """

    directory: str
    header: DumpHeader
    noted: str = ""
    joined_to: tuple[str, ...] = ()

    def is_of(self, policy: Policy) -> bool:
        """Whether it was made for a policy.

        Policies of one name with other targets are others. Earlier versions noted names only.
        """
        header = self.header
        if not header.policy:
            return self.noted == policy.name
        return header.policy == policy.name and _have_one_in_common(header.target, policy.target.metastore)

    def is_due(self, in_use: InUse, gone_from: str) -> bool:
        """Whether its replica, or that which was made of it and is gone, needs it no more, and nothing waits with it.

        Args:
            in_use: what is in use.
            gone_from: identity of the source of a database that is gone; "" for any.
        """
        state, header = in_use.state, self.header
        loaded = f"{header.source}/{header.scope.database}" == state.source and covers(state.last_id, header.to_evid)
        gone = gone_from in ("", header.source) and not state.source
        waits = not all(map(in_use.is_unplanned, (self.directory, *self.joined_to)))
        return (loaded or gone) and state.checkpoint != self.directory and not waits


@dataclass(frozen=True, slots=True)
class OldDumps:
    """The old dumps of a target database of a policy.

    Args:
        policy: the policy.
        database: target database.
        names: of it at the source.
        store: where its dumps are.
        expiry: dumps from before it are old, seconds since the epoch.
        gone_from: see :meth:`OldDump.is_due`.
    """

    policy: Policy
    database: str
    names: tuple[str, ...]
    store: DumpStore
    expiry: float
    gone_from: str = ""
    _unknown: list[str] = field(default_factory=list[str])
    _read: set[str] = field(default_factory=set[str])

    def removals(self, state: ReplicaState, planned: Callable[[], frozenset[str] | None]) -> Iterator[Removal]:
        """Removals of those that nobody needs, and of what interrupted dumps left.

        Args:
            state: replication state of the database.
            planned: tells the dumps of windows that wait for approval; only asked where there are dumps.
        """
        found = list(self._old())
        if self._unknown:
            _LOG.warning(
                "%d old dumps are kept, since they do not tell for which policy they were made; the first is %s: delete by hand "
                "those that no policy is to load",
                len(self._unknown),
                self._unknown[0],
                extra=about(self.database),
            )
        in_use = InUse(Locations(()), state, planned() if found else frozenset())
        for one in found:
            if self._is_due(one, in_use):
                yield self._removal(one.directory, lambda in_use, one=one: self._is_due(one, in_use))
        for name in self.names:
            for directory in self.store.unfinished(name, self.expiry):
                if self._noted(directory) in ("", self.policy.name):  # "" has only what retention began to delete
                    yield self._removal(directory, lambda _, left=directory: self._is_left(left))

    def _removal(self, directory: str, is_due: Callable[[InUse], bool]) -> Removal:
        return Removal(Swept("dump", directory, "", 0), is_due, lambda: self.store.remove(directory))

    def _is_due(self, one: OldDump, in_use: InUse) -> bool:
        """What a window waits with may name any of its database where it could not be read, or was made since."""
        beside = one.directory.rpartition("/")[0]  # plans name anything, also what is no URI
        unread = (each for each in in_use.planned or () if each.rpartition("/")[0] == beside and each not in self._read)
        return one.is_due(in_use, self.gone_from) and not any(map(self._is_there, unread))

    def _is_there(self, directory: str) -> bool:
        try:
            return self.store.storage.exists(directory)
        except Unreachable:
            raise
        except ReplicationError:
            return True

    def _is_left(self, directory: str) -> bool:
        """Another account may have closed it since it was listed, or somebody have gone on with it."""
        return bool(chosen([directory], lambda one: self.store.is_unfinished(one, self.expiry)))

    def _old(self) -> Iterator[OldDump]:
        """The policy's old dumps."""
        found = {one: self._header(one) for name in self.names for one in self.store.dumps(name)}
        headers = {one: header for one, header in found.items() if header}
        self._read.update(headers)
        joined = _joined(headers)
        for directory, header in headers.items():
            if header.created < self.expiry:
                noted = header.policy or self._noted(directory) or ""
                if not noted:
                    self._unknown.append(directory)
                one = OldDump(directory, header, noted, tuple(joined.get(directory, ())))
                if one.is_of(self.policy):
                    yield one

    def _header(self, directory: str) -> DumpHeader | None:
        try:
            return self.store.header(directory, signed=False)  # the key may be a new one
        except Unreachable:
            raise
        except ReplicationError as error:  # it is nobody's reason to keep the others
            _LOG.warning("a dump is kept, since nobody can tell what it is of: %s", error, extra=about(self.database))
            return None

    def _noted(self, directory: str) -> str | None:
        try:
            return self.store.policy_of(directory)
        except Unreachable:
            raise
        except ReplicationError as error:
            _LOG.warning("a dump is kept, since this account cannot read whose it is: %s", error, extra=about(self.database))
            return None


def _joined(headers: Mapping[str, DumpHeader]) -> dict[str, list[str]]:
    """Dumps by those of tables that they take into the policy."""
    found: dict[str, list[str]] = {}
    for directory, header in headers.items():
        for table in header.joined.values():
            found.setdefault(table, []).append(directory)
    return found


def _have_one_in_common(one: str, other: str) -> bool:
    """Whether two settings name one metastore: addresses are added and taken away."""
    with suppress(BadRequest):  # a dump is not trusted
        return not set(addresses(one)).isdisjoint(addresses(other))
    return False
