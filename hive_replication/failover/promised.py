"""Differences of a replica that its policy promises, and that no repair removes: a planned failover does not wait for them."""

from __future__ import annotations

from hive_replication.connect import Connection
from hive_replication.dump.source import why_skipped
from hive_replication.load.replica.held_reasons import LEFT_OUT_REASON
from hive_replication.load.replica.state import is_ours, replica_state
from hive_replication.metastore.types import Table
from hive_replication.verify import TableComparison


class Promised:
    """What the policy promises of one database, as it is now.

    Args:
        connection: both sides.
        name: source database.
    """

    def __init__(self, connection: Connection, name: str) -> None:
        self._source, self._target, self._name = connection.source, connection.target, name
        self._target_name = connection.target.policy.target_of(name)
        self._state = replica_state(connection.target.metastore.database(self._target_name))

    def is_met(self, found: TableComparison) -> bool:
        """Whether a table that differs is as the policy says.

        Either it stays, since the source's has become one that is not replicated; or it is no replica, and the target's alone.
        """
        ours = self._source.metastore.table(self._name, found.table)
        if self._state.why_left_out(found.table) and ours is not None and why_skipped(ours, acid=self._source.acid):
            return True  # what a load wrote down ends with a repair only: by now the source's may be replicated again
        theirs = self._target.metastore.table(self._target_name, found.table)
        return self._is_of_target_alone(ours, theirs)

    def _is_of_target_alone(self, ours: Table | None, theirs: Table | None) -> bool:
        """Such as one that a failback kept aside: replication never touches it."""
        left = ours is None or why_skipped(ours, acid=self._source.acid)
        return bool(left) and theirs is not None and not is_ours(theirs, self._state.source)


def stays_left(reason: str) -> bool:
    """Whether a table is held for good, since the source's has become one that is not replicated."""
    return reason.startswith(LEFT_OUT_REASON)
