"""The mark of a replica that the policy no longer includes."""

from __future__ import annotations

from dataclasses import dataclass

from hive_replication.load.operations.base import CustomOperation
from hive_replication.load.replica.state import LEFT_MARK
from hive_replication.load.replica.target import Target
from hive_replication.metastore.types import copy_of


@dataclass(frozen=True, slots=True)
class MarkLeft(CustomOperation):
    """Marks a replica that the policy no longer includes, for those who look at the table.

    Args:
        at: event id that it stands at; 0 takes the mark away again.
    """

    kind = "MarkLeft"
    at: int = 0

    def carry_out(self, target: Target, database: str) -> None:
        """See :class:`hive_replication.load.operations.base.CustomOperation`."""
        table = target.metastore.table(database, self.table)
        if table is not None and (table.parameters or {}).get(LEFT_MARK, "0") != str(self.at):
            marked = copy_of(table)
            others = {key: value for key, value in (table.parameters or {}).items() if key != LEFT_MARK}
            marked.parameters = others | ({LEFT_MARK: str(self.at)} if self.at else {})
            target.metastore.alter_table(database, self.table, marked)
