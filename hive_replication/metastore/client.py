"""The metastore client: all calls of one metastore in one object."""

from __future__ import annotations

from typing import Self

from hive_replication.metastore.constraints import Constraints
from hive_replication.metastore.functions import Functions
from hive_replication.metastore.notification_log import NotificationLog
from hive_replication.metastore.partitions import Partitions
from hive_replication.metastore.privileges import Privileges
from hive_replication.metastore.replicated_transactions import Replay
from hive_replication.metastore.statistics import Statistics
from hive_replication.metastore.transport import Access
from hive_replication.policy.warehouse import Warehouse


class Metastore(Partitions, Functions, Constraints, Statistics, Privileges, Replay, NotificationLog):
    """A Hive metastore. Threads may share one, and its connections, which are opened when needed.

    Calls are repeated after transient errors where a repeat does no harm. Errors are
    :class:`hive_replication.errors.Unreachable` or :class:`hive_replication.metastore.faults.MetastoreError`.

    Args:
        uri: ``thrift://host:port``, or several joined by commas that share one database.
        access: how connections are secured, and as whom.
        timeout: seconds to wait for the answer of one call.
        retries: attempts of one call in all, with growing delays of 0.2 s to 10 s between them, within twice the timeout.
        batch: tables or partitions read in one call.
        connections: the most that there are, and so the most calls at a time; further ones wait.
    """

    @classmethod
    def of(cls, side: Warehouse, *, timeout: float = 600, retries: int = 8, connections: int = 64) -> Self:
        """The metastore of a side of the policy, reached as the policy says."""
        return cls(side.metastore, Access.of(side), timeout=timeout, retries=retries, connections=connections)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
