"""The connected target side of a policy."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from hive_replication.errors import Refused, Unreachable
from hive_replication.load.replica.ownership import refuse_other_policy
from hive_replication.load.replica.state import SOURCE_FOR, ReplicaState, replica_state
from hive_replication.metastore.client import Metastore
from hive_replication.parallel import Threads
from hive_replication.policy import Policy
from hive_replication.storage import Storage
from hive_replication.storage.boundary import qualified


@dataclass(frozen=True)
class Target:
    """Where a load writes.

    Args:
        metastore: the target's metastore.
        storage: the target's storage roots.
        policy: names and limits.
        source_storage: the source's storage roots; files of a dump are read from below them only.
        source_metastore: the source's metastore, which tells where its databases lie; None where it cannot be asked.
    """

    metastore: Metastore
    storage: Storage
    policy: Policy
    source_storage: Storage
    source_metastore: Metastore | None = None

    @cached_property
    def threads(self) -> Threads:
        """Carry out lanes in parallel."""
        return Threads(self.policy.parallelism.lanes, "lane")

    def within_filters(self, database: str) -> Target:
        """The same as it is compared with a source database: without partitions outside the policy's filters."""
        filter_of = self.policy.filters(database).of
        return replace(self, metastore=self.metastore.within(lambda _, table: filter_of(table)))

    @property
    def identity(self) -> str:
        """Identity of the metastore, as :attr:`hive_replication.dump.source.Source.identity`."""
        return self.metastore.uuid() or self.metastore.uri

    @property
    def source_identity(self) -> str:
        """What replicas of the policy's source are stamped with, "" where that one does not answer at once."""
        source = self.source_metastore
        try:
            return (source.at_once().uuid() or source.uri) if source is not None else ""
        except Unreachable:
            return ""

    def feeds(self, database: str) -> bool:
        """Whether a database of the target is the source of another replication, which has to read of changes in the log."""
        found = self.metastore.database(database)
        return found is not None and bool((found.parameters or {}).get(SOURCE_FOR))

    def warehouses(self, beside: str = "") -> tuple[str, ...]:
        """URIs of the directories in which the metastore creates databases: the warehouse, and that of external tables if any.

        Args:
            beside: on whose store they lie if the settings are paths alone, as Hive's default is; the first root's where "".
        """
        settings = (("hive.metastore.warehouse.dir", "/user/hive/warehouse"), ("hive.metastore.warehouse.external.dir", ""))
        found = (self.metastore.config_value(*setting) for setting in settings)
        return tuple(qualified(one, beside or self.policy.target.roots[0].uri).rstrip("/") for one in found if one)

    def default_locations(self, database: str, beside: str = "") -> tuple[str, ...]:
        """Directories that a database may get when it is created; the first is the policy's choice, or the likeliest.

        Args:
            database: its name.
            beside: see :meth:`warehouses`.
        """
        chosen = self.policy.locations.get(database.lower())
        defaults = (f"{one}/{database}.db" for one in self.warehouses(beside))
        return tuple(dict.fromkeys([*filter(None, [chosen]), *defaults]))


def state_of(target: Target, database: str) -> ReplicaState:
    """The state of the replica of a source database, by the name that the policy gives it."""
    return replica_state(target.metastore.database(target.policy.target_of(database)))


def refuse_others_replica(target: Target, database: str, state: ReplicaState) -> None:
    """Makes sure that what an operator does to a replica is done by the policy that writes it.

    Args:
        target: the target side, with the policy.
        database: name on the target.
        state: of the target database.

    Raises:
        Refused: another policy writes it, or one of the same name from another source.
    """
    refuse_other_policy(state, database, target.policy.name)
    if state.source and (ours := target.source_identity) and state.source.rpartition("/")[0] != ours:
        raise Refused(
            f"the target database {database!r} is a replica of {state.source}, and the source of this policy "
            f"{target.policy.name!r} is {ours}: nothing was changed; go by the file of the policy that writes it (--config)"
        )
