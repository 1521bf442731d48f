"""Differences of a replica that its policy promises, and that no repair removes: a planned failover does not wait for them."""

from __future__ import annotations

from contextlib import suppress

from hive_replication.connect import Connection
from hive_replication.dump.source import why_skipped
from hive_replication.load.replica.held_reasons import LEFT_OUT_REASON
from hive_replication.load.replica.state import is_ours, replica_state
from hive_replication.load.replica.view_rewriting import renamed_databases, rewritten
from hive_replication.load.replica.view_text import CannotRewrite
from hive_replication.metastore.table_kinds import is_view
from hive_replication.metastore.types import Table
from hive_replication.verify import TableComparison
from hive_replication.verify.columns_and_parameters import expected_shape, shape_differences, table_shape


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

        Either it stays, since the source's has become one that is not replicated; or it is no replica, and the target's alone; or
        it is a view whose text stays although it names databases that have other names on the target.
        """
        ours = self._source.metastore.table(self._name, found.table)
        if self._state.why_left_out(found.table) and ours is not None and why_skipped(ours, acid=self._source.acid):
            return True  # what a load wrote down ends with a repair only: by now the source's may be replicated again
        theirs = self._target.metastore.table(self._target_name, found.table)
        return self._is_of_target_alone(ours, theirs) or self._is_view_as_written(ours, theirs)

    def _is_of_target_alone(self, ours: Table | None, theirs: Table | None) -> bool:
        """Such as one that a failback kept aside: replication never touches it."""
        left = ours is None or why_skipped(ours, acid=self._source.acid)
        return bool(left) and theirs is not None and not is_ours(theirs, self._state.source)

    def _is_view_as_written(self, ours: Table | None, theirs: Table | None) -> bool:
        policy = self._source.policy
        if policy.renamed_views not in ("warn", "rewrite-or-warn"):
            return False
        databases = renamed_databases(policy.databases, self._name, self._target_name)
        if ours is None or theirs is None or not is_view(ours):
            return False
        if policy.renamed_views == "rewrite-or-warn":
            with suppress(CannotRewrite):
                rewritten(ours, databases)
                return False  # then its text is to be another
        roots = [root.uri for root in policy.source.roots]
        return not any(shape_differences(expected_shape(ours, {}, policy.owners), table_shape(theirs), roots))


def stays_left(reason: str) -> bool:
    """Whether a table is held for good, since the source's has become one that is not replicated."""
    return reason.startswith(LEFT_OUT_REASON)
