"""The metastore client: all calls of one metastore in one object."""

from __future__ import annotations

from copy import copy
from typing import Self

from hive_replication.metastore.connection import CALL_ATTEMPTS, CALL_TIMEOUT
from hive_replication.metastore.constraints import Constraints
from hive_replication.metastore.functions import Functions
from hive_replication.metastore.materialized_views import as_view
from hive_replication.metastore.notification_log import NotificationLog
from hive_replication.metastore.partitions import Partitions
from hive_replication.metastore.privileges import Privileges
from hive_replication.metastore.replicated_transactions import Replay
from hive_replication.metastore.statistics import Statistics
from hive_replication.metastore.transport import Access
from hive_replication.metastore.types import Table
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

    ``views_of_materialized`` tells whether materialized views are shown as ordinary ones of the same definition.
    """

    views_of_materialized: bool = False

    @classmethod
    def of(cls, side: Warehouse, *, timeout: float = CALL_TIMEOUT, retries: int = CALL_ATTEMPTS, connections: int = 64) -> Self:
        """The metastore of a side of the policy, reached as the policy says."""
        return cls(side.metastore, Access.of(side), timeout=timeout, retries=retries, connections=connections)

    def with_views_of_materialized(self) -> Self:
        """The same metastore, which shows materialized views as ordinary ones of the same definition."""
        shown = copy(self)
        shown.views_of_materialized = True
        return shown

    def at_once(self) -> Self:
        """The same metastore, for a question that is left open where it does not answer within ten seconds."""
        return type(self)(self.uri, self.access, timeout=5.0, retries=2)

    def table(self, db: str, name: str) -> Table | None:
        """A table or view, or None if there is none of that name."""
        found = super().table(db, name)
        return as_view(found) if found and self.views_of_materialized else found

    def _tables_named(self, db: str, names: list[str]) -> list[Table]:
        found = super()._tables_named(db, names)
        return [as_view(table) for table in found] if self.views_of_materialized else found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
