"""Columns of partitions that follow their table's: ``ALTER TABLE .. CASCADE``, of which the metastore writes no event for them.

The ALTER_TABLE event does not tell CASCADE either. So the dump names the partitions that have the new columns at the source, and
the load gives those the same: one that had them already, or gets them by a later event, is left alone.
"""

from __future__ import annotations

from dataclasses import dataclass

from hive_replication.load.operations.kinds import CustomOperation
from hive_replication.load.replica.covers import covers
from hive_replication.load.replica.fingerprint import FINGERPRINT, with_fingerprint
from hive_replication.load.replica.state import object_id
from hive_replication.load.replica.target import Target
from hive_replication.metastore.tables import at_once, batches
from hive_replication.metastore.types import FieldSchema, columns_of, copy_of, described


@dataclass(frozen=True, slots=True)
class SetColumns(CustomOperation):
    """Gives partitions other columns. It comes before its table's change, whose id says that both are done.

    Args:
        names: partitions; those that the target does not have, or that stand later, stay as they are.
        columns: what they are to have.
    """

    kind = "SetColumns"
    names: tuple[str, ...]
    columns: tuple[FieldSchema, ...]

    @property
    def partitions(self) -> tuple[str, ...]:
        """Those that it may alter."""
        return self.names

    @property
    def partitions_changed(self) -> tuple[str, ...]:
        """None for certain."""
        return ()

    def carry_out(self, target: Target, database: str) -> None:
        """Alters those that differ."""
        wanted = described(self.columns)
        for names in batches(self.names, at_once(self.columns)):
            images = [
                copy_of(part)
                for part in target.metastore.partitions(database, self.table, names)
                if not covers(object_id(part), self.evid) and columns_of(part) != wanted
            ]
            for image in images:
                image.sd.cols = list(self.columns)
                if FINGERPRINT in (image.parameters or {}):
                    with_fingerprint(image)
            if images:
                target.metastore.alter_partitions(database, self.table, images)
